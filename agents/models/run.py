"""Runs and the tool calls they queue."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.models.agent import Agent, AgentVersion
from memory.models import Thread


class Run(models.Model):
    """One answer being made. It belongs to the server: whoever watches may come and go."""

    class Status(models.TextChoices):
        QUEUED = "queued", _("waiting its turn")
        RUNNING = "running", _("running")
        WAITING = "waiting", _("waiting for approval")
        COMPLETED = "completed", _("completed")
        BLOCKED = "blocked", _("blocked")
        FAILED = "failed", _("failed")
        CANCELLED = "cancelled", _("stopped")
        INTERRUPTED = "interrupted", _("interrupted")

    FINAL = frozenset({"completed", "blocked", "failed", "cancelled", "interrupted"})
    ACTIVE = ("queued", "running", "waiting")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="runs", verbose_name=_("agent"))
    version = models.ForeignKey(AgentVersion, on_delete=models.CASCADE, null=True, verbose_name=_("version"))
    draft_snapshot = models.JSONField(null=True, editable=False)
    """The playground's draft; such a run has no version."""
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, null=True, related_name="runs", verbose_name=_("conversation"))  # fmt: skip
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="runs", verbose_name=_("person"))  # fmt: skip
    channel = models.CharField(_("channel"), max_length=32)
    status = models.CharField(
        _("status"), max_length=16, choices=Status.choices, default=Status.QUEUED, db_index=True
    )
    input_message_id = models.UUIDField(null=True)
    overrides = models.JSONField(default=dict)
    """What the call asked for beside its text (settings, system text …), as the service accepted it."""
    idempotency_key = models.CharField(max_length=200, blank=True)
    mandatory = models.JSONField(default=list, editable=False)
    """The guardrails of every agent, as they stood when the run began (they are read live, not from the version)."""
    text = models.TextField(_("answer"), blank=True)
    finish_reason = models.CharField(_("finish reason"), max_length=32, blank=True)
    tripwire = models.JSONField(_("tripwire"), null=True)
    error = models.JSONField(_("error"), null=True)
    usage = models.JSONField(_("usage"), default=dict)
    cost = models.DecimalField(_("cost, USD"), max_digits=12, decimal_places=6, null=True)
    stats = models.JSONField(_("guardrails"), default=list)
    snapshot = models.JSONField(null=True, editable=False)
    """What a waiting run needs to go on."""
    stop_requested_at = models.DateTimeField(null=True, editable=False)
    lease_owner = models.CharField(max_length=100, blank=True, editable=False)
    lease_until = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(_("asked"), auto_now_add=True, db_index=True)
    started_at = models.DateTimeField(_("started"), null=True)
    finished_at = models.DateTimeField(_("finished"), null=True)

    class Meta:
        verbose_name = _("run")
        verbose_name_plural = _("runs")
        ordering = ["-created_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "idempotency_key"],
                condition=~models.Q(idempotency_key=""),
                name="agents_run_key_once",
            )
        ]
        indexes = [
            models.Index(fields=["thread", "created_at"]),
            models.Index(fields=["status", "lease_until"]),
        ]

    def __str__(self) -> str:
        return str(self.id)


class ToolCall(models.Model):
    """A tool call. The row decides what runs, not the broker: its lease and its id make the side effect happen once."""

    class Status(models.TextChoices):
        QUEUED = "queued", _("queued")
        RUNNING = "running", _("running")
        APPROVAL = "approval", _("waiting for approval")
        DONE = "done", _("done")
        FAILED = "failed", _("failed")
        DECLINED = "declined", _("declined")
        CANCELLED = "cancelled", _("cancelled")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="tool_calls", verbose_name=_("run"))
    call_id = models.CharField(max_length=200)
    tool_slug = models.CharField(_("tool"), max_length=64)
    args = models.JSONField(_("arguments"), default=dict)
    status = models.CharField(
        _("status"), max_length=16, choices=Status.choices, default=Status.QUEUED, db_index=True
    )
    progress = models.JSONField(_("progress"), null=True)
    result = models.JSONField(_("result"), null=True)
    error = models.TextField(_("error"), blank=True)
    task_id = models.CharField(max_length=100, blank=True, editable=False)
    attempts = models.PositiveSmallIntegerField(default=0, editable=False)
    lease_owner = models.CharField(max_length=100, blank=True, editable=False)
    lease_until = models.DateTimeField(null=True, editable=False)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    decision_reason = models.TextField(blank=True)
    decision = models.JSONField(null=True, editable=False)
    """{"approved": bool, "args": the arguments that the decision allows}; None while nobody has decided."""
    stop_requested_at = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("tool call")
        verbose_name_plural = _("tool calls")
        ordering = ["created_at"]
        constraints = [models.UniqueConstraint(fields=["run", "call_id"], name="agents_call_once_per_run")]

    def __str__(self) -> str:
        return f"{self.tool_slug} ({self.call_id})"
