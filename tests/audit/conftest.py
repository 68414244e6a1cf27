"""Entries as the chain runner hands them to the trail."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from audit.models import Violation
from audit.writer import Scene, violation_record

RUN = UUID("a1a1a1a1-b2b2-4c3c-8d4d-e5e5e5e5e5e5")


def entry(**values: Any) -> SimpleNamespace:
    """An audit entry; `detail` and `message` are those of its violation."""
    violation = SimpleNamespace(
        processor_id="pii", message=values.pop("message", "Found one."), detail=values.pop("detail", None)
    )
    base = {
        "outcome": "violation", "action": "redact", "violation": violation, "hook": "process_input", "run_id": str(RUN), "step_number": 0,
        "retry_count": 0, "tool_name": None, "tool_call_id": None, "delivered_chars": 0, "duration_ms": 0.5, "origin": None,
        "at": datetime(2026, 12, 1, 12, tzinfo=UTC),
    }  # fmt: skip
    return SimpleNamespace(**{**base, **values})


def record(**values: Any) -> Violation:
    """Write one row."""
    return violation_record(
        scene=Scene(RUN, agent_slug="helper", user_id=1, user_label="alice", channel="test"),
        entry=entry(**values),
    )
