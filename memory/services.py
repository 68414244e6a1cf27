"""Writing conversations. Everything that is stored here has passed the output chain, but for a person's own message that waits
for its answer: that one is kept as it was written until the run's input chain has seen it."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID, uuid5

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Case, F, Max, Value, When
from django.utils import timezone

from accounts.policies import can
from audit.storable import storable, storable_text
from memory.models import Message, Thread
from processors.engine.messages import Message as EngineMessage
from processors.engine.messages import Part
from processors.engine.ports import Turn

BLOCK: Final = 1000
"""Positions of one run: its user message stands at the block's first, so that two runs of one thread never interleave."""
TITLE_LENGTH: Final = 80
STATUS_OF_TURN: Final = {
    "completed": Message.Status.COMPLETED, "blocked": Message.Status.BLOCKED, "failed": Message.Status.FAILED,
    "cancelled": Message.Status.CANCELLED, "waiting": Message.Status.PENDING,
}  # fmt: skip


def thread_create(
    *, owner: Any, agent_slug: str, title: str = "", metadata: dict[str, Any] | None = None
) -> Thread:
    """Begin a conversation."""
    return Thread.objects.create(
        owner=owner,
        agent_slug=agent_slug,
        title=storable_text(title).strip()[:200],
        metadata=storable(metadata or {}),
    )


def thread_rename(*, actor: Any, thread: Thread, title: str) -> Thread:
    """Give a conversation another title. Raises PermissionDenied for anybody but its owner, ValueError for an empty title."""
    _check_owner(actor, thread)
    words = " ".join(storable_text(title).split())[:200]
    if not words:
        raise ValueError("Write a title.")
    thread.title = words
    thread.save(update_fields=["title", "updated_at"])
    return thread


def thread_delete(*, actor: Any, thread: Thread) -> None:
    """Delete a conversation with its messages and runs. The audit keeps its rows. Raises PermissionDenied."""
    _check_owner(actor, thread)
    thread.delete()


def _check_owner(actor: Any, thread: Thread) -> None:
    if thread.owner_id != actor.pk or not can(actor, "thread.read", thread):
        raise PermissionDenied("Only the person whose conversation this is can do that.")


def user_message_store(
    *, thread: Thread, message: EngineMessage, run_id: UUID, earlier: int = 0, is_first: bool = False
) -> Message:
    """Store what a person wrote, before anything else happens with it. The caller holds the thread's row lock.

    earlier: room for so many messages that the call brought along; they are stored with the turn, once they are screened.
    is_first: the thread was made in this transaction, so there is nothing to look up.
    """
    position = (0 if is_first else _next_block(thread)) + earlier
    row = Message.objects.create(
        id=message.id, thread=thread, run_id=run_id, position=position, role=message.role, parts=_parts(message.content.parts),
        metadata=storable(message.content.metadata), status=Message.Status.PENDING,
    )  # fmt: skip
    if not is_first:
        Thread.objects.filter(pk=thread.pk).update(updated_at=timezone.now())
    return row


@transaction.atomic
def turn_store(*, thread: Thread, turn: Turn, input_message_id: UUID | str | None = None) -> None:
    """Store a run's messages as the chains left them. A stored message of the same run with the same id is updated.

    A person's message that is no longer among the turn's messages was taken out by the chain: its text is withheld.
    """
    run_id, status = UUID(turn.run_id), STATUS_OF_TURN[turn.status]
    known = {
        str(row.pk): row for row in Message.objects.select_for_update().filter(thread=thread, run_id=run_id)
    }
    asked = known.get(str(input_message_id)) if input_message_id else None
    base = asked.position if asked is not None else _base(thread, known)
    free = max((row.position for row in known.values()), default=base) + 1
    ids = {message.id: _row_id(run_id, message.id) for message in turn.messages}
    # messages that the call brought along stand before the one that it asks with
    early = base // BLOCK * BLOCK if asked is not None and str(asked.pk) in ids.values() else base
    foreign = {
        str(pk)
        for pk in Message.objects.filter(pk__in=set(ids.values()) - set(known)).values_list("pk", flat=True)
    }
    seen: set[str] = set()
    for message in turn.messages:
        row_id = ids[message.id]
        if row_id in foreign:
            continue  # a row of an earlier run never changes
        row = known.get(row_id)
        is_new = row is None
        if row is None:
            position, early, free = (early, early + 1, free) if early < base else (free, early, free + 1)
            row = Message(id=row_id, thread=thread, run_id=run_id, position=position, role=message.role)
        elif row is asked:
            early = base
        seen.add(row_id)
        _fill(row, message, status, blocked=turn.status == "blocked")
        row.save(force_insert=is_new)
    for row in known.values():
        if str(row.pk) not in seen:
            row.parts, row.withheld, row.status = [], True, status
            row.save()
    _touch(thread, turn)


