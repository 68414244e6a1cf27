"""Waiting for a run's end from a synchronous view."""

from __future__ import annotations

import time
from typing import Any, Final

from agents.models import Run
from agents.services.runs import run_get

PAUSE: Final = 0.05
LONGEST: Final = 300.0


def run_wait(*, user: Any, run: Run, seconds: float = LONGEST) -> Run:
    """The run when it has ended or waits for approval; as it stands after `seconds` otherwise."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = run_get(user=user, run_id=run.pk)
        if found.status in Run.FINAL or found.status == Run.Status.WAITING:
            return found
        time.sleep(PAUSE)
    return run_get(user=user, run_id=run.pk)
