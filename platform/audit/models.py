"""The audit trail: what every guardrail did, who changed what, and how often guardrails ran.

Rows name their objects by value and outlive them. Violations and changes are append-only: a database trigger refuses
UPDATE and DELETE (migration 0002). What people later think of a violation stands in `Review`.
"""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class Violation(models.Model):
    """One verdict of a guardrail. Never holds the matched text: a masked excerpt, offsets and a keyed hash instead."""

    class Outcome(models.TextChoices):
        VIOLATION = "violation", _("violation")
        ERROR = "error", _("guardrail failed")
        NOT_SCANNED = "not_scanned", _("not scanned")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    sequence = models.BigIntegerField(_("row"), unique=True, editable=False, db_default=models.expressions.RawSQL("nextval('audit_violation_sequence')", ()))  # fmt: skip
    at = models.DateTimeField(_("when"), db_index=True)
    outcome = models.CharField(_("outcome"), max_length=16, choices=Outcome.choices)
    action = models.CharField(_("what was done"), max_length=16)
    severity = models.CharField(_("severity"), max_length=16, default="medium")
    # which guardrail
    processor_id = models.CharField(_("guardrail"), max_length=100)
    processor_name = models.CharField(_("guardrail's name"), max_length=200, blank=True)
    kind = models.CharField(_("kind"), max_length=100, blank=True)
    rule = models.CharField(_("rule"), max_length=200, blank=True)
    type = models.CharField(_("type of finding"), max_length=100, blank=True)
    message = models.TextField(_("message"))
    # where
    hook = models.CharField(_("hook"), max_length=40)
    where = models.CharField(_("place"), max_length=40, blank=True)
    step_number = models.IntegerField(_("step"), null=True)
    retry_count = models.IntegerField(_("retries so far"), default=0)
    tool_name = models.CharField(_("tool"), max_length=200, blank=True)
    tool_call_id = models.CharField(max_length=200, blank=True)
    # who and which run; by value
    run_id = models.UUIDField(_("run"), db_index=True)
    thread_id = models.UUIDField(_("thread"), null=True, db_index=True)
    agent_slug = models.CharField(_("agent"), max_length=100, blank=True, db_index=True)
    agent_version = models.IntegerField(_("version"), null=True)
    user_id = models.BigIntegerField(null=True, db_index=True)
    user_label = models.CharField(_("person"), max_length=200, blank=True)
    channel = models.CharField(_("channel"), max_length=32, blank=True)
    # evidence without the secret
    excerpt = models.TextField(_("masked excerpt"), blank=True)
    matches = models.JSONField(_("offsets"), default=list)
    digest = models.CharField(_("keyed hash"), max_length=64, blank=True)
    score = models.FloatField(_("score"), null=True)
    delivered_chars = models.IntegerField(_("characters already shown"), default=0)
    duration_ms = models.FloatField(_("took, ms"), null=True)
    detail = models.JSONField(_("detail"), default=dict)
    # tamper evidence: HMAC over this row and the row before
    chain_digest = models.CharField(max_length=64, blank=True)

    class Meta:
        verbose_name = _("violation")
        verbose_name_plural = _("violations")
        ordering = ["-sequence"]
        indexes = [
            models.Index(fields=["agent_slug", "-at"]),
            models.Index(fields=["processor_id", "-at"]),
            models.Index(fields=["outcome", "-at"]),
        ]

    def __str__(self) -> str:
        return f"{self.processor_name or self.processor_id}: {self.message}"


class TrailHead(models.Model):
    """The end of the trail of violations: how many rows there are and the digest of the last, sealed with the installation's key.

    It makes a deleted last row show, and it is the one row that writers take turns on.
    """

    rows = models.BigIntegerField(default=0)
    last_digest = models.CharField(max_length=64, blank=True)
    seal = models.CharField(max_length=64, blank=True)

    class Meta:
        verbose_name = _("end of the trail")
        verbose_name_plural = _("ends of the trail")

    def __str__(self) -> str:
        return f"{self.rows} rows"


class Review(models.Model):
    """What an auditor thinks of a violation."""

    class Verdict(models.TextChoices):
        RIGHT = "right", _("right to act")
        FALSE_ALARM = "false_alarm", _("false alarm")
        FOLLOW_UP = "follow_up", _("needs follow-up")

    violation_id = models.UUIDField(unique=True)
    verdict = models.CharField(_("verdict"), max_length=16, choices=Verdict.choices)
    note = models.TextField(_("note"), blank=True)
    reviewer = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True)
    at = models.DateTimeField(_("when"), auto_now=True)

    class Meta:
        verbose_name = _("review")
        verbose_name_plural = _("reviews")

    def __str__(self) -> str:
        return f"{self.get_verdict_display()} ({self.violation_id})"


class Change(models.Model):
    """Somebody changed something that matters: an agent, a guardrail, a version, a credential, an approval."""

    at = models.DateTimeField(_("when"), auto_now_add=True, db_index=True)
    actor_id = models.BigIntegerField(null=True)
    actor_label = models.CharField(_("who"), max_length=200, blank=True)
    action = models.CharField(_("action"), max_length=40)
    object_type = models.CharField(_("what"), max_length=40)
    object_id = models.CharField(max_length=100)
    object_label = models.CharField(_("name"), max_length=200, blank=True)
    before = models.JSONField(_("before"), null=True)
    after = models.JSONField(_("after"), null=True)
    note = models.TextField(_("note"), blank=True)

    class Meta:
        verbose_name = _("change")
        verbose_name_plural = _("changes")
        ordering = ["-at", "-id"]
        indexes = [models.Index(fields=["object_type", "object_id", "-at"])]

    def __str__(self) -> str:
        return f"{self.actor_label} {self.action} {self.object_label}"


class ProcessorHour(models.Model):
    """How often a guardrail ran in one hour and how it ended, so that rates are true."""

    hour = models.DateTimeField(_("hour"))
    processor_id = models.CharField(_("guardrail"), max_length=100)
    agent_slug = models.CharField(_("agent"), max_length=100, blank=True)
    evaluated = models.BigIntegerField(_("evaluated"), default=0)
    passed = models.BigIntegerField(_("passed"), default=0)
    violations = models.BigIntegerField(_("violations"), default=0)
    errors = models.BigIntegerField(_("errors"), default=0)
    seconds = models.FloatField(_("seconds"), default=0.0)

    class Meta:
        verbose_name = _("guardrail activity")
        verbose_name_plural = _("guardrail activity")
        constraints = [
            models.UniqueConstraint(
                fields=["hour", "processor_id", "agent_slug"], name="audit_one_row_per_hour"
            )
        ]

    def __str__(self) -> str:
        return f"{self.processor_id} {self.hour:%Y-%m-%d %H}:00"
