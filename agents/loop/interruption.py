"""Stopping a run at any await, and nowhere else.

A run is driven by whoever reads its chunks. Between two chunks the reader's own code runs in the same task, so a stop
may cancel the task only while it is inside the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from processors.engine.errors import RunCancelled


class Interruption:
    """Cancels what the run waits for when `fire` is called.

    wanted: somebody fired; the run looks at it wherever it is not waiting.
    """

    __slots__ = ("_fired", "_held", "_task", "wanted")

    def __init__(self) -> None:
        self._task: asyncio.Task[Any] | None = None
        self._fired = False
        self._held = 0
        self.wanted = False

    def enter(self) -> None:
        """The run's own code goes on, in the current task."""
        self._task = asyncio.current_task()

    def leave(self) -> None:
        """A chunk is handed out: what the task waits for now is the reader's business."""
        self._task = None

    def fire(self) -> None:
        """Stop. Called in the run's event loop; harmless when repeated."""
        self.wanted = True
        task = self._task
        if task is None or self._held or self._fired or task is _running_task():
            return
        self._fired = True
        task.cancel()

    def check(self) -> None:
        """Raises RunCancelled if the run is to stop."""
        if self.wanted:
            raise RunCancelled("The run was stopped.")

    @contextmanager
    def hold(self, *, check: bool = True) -> Iterator[None]:
        """What is written here is written whole; a stop that comes meanwhile takes effect afterwards, if `check`."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
        if check and not self._held:
            self.check()

    def caused(self, error: BaseException) -> bool:
        """Whether a cancellation is this one; the task's request to be cancelled is then taken back."""
        if isinstance(error, RunCancelled):
            return True
        if not self._fired:
            return False
        task = asyncio.current_task()
        return task is None or task.uncancel() == 0


def _running_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
