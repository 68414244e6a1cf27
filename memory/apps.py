from __future__ import annotations

from django.apps import AppConfig


class MemoryConfig(AppConfig):
    name = "memory"
    label = "memory"
    verbose_name = "Conversations"
    default_auto_field = "django.db.models.BigAutoField"
