"""The engine's view of a thread: what it remembers, and where a finished turn goes."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.db import transaction

from audit.bridge import in_database
from memory.models import Thread
from memory.selectors import history
from memory.services import turn_store
from processors.engine.messages import Message
from processors.engine.ports import ThreadMemory, Turn


class DjangoThreadMemory(ThreadMemory):
    """A thread in the database.

    limit: how many earlier messages are remembered. in_same_transaction: called with the turn inside the transaction that stores
    it, so that a run's status and its messages appear together or not at all.
    """

    def __init__(
        self, thread: Thread, *, limit: int, run_id: UUID, input_message_id: UUID | None = None,
        in_same_transaction: Callable[[Turn], None] | None = None,
    ) -> None:  # fmt: skip
        self.thread, self.limit, self.run_id, self.input_message_id = thread, limit, run_id, input_message_id
        self._in_same_transaction = in_same_transaction

    async def load(self) -> list[Message]:
        """Earlier messages, oldest first, without those of this run."""
        return await in_database(history, self.thread, self.limit, without_run=self.run_id)

    async def save(self, turn: Turn) -> None:
        """Store the turn in one transaction."""
        await in_database(self._save, turn)

    def _save(self, turn: Turn) -> None:
        with transaction.atomic():
            # the run's row first: everybody locks in this order
            if self._in_same_transaction is not None:
                self._in_same_transaction(turn)
            turn_store(thread=self.thread, turn=turn, input_message_id=self.input_message_id)
