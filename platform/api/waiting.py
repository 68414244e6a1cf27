"""Waiting for a run's end from a synchronous view."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any, Final

from asgiref.sync import async_to_sync

from agents.models import Run
from agents.run_log import read
from agents.services.runs import run_get
from api.event_streams import connections_release

LONGEST: Final = 300.0
"""Seconds that a request waits at most."""


def run_wait(*, user: Any, run: Run, seconds: float = LONGEST) -> Run:
    """The run when it has ended or waits for approval; as it stands after `seconds` otherwise."""
    connections_release()
    async_to_sync(_until_end)(str(run.pk), seconds)
    return run_get(user=user, run_id=run.pk)


async def _until_end(run_id: str, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds), aclosing(read(run_id)) as chunks:
            async for _ in chunks:
                pass
    except TimeoutError:
        return