def turn_close(
    *, run_id: UUID, thread_id: UUID | None, reason: str, cancelled: bool, shown: list[Part] | None = None
) -> None:
    """End the messages of a run that its runner could not end, within the caller's transaction.

    What was asked stays, a call without a result has one that says why, and what people had seen of the answer is kept.
    """
    status = Message.Status.CANCELLED if cancelled else Message.Status.FAILED
    rows = Message.objects.select_for_update().filter(run_id=run_id)
    if shown and thread_id is not None:
        rows.exclude(role="user").delete()
        position = rows.aggregate(last=Max("position"))["last"]
        thread = Thread.objects.get(pk=thread_id)
        Message.objects.create(
            thread=thread, run_id=run_id, position=_base(thread, {}) if position is None else position + 1, role="assistant",
            parts=_parts(shown),
        )  # fmt: skip
    for row in rows.all():
        row.parts = calls_closed(row.parts, reason)
        row.status = status
        row.save(update_fields=["parts", "status"])


def calls_closed(parts: list[Part], reason: str) -> list[Part]:
    """The parts, with an error for every tool call that has no result: a model that sees a call without one refuses the prompt."""
    out = []
    for part in parts:
        call = part.get("toolInvocation")
        if isinstance(call, dict) and call.get("state") == "call":
            out.append({**part, "toolInvocation": {**call, "state": "error", "errorText": reason}})
        else:
            out.append(part)
    return out


def message_withhold(*, message_id: UUID, status: str) -> None:
    """Take a stored message's text away, for good."""
    Message.objects.filter(pk=message_id).update(parts=[], withheld=True, status=status)


def _row_id(run_id: UUID, message_id: str) -> str:
    """The row's id: the message's own, or one made from it if a processor chose an id that is no UUID."""
    try:
        return str(UUID(message_id))
    except ValueError:
        return str(uuid5(run_id, message_id))


def _next_block(thread: Thread) -> int:
    last = Message.objects.filter(thread=thread).aggregate(last=Max("position"))["last"]
    return 0 if last is None else (last // BLOCK + 1) * BLOCK


def _base(thread: Thread, known: dict[str, Message]) -> int:
    return min(row.position for row in known.values()) // BLOCK * BLOCK if known else _next_block(thread)


def _fill(row: Message, message: EngineMessage, status: str, *, blocked: bool) -> None:
    row.role = message.role
    row.withheld = message.withheld
    row.parts = [] if message.withheld else _parts(message.content.parts)
    if status not in (Message.Status.COMPLETED, Message.Status.PENDING):
        row.parts = calls_closed(row.parts, "The answer ended before this call did.")
    row.metadata = storable(message.content.metadata)
    row.status = Message.Status.BLOCKED if blocked or message.blocked else status


def _parts(parts: list[Part]) -> list[Any]:
    """The parts as JSON. A transient data part is stored nowhere, whoever handed it over."""
    return [
        storable(part)
        for part in parts
        if not (str(part.get("type", "")).startswith("data-") and part.get("transient"))
    ]


def _touch(thread: Thread, turn: Turn) -> None:
    """The thread's time, and its title from the first message that passed: titles are made from screened text only."""
    changes: dict[str, Any] = {"updated_at": timezone.now()}
    if turn.status in {"completed", "cancelled"}:
        first = next(
            (one for one in turn.messages if one.role == "user" and not one.withheld and one.text.strip()),
            None,
        )
        if first is not None:
            changes["title"] = Case(When(title="", then=Value(title_of(first.text))), default=F("title"))
    Thread.objects.filter(pk=thread.pk).update(**changes)


def title_of(text: str) -> str:
    """The beginning of a text on one line, cut at a word."""
    words = " ".join(storable_text(text).split())
    return (
        words
        if len(words) <= TITLE_LENGTH
        else words[: TITLE_LENGTH + 1].rsplit(" ", 1)[0][:TITLE_LENGTH] + "…"
    )
