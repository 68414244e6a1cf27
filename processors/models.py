"""A configured guardrail: a processor kind with its options, ready to be put into agents' chains."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Processor(models.Model):
    """A guardrail as an admin configured it. `kind` is a slug of the registry, never a list of choices in the database."""

    class OnError(models.TextChoices):
        BLOCK = "block", _("stop the reply (safe)")
        ALLOW = "allow", _("let it pass and record “not scanned”")

    class Severity(models.TextChoices):
        LOW = "low", _("low")
        MEDIUM = "medium", _("medium")
        HIGH = "high", _("high")

    class Mandatory(models.TextChoices):
        NO = "", _("only where an agent uses it")
        INPUT = "input", _("for every agent, on what people write")
        OUTPUT = "output", _("for every agent, on what agents answer")
        BOTH = "both", _("for every agent, both ways")

    slug = models.SlugField(_("short name"), max_length=100, unique=True, help_text=_("Used in the audit and in exports; it cannot be changed later."))  # fmt: skip
    name = models.CharField(_("name"), max_length=200)
    kind = models.SlugField(_("kind"), max_length=100)
    options = models.JSONField(_("options"), default=dict, blank=True)
    on_error = models.CharField(_("if the guardrail itself fails"), max_length=8, choices=OnError.choices, default=OnError.BLOCK)  # fmt: skip
    public_message = models.CharField(_("what the person is told"), max_length=300, blank=True, help_text=_("Shown instead of the technical reason when this guardrail stops a message."))  # fmt: skip
    severity = models.CharField(
        _("severity"), max_length=8, choices=Severity.choices, default=Severity.MEDIUM
    )
    mandatory = models.CharField(_("where it runs"), max_length=8, choices=Mandatory.choices, default=Mandatory.NO, blank=True)  # fmt: skip
    note = models.TextField(_("note for colleagues"), blank=True)
    revision = models.PositiveIntegerField(default=1, editable=False)
    created_at = models.DateTimeField(_("made"), auto_now_add=True)
    updated_at = models.DateTimeField(_("last changed"), auto_now=True)

    class Meta:
        verbose_name = _("guardrail")
        verbose_name_plural = _("guardrails")
        ordering = ["name"]
        permissions = [("manage_mandatory", _("Can change guardrails that run for every agent"))]

    def __str__(self) -> str:
        return self.name
