"""How often guardrails ran and how it ended, by the hour, so that rates have a true denominator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.utils import timezone

UPSERT = """
INSERT INTO audit_processorhour (hour, processor_id, agent_slug, evaluated, passed, violations, errors, seconds)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT ON CONSTRAINT audit_one_row_per_hour DO UPDATE SET
  evaluated = audit_processorhour.evaluated + EXCLUDED.evaluated, passed = audit_processorhour.passed + EXCLUDED.passed,
  violations = audit_processorhour.violations + EXCLUDED.violations, errors = audit_processorhour.errors + EXCLUDED.errors,
  seconds = audit_processorhour.seconds + EXCLUDED.seconds
"""


@dataclass(slots=True, frozen=True)
class Count:
    """What one guardrail did in one run. seconds: its own time."""

    processor_id: str
    evaluated: int = 0
    passed: int = 0
    violations: int = 0
    errors: int = 0
    seconds: float = 0.0


def counters_add(*, agent_slug: str, counts: Iterable[Count], at: datetime | None = None) -> None:
    """Add a run's counts to the current hour. Rows are taken in one order, so that two runs never wait for each other in a ring."""
    hour = (at or timezone.now()).replace(minute=0, second=0, microsecond=0)
    rows = [
        (
            hour,
            one.processor_id[:100],
            agent_slug[:100],
            one.evaluated,
            one.passed,
            one.violations,
            one.errors,
            one.seconds,
        )
        for one in sorted(counts, key=lambda one: one.processor_id)
    ]
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(UPSERT, rows)
