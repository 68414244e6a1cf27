"""Reading the trail: for auditors, with filters, as CSV, and as rates."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet, Sum

from accounts.policies import can
from audit.models import ProcessorHour, Violation

FILTERS: Final[dict[str, str]] = {
    "outcome": "outcome", "action": "action", "severity": "severity", "processor": "processor_id", "kind": "kind", "rule": "rule",
    "type": "type", "hook": "hook", "agent": "agent_slug", "version": "agent_version", "user": "user_id", "channel": "channel",
    "run": "run_id", "thread": "thread_id", "since": "at__gte", "until": "at__lt", "after": "sequence__gt", "before": "sequence__lt",
}  # fmt: skip
"""Name of a filter → look-up."""
COLUMNS: Final = (
    "sequence", "at", "outcome", "action", "severity", "processor_id", "processor_name", "kind", "rule", "type", "message", "hook",
    "where", "step_number", "retry_count", "tool_name", "tool_call_id", "run_id", "thread_id", "agent_slug", "agent_version", "user_id",
    "user_label", "channel", "excerpt", "digest", "score", "delivered_chars", "duration_ms",
)  # fmt: skip
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
MOST_ROWS: Final = 100_000


def violations_list(user: Any, **filters: Any) -> QuerySet[Violation]:
    """The violations that match, newest first. Raises PermissionDenied, and ValueError for an unknown filter."""
    if not can(user, "audit.read"):
        raise PermissionDenied("You may not read violations; ask for the role “auditor”.")
    unknown = set(filters) - set(FILTERS)
    if unknown:
        raise ValueError(
            f"There is no filter called {sorted(unknown)[0]!r}. Use one of: {', '.join(FILTERS)}."
        )
    return Violation.objects.filter(
        **{FILTERS[name]: value for name, value in filters.items() if value not in (None, "")}
    ).order_by("-sequence")


def violations_csv(rows: QuerySet[Violation] | Iterable[Violation]) -> str:
    """The rows as CSV with a heading, at most 100,000. A cell that a spreadsheet would run as a formula gets a quote before it."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    found = rows.values_list(*COLUMNS)[:MOST_ROWS].iterator(chunk_size=2000) if isinstance(rows, QuerySet) else (
        tuple(getattr(row, name) for name in COLUMNS) for row in rows
    )  # fmt: skip
    for row in found:
        writer.writerow([_cell(value) for value in row])
    return out.getvalue()


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat()
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def rates(*, since: datetime, until: datetime | None = None, agent: str = "") -> list[dict[str, Any]]:
    """Per guardrail: evaluated, passed, violations, errors, the share of violations, and milliseconds per evaluation."""
    rows = ProcessorHour.objects.filter(hour__gte=since)
    if until is not None:
        rows = rows.filter(hour__lt=until)
    if agent:
        rows = rows.filter(agent_slug=agent)
    totals = rows.order_by("processor_id").values("processor_id").annotate(
        evaluated=Sum("evaluated"), passed=Sum("passed"), violations=Sum("violations"), errors=Sum("errors"), seconds=Sum("seconds")
    )  # fmt: skip
    return [
        {
            **row, "rate": row["violations"] / row["evaluated"] if row["evaluated"] else 0.0,
            "milliseconds": row["seconds"] / row["evaluated"] * 1000 if row["evaluated"] else 0.0,
        }
        for row in totals
    ]  # fmt: skip
