"""Configured guardrails that cannot work are named when the installation starts or is checked."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, Warning, register
from django.db import DatabaseError

from processors.build import snapshot_problem
from processors.models import Processor
from processors.snapshot import processor_snapshot


@register("database")
def configured_guardrails_work(*, databases: Any = None, **_: Any) -> list[CheckMessage]:
    """Kinds that are gone and options that their kind no longer accepts. Runs only when a database may be asked."""
    if not databases:
        return []
    try:
        rows = list(Processor.objects.all())
    except DatabaseError:
        return []  # not migrated yet
    found: list[CheckMessage] = []
    for row in rows:
        problem = snapshot_problem(processor_snapshot(row))
        if problem:
            kind = Error if row.mandatory else Warning
            found.append(
                kind(
                    f"The guardrail “{row.name}” cannot run: {problem}",
                    obj=row,
                    id="processors.E001" if row.mandatory else "processors.W001",
                )
            )
    return found
