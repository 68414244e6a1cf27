"""Reading configured guardrails."""

from __future__ import annotations

from typing import Any, Literal

from django.db.models import QuerySet

from processors.models import Processor
from processors.snapshot import processor_snapshot


def mandatory_processors(stage: Literal["input", "output"]) -> QuerySet[Processor]:
    """Guardrails that run for every agent in this chain, in the order in which they run."""
    return Processor.objects.filter(mandatory__in=(stage, "both")).order_by("name", "pk")


def mandatory_snapshots() -> dict[str, list[dict[str, Any]]]:
    """{"input": […], "output": […]}: the guardrails of every agent as they stand now. One query."""
    rows = list(Processor.objects.exclude(mandatory="").order_by("name", "pk"))
    return {
        stage: [processor_snapshot(row) for row in rows if row.mandatory in (stage, "both")]
        for stage in ("input", "output")
    }


def used_by(processor: Processor) -> list[str]:
    """Names of the agents in whose chains a guardrail stands."""
    return sorted(set(processor.entries.values_list("agent__name", flat=True)))
