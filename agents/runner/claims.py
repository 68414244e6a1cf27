"""The database side of running: taking a run, keeping its lease, bringing it to its end. Every step is one short transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Coalesce
from django.utils import timezone

from agents.models import Run, ToolCall
from audit.storable import storable, storable_text
from memory.services import turn_close
from processors.engine.messages import Message as EngineMessage
from processors.engine.messages import Part
from processors.engine.ports import Turn

LEASE: Final = timedelta(seconds=15)
MOST_LOOKED_AT: Final = 50
BEAT: Final = 4.0
"""Seconds between two extensions of all leases of a process."""


@dataclass(slots=True, frozen=True)
class Claim:
    """A run that is ours now. is_first: it has never been started before."""

    run: Run
    is_first: bool


def run_claim(*, run_id: UUID, owner: str) -> Claim | None:
    """Take a queued run, in one conditional UPDATE. None: it runs already, has ended, or another run of its thread goes first.

    One run of a thread at a time, in the order in which they were asked; one that waits for approval holds its thread. Two runs
    of a thread are never taken at once: the later one sees the earlier, whether it is queued still or running by now.
    """
    now = timezone.now()
    others = Run.objects.filter(thread_id=OuterRef("thread_id")).exclude(pk=OuterRef("pk"))
    busy = Q(status__in=(Run.Status.RUNNING, Run.Status.WAITING))
    earlier = Q(status=Run.Status.QUEUED, created_at__lt=OuterRef("created_at"))
    mine = Run.objects.filter(~Exists(others.filter(busy | earlier)), pk=run_id, status=Run.Status.QUEUED)
    taken = mine.update(
        status=Run.Status.RUNNING,
        lease_owner=owner,
        lease_until=now + LEASE,
        started_at=Coalesce("started_at", now),
    )
    if not taken:
        return None
    run = Run.objects.select_related("agent", "version", "thread", "owner").get(pk=run_id)
    return Claim(run, run.started_at == now)


def next_of_thread(thread_id: UUID) -> UUID | None:
    """The run of the thread that is to be started now, if there is one."""
    active = Run.objects.filter(thread_id=thread_id, status__in=Run.ACTIVE).order_by("created_at")
    found = list(active.values_list("pk", "status")[:MOST_LOOKED_AT])
    return found[0][0] if found and all(status == Run.Status.QUEUED for _, status in found) else None


def leases_extend(*, run_ids: Iterable[UUID], owner: str) -> set[UUID]:
    """Extend the leases of this process's runs. Returns those that are still its own."""
    ids = list(run_ids)
    mine = Run.objects.filter(pk__in=ids, lease_owner=owner, status=Run.Status.RUNNING)
    mine.update(lease_until=timezone.now() + LEASE)
    return set(mine.values_list("pk", flat=True))


def stops_wanted(run_ids: Iterable[UUID]) -> list[UUID]:
    """Which of the runs somebody asked to stop."""
    return list(
        Run.objects.filter(pk__in=list(run_ids), stop_requested_at__isnull=False).values_list("pk", flat=True)
    )


class LeaseLost(Exception):
    """Another process has ended this run meanwhile; what this one has is not stored."""


def run_settle(*, run_id: UUID, owner: str, turn: Turn, was_waiting: bool = False) -> None:
    """Write a turn's outcome to its run, within the transaction that stores its messages. Raises LeaseLost.

    was_waiting: the run had waited for approval, so its calls are to be closed.
    """
    waits = turn.status == "waiting"
    mine = Run.objects.filter(pk=run_id, status=Run.Status.RUNNING, lease_owner=owner)
    settled = mine.update(
        status=turn.status, finish_reason=turn.finish_reason[:32], usage=storable(turn.usage), tripwire=storable(turn.tripwire),
        error=storable(turn.error), text=storable_text(answer_of(turn.messages)) if turn.status != "blocked" else "",
        snapshot=storable(turn.snapshot) if waits else None, lease_owner="", lease_until=None,
        finished_at=None if waits else timezone.now(),
    )  # fmt: skip
    if not settled:
        raise LeaseLost(f"The run {run_id} is no longer this process's.")
    if waits:
        _approvals_open(run_id, turn)
    elif was_waiting:
        _calls_close(run_id)


