"""Saved examples: texts that a guardrail must catch or must let through, run on demand and before publishing."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from processors.models import Processor


class Example(models.Model):
    """One text and what the guardrail must do with it."""

    class As(models.TextChoices):
        INPUT = "input", _("a person's message")
        OUTPUT = "output", _("an agent's answer")
        TOOL = "tool", _("a tool's result")

    class Expected(models.TextChoices):
        CATCH = "catch", _("must be caught")
        PASS = "pass", _("must pass")

    processor = models.ForeignKey(Processor, on_delete=models.CASCADE, related_name="examples", verbose_name=_("guardrail"))  # fmt: skip
    text = models.TextField(_("text"), max_length=20_000)
    used_as = models.CharField(_("as"), max_length=8, choices=As.choices, default=As.INPUT)
    expected = models.CharField(_("expected"), max_length=8, choices=Expected.choices, default=Expected.CATCH)

    class Meta:
        verbose_name = _("saved example")
        verbose_name_plural = _("saved examples")
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.text if len(self.text) <= 60 else self.text[:59] + "…"
