"""Tools that run in a Celery worker. The `ToolCall` row decides what runs; the broker only carries its id.

This is the waiting side: it makes the row, sends the task, follows the row's progress and takes the result. Nothing here trusts
the broker to deliver once, or at all.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from agents.loop.tools import ToolContext
from agents.models import ToolCall
from agents.tools.inline import progress_chunk
from agents.tools.queue_rows import call_send, lost_call_settle
from audit.bridge import in_database
from audit.storable import storable
from processors.engine.errors import ToolFailed

LOOK_EVERY: Final = 0.25
QUEUE_PATIENCE: Final = 120.0
"""Seconds that a call may wait for a worker before the model is told that none came."""
OPEN: Final = (ToolCall.Status.QUEUED, ToolCall.Status.RUNNING)


def queue_execute(item: dict[str, Any], run_id: UUID) -> Callable[[Any, ToolContext], Any]:
    """The function that the loop calls for a queued tool."""

    async def execute(args: Any, context: ToolContext) -> Any:
        row = await in_database(
            tool_call_queue, run_id=run_id, call_id=context.tool_call_id, tool=item, args=args
        )
        try:
            return await _follow(row, item, context)
        except BaseException:
            # the answer was stopped, or its process is going down: whatever has not begun never begins
            await asyncio.shield(in_database(tool_call_stop, call_id=row.pk))
            raise

    return execute


async def _follow(row: ToolCall, item: dict[str, Any], context: ToolContext) -> Any:
    begun, shown = time.monotonic(), None
    limit = float(item.get("time_limit") or 60)
    started: float | None = None
    while True:
        row = await in_database(ToolCall.objects.get, pk=row.pk)
        if row.progress is not None and row.progress != shown:
            shown = row.progress
            context.writer.custom(
                progress_chunk(
                    context.tool_call_id, float(shown.get("percent", 0)), str(shown.get("message", ""))
                )
            )
        if row.status == ToolCall.Status.DONE:
            return row.result
        if row.status not in OPEN:
            raise ToolFailed(row.error or "The tool was stopped.")
        if row.status == ToolCall.Status.RUNNING:
            started = started or time.monotonic()
            if row.lease_until is not None and row.lease_until < timezone.now():
                await in_database(lost_call_settle, call_id=row.pk)
                continue
        waited = time.monotonic() - (started or begun)
        if waited > (limit + 15 if started else QUEUE_PATIENCE):
            await in_database(tool_call_stop, call_id=row.pk)
            what = f"took longer than {limit:g} s" if started else "found no free worker"
            raise ToolFailed(f"The tool {what} and was stopped.")
        await asyncio.sleep(LOOK_EVERY)


def tool_call_queue(*, run_id: UUID, call_id: str, tool: dict[str, Any], args: Any) -> ToolCall:
    """The row of a call, made once however often it is asked for, and its task in the queue. Raises ToolFailed."""
    with transaction.atomic():
        row, is_new = ToolCall.objects.get_or_create(
            run_id=run_id,
            call_id=call_id[:200],
            defaults={"tool_slug": tool["slug"], "args": storable(args or {})},
        )
        if not is_new and row.status == ToolCall.Status.APPROVAL:
            ToolCall.objects.filter(pk=row.pk).update(
                status=ToolCall.Status.QUEUED, args=storable(args or {})
            )
            is_new = True
        if is_new:
            transaction.on_commit(lambda: call_send(row.pk))
    row.refresh_from_db()
    return row


def tool_call_stop(*, call_id: UUID) -> None:
    """A call that waits never starts; one that runs stops at its next checkpoint."""
    now = timezone.now()
    stopped = ToolCall.objects.filter(
        pk=call_id, status__in=(ToolCall.Status.QUEUED, ToolCall.Status.APPROVAL)
    ).update(
        status=ToolCall.Status.CANCELLED,
        error="The answer was stopped.",
        finished_at=now,
        stop_requested_at=now,
    )
    if not stopped:
        ToolCall.objects.filter(pk=call_id, status=ToolCall.Status.RUNNING).update(stop_requested_at=now)
