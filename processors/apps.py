from __future__ import annotations

import logging
from importlib.metadata import entry_points

from django.apps import AppConfig

log = logging.getLogger("gatehouse.processors")


class ProcessorsConfig(AppConfig):
    name = "processors"
    label = "processors"
    verbose_name = "Guardrails"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Fill the registry: our own kinds first, then those of installed packages. A broken package breaks only its own kinds."""
        from processors import builtin, checks  # noqa: F401 - checks register themselves
        from processors.engine.registry import registry

        if not list(registry):
            builtin.register_all(registry)
            for point in entry_points(group="gatehouse.processors"):
                try:
                    point.load()(registry)
                except Exception:
                    log.exception(
                        "The package behind the processor entry point %r could not be loaded.", point.name
                    )
