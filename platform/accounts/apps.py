from __future__ import annotations

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "accounts"
    label = "accounts"
    verbose_name = "People and keys"
    default_auto_field = "django.db.models.BigAutoField"
