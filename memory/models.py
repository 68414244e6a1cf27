"""Conversations: threads, their messages, working memory and embeddings. Everything here has passed the output chain."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _
from pgvector.django import VectorField


class Thread(models.Model):
    """One conversation of one person with one agent (named by its slug: agents live a layer above)."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="threads", verbose_name=_("person"))  # fmt: skip
    agent_slug = models.SlugField(_("agent"), max_length=100)
    title = models.CharField(_("title"), max_length=200, blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(_("begun"), auto_now_add=True)
    updated_at = models.DateTimeField(_("last message"), auto_now=True, db_index=True)

    class Meta:
        verbose_name = _("conversation")
        verbose_name_plural = _("conversations")
        ordering = ["-updated_at"]
        indexes = [models.Index(fields=["owner", "-updated_at"])]

    def __str__(self) -> str:
        return self.title or str(self.id)


class Message(models.Model):
    """One message. `parts` is the engine's list of parts (processors/engine/messages.py) under `parts_version`."""

    class Status(models.TextChoices):
        PENDING = "pending", _("not answered yet")
        COMPLETED = "completed", _("completed")
        BLOCKED = "blocked", _("blocked")
        FAILED = "failed", _("failed")
        CANCELLED = "cancelled", _("stopped")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="messages")
    run_id = models.UUIDField(null=True, db_index=True)
    position = models.PositiveIntegerField()
    role = models.CharField(max_length=16)
    parts = models.JSONField(default=list)
    parts_version = models.PositiveSmallIntegerField(default=1)
    metadata = models.JSONField(default=dict)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.COMPLETED)
    withheld = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("message")
        verbose_name_plural = _("messages")
        ordering = ["thread", "position"]
        constraints = [
            models.UniqueConstraint(fields=["thread", "position"], name="memory_one_message_per_position")
        ]

    def __str__(self) -> str:
        return f"{self.role} #{self.position}"


class WorkingMemory(models.Model):
    """What an agent keeps in mind about a person."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="working_memories"
    )
    agent_slug = models.SlugField(max_length=100)
    text = models.TextField(blank=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = _("working memory")
        verbose_name_plural = _("working memories")
        constraints = [
            models.UniqueConstraint(fields=["owner", "agent_slug"], name="memory_one_per_person_and_agent")
        ]

    def __str__(self) -> str:
        return f"{self.agent_slug}: {self.owner}"


class Embedding(models.Model):
    """A message's vector for recall (512 dimensions, universal sentence encoder)."""

    message = models.OneToOneField(Message, on_delete=models.CASCADE, related_name="embedding")
    model = models.CharField(max_length=100)
    vector = VectorField(dimensions=512)

    class Meta:
        verbose_name = _("embedding")
        verbose_name_plural = _("embeddings")

    def __str__(self) -> str:
        return f"{self.model} {self.message_id}"