def answer_of(messages: Sequence[EngineMessage]) -> str:
    """The text that the agent said in a turn: what follows the last thing the person said."""
    said: list[str] = []
    for message in reversed(messages):
        if message.role == "user":
            break
        said.append(message.text if message.role == "assistant" else "")
    return "".join(reversed(said))


def _approvals_open(run_id: UUID, turn: Turn) -> None:
    """A row for every call that waits for a person."""
    waiting = set((turn.snapshot or {}).get("waiting") or [])
    for message in turn.messages:
        for part in message.content.parts:
            call: dict[str, Any] = part.get("toolInvocation") or {}
            if call.get("toolCallId") in waiting:
                ToolCall.objects.update_or_create(
                    run_id=run_id, call_id=str(call["toolCallId"])[:200],
                    defaults={"tool_slug": str(call.get("toolName", ""))[:64], "args": storable(call.get("args") or {}), "status": ToolCall.Status.APPROVAL},
                )  # fmt: skip


def _calls_close(run_id: UUID) -> None:
    """Calls that nobody will decide any more, and decided ones that the loop has carried out."""
    now = timezone.now()
    open_calls = ToolCall.objects.filter(run_id=run_id, status=ToolCall.Status.APPROVAL)
    open_calls.filter(decision__approved=True).update(status=ToolCall.Status.DONE, finished_at=now)
    open_calls.filter(decision__approved=False).update(status=ToolCall.Status.DECLINED, finished_at=now)
    open_calls.filter(decision__isnull=True).update(
        status=ToolCall.Status.CANCELLED, finished_at=now, error="The answer ended before anybody decided."
    )


def run_interrupt(
    *,
    run_id: UUID,
    reason: str,
    status: str = Run.Status.INTERRUPTED,
    only_if: Q | None = None,
    shown: list[Part] | None = None,
) -> bool:
    """End a run without its runner: messages that wait are closed, calls without a result get an error. False: it has ended.

    shown: what people had seen of the answer; it is kept.
    """
    with transaction.atomic():
        found = Run.objects.select_for_update().filter(pk=run_id, status__in=Run.ACTIVE)
        run = found.filter(only_if).first() if only_if is not None else found.first()
        if run is None:
            return False
        now = timezone.now()
        run.status, run.finish_reason, run.finished_at = status, "aborted", now
        run.lease_owner, run.lease_until, run.snapshot = "", None, None
        if status == Run.Status.INTERRUPTED:
            run.error = {"name": "Interrupted", "message": reason}
        if shown:
            run.text = storable_text("".join(part["text"] for part in shown if part["type"] == "text"))
        run.save()
        calls = ToolCall.objects.filter(run=run)
        calls.filter(status__in=(ToolCall.Status.QUEUED, ToolCall.Status.APPROVAL)).update(
            status=ToolCall.Status.CANCELLED, error=reason, finished_at=now
        )
        calls.filter(status=ToolCall.Status.RUNNING).update(stop_requested_at=now)
        cancelled = status == Run.Status.CANCELLED
        turn_close(run_id=run.pk, thread_id=run.thread_id, reason=reason, cancelled=cancelled, shown=shown)
    return True


def run_requeue(*, run_id: UUID, only_if: Q) -> bool:
    """Put a run of which nothing was seen yet back into the queue. False: it is not that run any more."""
    back = Run.objects.filter(only_if, pk=run_id).exclude(tool_calls__isnull=False)
    return bool(back.update(status=Run.Status.QUEUED, lease_owner="", lease_until=None))
