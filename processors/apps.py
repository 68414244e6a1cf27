from __future__ import annotations

from django.apps import AppConfig


class ProcessorsConfig(AppConfig):
    name = "processors"
    label = "processors"
    verbose_name = "Guardrails"
    default_auto_field = "django.db.models.BigAutoField"
