"""The console: Django's admin as a product for the owners of agents and guardrails."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    name = "console"
    label = "console"
    verbose_name = "Console"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # importing them registers each area's pages on console.site.site
        for area in ("agents", "guardrails", "tools", "conversations", "runs", "violations", "changes", "people", "keys", "credentials"):  # fmt: skip
            import_module(f"console.admin.{area}")
