"""Reading conversations. A stranger's thread does not exist for anybody but its owner and those who may read conversations."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet

from accounts.policies import can
from memory.models import Message, Thread
from processors.engine.messages import Message as EngineMessage
from processors.engine.messages import MessageContent

REMEMBERED = (Message.Status.COMPLETED, Message.Status.CANCELLED)
"""Messages that a model may see again. Blocked and failed turns are shown to people and never sent."""


def threads_of(user: Any) -> QuerySet[Thread]:
    """A person's own conversations, the newest first."""
    return Thread.objects.filter(owner=user).order_by("-updated_at")


def thread_get(user: Any, id: UUID | str) -> Thread:
    """One conversation. Raises Thread.DoesNotExist, also for a stranger and for something that is no id."""
    try:
        thread = Thread.objects.get(pk=id)
    except (ValidationError, ValueError) as problem:
        raise Thread.DoesNotExist(f"There is no conversation {str(id)[:60]!r}.") from problem
    if not can(user, "thread.read", thread):
        raise Thread.DoesNotExist(f"There is no conversation {str(id)[:60]!r}.")
    return thread


def messages_of(
    thread: Thread, after: int | None = None, limit: int = 200, *, reader: Any = None
) -> list[Message]:
    """Messages in order, from the first after the position `after`.

    reader: who reads. A message that still waits for its input chain is shown to its owner only (reader None: the owner).
    """
    rows = Message.objects.filter(thread=thread)
    if after is not None:
        rows = rows.filter(position__gt=after)
    if reader is not None and reader.pk != thread.owner_id:
        rows = rows.exclude(Q(status=Message.Status.PENDING) & Q(role="user"))
    return list(rows.order_by("position")[: max(1, min(limit, 1000))])


def history(thread: Thread, limit: int, *, without_run: UUID | None = None) -> list[EngineMessage]:
    """The last messages that a model may see again, oldest first, beginning with something a person said."""
    if limit <= 0:
        return []
    rows = Message.objects.filter(thread=thread, status__in=REMEMBERED, withheld=False)
    if without_run is not None:
        rows = rows.exclude(run_id=without_run)
    found = [engine_message(row) for row in reversed(rows.order_by("-position")[:limit])]
    while found and found[0].role != "user":
        found.pop(0)
    return found


def engine_message(row: Message) -> EngineMessage:
    """A stored message as the engine sees it."""
    content = MessageContent([dict(part) for part in row.parts], metadata=dict(row.metadata))
    return EngineMessage(
        row.role, content, str(row.pk), row.created_at, str(row.thread_id),  # type: ignore[arg-type]
        blocked=row.status == Message.Status.BLOCKED, withheld=row.withheld,
    )  # fmt: skip
