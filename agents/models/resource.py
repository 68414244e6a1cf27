"""What agents use: credentials for providers and tools."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _


class ProviderCredential(models.Model):
    """How to reach a model's provider. The secret is stored encrypted and never shown again."""

    class Provider(models.TextChoices):
        OPENAI = "openai", _("OpenAI")
        ANTHROPIC = "anthropic", _("Anthropic")
        OPENAI_COMPATIBLE = "openai-compatible", _("another OpenAI-compatible service")
        LITELLM = "litellm", _("another provider, through litellm")

    slug = models.SlugField(_("short name"), max_length=100, unique=True)
    name = models.CharField(_("name"), max_length=200)
    provider = models.CharField(_("provider"), max_length=32, choices=Provider.choices)
    base_url = models.URLField(_("address"), blank=True, help_text=_("Only for OpenAI-compatible services."))
    secret = models.BinaryField(null=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = _("credential")
        verbose_name_plural = _("credentials")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Tool(models.Model):
    """A tool that agents can be given. `kind` is a slug of the tool registry (agents/tools)."""

    class Mode(models.TextChoices):
        INLINE = "inline", _("at once, in the chat's process")
        QUEUE = "queue", _("in the queue, for long work")

    slug = models.SlugField(_("name the model sees"), max_length=64, unique=True)
    name = models.CharField(_("name"), max_length=200)
    kind = models.SlugField(_("kind"), max_length=100)
    description = models.TextField(_("what it does, for the model"), blank=True)
    options = models.JSONField(_("options"), default=dict, blank=True)
    mode = models.CharField(_("where it runs"), max_length=8, choices=Mode.choices, default=Mode.INLINE)
    needs_approval = models.BooleanField(_("a person must approve each call"), default=False)
    is_idempotent = models.BooleanField(_("safe to run twice"), default=False)
    time_limit = models.PositiveIntegerField(_("time limit, in seconds"), default=60, validators=[MinValueValidator(1), MaxValueValidator(6 * 3600)])  # fmt: skip
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = _("tool")
        verbose_name_plural = _("tools")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
