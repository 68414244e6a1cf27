"""People and the keys their applications use."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.utils.translation import gettext_lazy as _


class User(AbstractUser):
    """A person. Roles are groups made by a migration; see accounts/roles.py."""

    class Meta(AbstractUser.Meta):
        verbose_name = _("person")  # type: ignore[assignment]
        verbose_name_plural = _("people")  # type: ignore[assignment]


class ApiKey(models.Model):
    """A key for the API. Only a keyed hash is kept; the key itself is shown once, when it is made."""

    owner = models.ForeignKey(
        User, on_delete=models.CASCADE, related_name="api_keys", verbose_name=_("owner")
    )
    name = models.CharField(
        _("name"), max_length=100, help_text=_("What uses this key, for example “help centre”.")
    )
    prefix = models.CharField(_("begins with"), max_length=16, unique=True, editable=False)
    digest = models.CharField(max_length=64, editable=False)
    created_at = models.DateTimeField(_("made"), auto_now_add=True)
    last_used_at = models.DateTimeField(_("last used"), null=True, editable=False)
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True)
    revoked_at = models.DateTimeField(_("revoked"), null=True, editable=False)

    class Meta:
        verbose_name = _("API key")
        verbose_name_plural = _("API keys")
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"
