"""Celery's skin over the services: long tool calls and housekeeping."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import uuid
from typing import Any, Final
from uuid import UUID

from celery import shared_task
from celery.exceptions import SoftTimeLimitExceeded
from django.db import close_old_connections, connection

from agents.models import ToolCall
from agents.tools.kinds import JobStopped, tool_kind
from agents.tools.queue_rows import BEAT, call_finish, call_keep, call_take, lost_calls_settle, tool_of_call
from processors.engine.errors import GatehouseError

log = logging.getLogger("gatehouse.tools")
WRITE_EVERY: Final = 0.2
"""Progress is written at most this often, in seconds."""


class QueuedJob:
    """A job in a worker: its lease is kept by a thread beside it."""

    def __init__(self, row: ToolCall, owner: str, limit: float) -> None:
        self.call_id = f"{row.run_id}:{row.call_id}"
        self._row_id, self._owner = row.pk, owner
        self._deadline = time.monotonic() + limit
        self._wanted, self._written = True, 0.0
        self._ended = threading.Event()

    def progress(self, percent: float, message: str = "") -> None:
        now = time.monotonic()
        if now - self._written >= WRITE_EVERY or percent >= 100:
            self._written = now
            self._keep({"percent": round(max(0.0, min(100.0, percent)), 1), "message": message[:200]})
        self.checkpoint()

    def checkpoint(self) -> None:
        if time.monotonic() > self._deadline:
            raise JobStopped("The tool's time is up.")
        if not self._wanted:
            raise JobStopped("The answer was stopped.")

    def _keep(self, progress: dict[str, Any] | None = None) -> None:
        if not call_keep(call_id=self._row_id, owner=self._owner, progress=progress):
            self._wanted = False

    def beat(self) -> None:
        """Runs in a thread of its own until the job has ended."""
        try:
            while not self._ended.wait(BEAT if self._wanted else 60):
                close_old_connections()
                self._keep()
        finally:
            connection.close()

    def end(self) -> None:
        self._ended.set()


@shared_task(name="gatehouse.run_tool_call", ignore_result=True)
def run_tool_call(call_id: str) -> str:
    """Run a queued tool call if it still waits. Harmless when delivered twice. Returns how it ended, for the worker's log."""
    owner = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
    row = call_take(call_id=UUID(call_id), owner=owner)
    if row is None:
        return "nothing to do"
    tool = tool_of_call(row)
    job = QueuedJob(row, owner, float(tool.get("time_limit") or 60))
    beat = threading.Thread(target=job.beat, name="gatehouse-lease", daemon=True)
    beat.start()
    try:
        result = tool_kind(str(tool.get("kind"))).run(
            dict(row.args or {}), dict(tool.get("options") or {}), job
        )
    except JobStopped as stop:
        call_finish(call_id=row.pk, owner=owner, error=str(stop), stopped="stopped" in str(stop))
        return "stopped"
    except GatehouseError as problem:
        call_finish(call_id=row.pk, owner=owner, error=str(problem))
        return "failed"
    except SoftTimeLimitExceeded:
        call_finish(call_id=row.pk, owner=owner, error="The tool's time is up.")
        return "failed"
    except Exception as problem:
        log.error("The tool %r failed: %s.", row.tool_slug, type(problem).__name__)
        call_finish(call_id=row.pk, owner=owner, error=f"The tool failed ({type(problem).__name__}).")
        return "failed"
    finally:
        job.end()
        beat.join()
    return "done" if call_finish(call_id=row.pk, owner=owner, result=result) else "too late"


@shared_task(name="gatehouse.reap_expired", ignore_result=True)
def reap_expired() -> int:
    """Bring runs and tool calls whose process is gone to an end. Returns how many."""
    from agents.runner.reaper import runs_reap

    return len(runs_reap()) + lost_calls_settle()
