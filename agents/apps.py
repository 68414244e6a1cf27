from __future__ import annotations

from django.apps import AppConfig


class AgentsConfig(AppConfig):
    name = "agents"
    label = "agents"
    verbose_name = "Agents"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Tell the guardrails where models, cache and costs are, and offer the practice agent's model."""
        from agents import practice
        from agents.build import guardrail_context
        from agents.providers.catalog import register_script
        from processors.build import context_factory_set

        context_factory_set(guardrail_context)
        register_script("practice", practice.practice_model)
