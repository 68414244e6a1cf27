"""The worker's side of a queued tool call: taking the row, keeping its lease, settling it. Each step is one conditional UPDATE."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from agents.models import Run, Tool, ToolCall
from audit.storable import storable, storable_text

log = logging.getLogger("gatehouse.tools")
LEASE: Final = timedelta(seconds=20)
BEAT: Final = 5.0
"""Seconds between two extensions of a lease."""
GRACE: Final = 5
"""Seconds after its time limit that a tool without checkpoints is interrupted, and again until its process is killed."""
LOST: Final = "The worker was lost while the tool ran. It may have had its effect, so it was not run again."


def call_take(*, call_id: UUID, owner: str) -> ToolCall | None:
    """Take a queued call. None: it runs or ran already, or was stopped; a second delivery of its message ends here.

    A call whose worker was lost is taken over only if its tool is safe to run twice.
    """
    now = timezone.now()
    with transaction.atomic():
        row = ToolCall.objects.select_for_update().filter(pk=call_id).first()
        if row is None:
            return None
        if row.status == ToolCall.Status.RUNNING and row.lease_until is not None and row.lease_until < now:
            if not _is_idempotent(row):
                _settle(row, ToolCall.Status.FAILED, error=LOST)
                return None
        elif row.status != ToolCall.Status.QUEUED:
            return None
        row.status, row.lease_owner, row.lease_until = ToolCall.Status.RUNNING, owner, now + LEASE
        row.attempts += 1
        row.save(update_fields=["status", "lease_owner", "lease_until", "attempts"])
    return row


def call_keep(*, call_id: UUID, owner: str, progress: dict[str, Any] | None = None) -> bool:
    """Extend the lease and note the progress. False: the call is no longer wanted or no longer ours; stop."""
    values: dict[str, Any] = {"lease_until": timezone.now() + LEASE}
    if progress is not None:
        values["progress"] = storable(progress)
    kept = ToolCall.objects.filter(
        pk=call_id, status=ToolCall.Status.RUNNING, lease_owner=owner, stop_requested_at=None
    ).update(**values)  # fmt: skip
    return bool(kept)


def call_finish(
    *, call_id: UUID, owner: str, result: Any = None, error: str = "", stopped: bool = False
) -> bool:
    """Store what came of it. False: somebody else owns the call by now, or it was settled; the result is dropped."""
    with transaction.atomic():
        row = (
            ToolCall.objects.select_for_update()
            .filter(pk=call_id, status=ToolCall.Status.RUNNING, lease_owner=owner)
            .first()
        )
        if row is None:
            return False
        status = (
            ToolCall.Status.CANCELLED
            if stopped
            else ToolCall.Status.FAILED
            if error
            else ToolCall.Status.DONE
        )
        _settle(row, status, result=result, error=error)
    return True


def lost_call_settle(*, call_id: UUID) -> None:
    """A running call whose lease is over: back into the queue if it is safe to run twice, failed otherwise."""
    with transaction.atomic():
        row = (
            ToolCall.objects.select_for_update()
            .filter(pk=call_id, status=ToolCall.Status.RUNNING, lease_until__lt=timezone.now())
            .first()
        )
        if row is None:
            return
        if not _is_idempotent(row) or row.attempts >= 3:
            _settle(row, ToolCall.Status.FAILED, error=LOST)
            return
        ToolCall.objects.filter(pk=row.pk).update(
            status=ToolCall.Status.QUEUED, lease_owner="", lease_until=None
        )
        transaction.on_commit(lambda: call_send(row.pk))


def lost_calls_settle() -> int:
    """Calls whose worker is gone and for whose result no run waits any more. Returns how many."""
    lost = Q(status=ToolCall.Status.RUNNING, lease_until__lt=timezone.now() - LEASE)
    nobody_waits = Q(run__status__in=Run.FINAL)
    return ToolCall.objects.filter(lost & nobody_waits).update(
        status=ToolCall.Status.FAILED, error=LOST, finished_at=timezone.now(), lease_until=None
    )


def call_send(call_id: UUID) -> None:
    """Put the call's id into the queue. If that cannot be done the call fails with a sentence."""
    from agents.tasks import run_tool_call

    row = ToolCall.objects.select_related("run__version").get(pk=call_id)
    limit = int(tool_of_call(row).get("time_limit") or 60)
    try:
        run_tool_call.apply_async(
            args=(str(call_id),), soft_time_limit=limit + GRACE, time_limit=limit + 2 * GRACE, retry=True,
            retry_policy={"max_retries": 2, "interval_start": 0.1},
        )  # fmt: skip
    except Exception as problem:
        log.warning("A tool call could not be put into the queue: %s", type(problem).__name__)
        ToolCall.objects.filter(pk=call_id, status=ToolCall.Status.QUEUED).update(
            status=ToolCall.Status.FAILED,
            error="The queue cannot be reached; try again later.",
            finished_at=timezone.now(),
        )


def _settle(row: ToolCall, status: str, *, result: Any = None, error: str = "") -> None:
    row.status, row.finished_at, row.lease_until = status, timezone.now(), None
    row.result, row.error = storable(result), storable_text(error)[:2000]
    row.save(update_fields=["status", "finished_at", "lease_until", "result", "error"])


def tool_of_call(row: ToolCall) -> dict[str, Any]:
    """The tool as the run's version has it."""
    run = row.run
    snapshot = run.version.snapshot if run.version is not None else run.draft_snapshot or {}
    return next(
        (one for one in snapshot.get("tools") or [] if one["slug"] == row.tool_slug), {"slug": row.tool_slug}
    )


def _is_idempotent(row: ToolCall) -> bool:
    """As the run's version says, and still said by the tool itself: the stricter of the two holds."""
    live = Tool.objects.filter(slug=row.tool_slug).values_list("is_idempotent", flat=True).first()
    return bool(tool_of_call(row).get("is_idempotent")) and live is not False
