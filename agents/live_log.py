"""The logs of the runs of this process, in memory: written by the runner's thread, read from any event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from weakref import WeakKeyDictionary, ref

WINDOW: Final = 4096
"""Chunks kept in memory per run; a reader that falls further behind reads the rest from Redis."""

Wire = dict[str, Any]


class LoopBell:
    """Wakes the readers of one event loop: all that are due together, in one call into the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = ref(loop)
        self._due: list[asyncio.Event] = []
        self._lock = threading.Lock()

    def ring(self, event: asyncio.Event) -> None:
        """Set an event of the loop, soon. In any thread. Readers whose loop is closed are gone."""
        with self._lock:
            self._due.append(event)
            first = len(self._due) == 1
        loop = self._loop()
        if first and loop is not None:
            try:
                loop.call_soon_threadsafe(self._set)
            except RuntimeError:
                self._due.clear()

    def _set(self) -> None:
        with self._lock:
            due, self._due = self._due, []
        for event in due:
            event.set()


_bells: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopBell] = WeakKeyDictionary()


def bell_of(loop: asyncio.AbstractEventLoop) -> LoopBell:
    """The loop's bell."""
    bell = _bells.get(loop)
    return bell if bell is not None else _bells.setdefault(loop, LoopBell(loop))


class Wake:
    """Wakes one reader, in its own event loop, however often it is asked between two looks."""

    __slots__ = ("_armed", "_bell", "_event")

    def __init__(self) -> None:
        self._bell = bell_of(asyncio.get_running_loop())
        self._event = asyncio.Event()
        self._armed = True

    def clear(self) -> None:
        """Called by the reader before it looks."""
        self._event.clear()
        self._armed = True

    async def wait(self) -> None:
        await self._event.wait()

    def __call__(self) -> None:
        """Called by the writer, in any thread."""
        if self._armed:
            self._armed = False
            self._bell.ring(self._event)


class LiveLog:
    """One run's chunks since `base`. One thread appends; readers only read, and see a consistent list at any moment."""

    def __init__(self, base: int = 0) -> None:
        self._base = base
        self._wires: list[Wire] = []
        self._wakes: tuple[Wake, ...] = ()
        self._lock = threading.Lock()
        self.closed = False

    @property
    def last(self) -> int:
        """The number of the newest chunk."""
        return self._base + len(self._wires)

    def append(self, wire: Wire) -> int:
        """Add a chunk and wake the readers. Returns its number."""
        self._wires.append(wire)
        if len(self._wires) > 2 * WINDOW:
            with self._lock:
                self._base, self._wires = self._base + WINDOW, self._wires[WINDOW:]
        for wake in self._wakes:
            wake()
        return self._base + len(self._wires)

    def close(self) -> None:
        """Nothing more will come."""
        self.closed = True
        for wake in self._wakes:
            wake()

    def reaches(self, position: int) -> bool:
        """Whether memory still holds everything after `position`."""
        return position >= self._base

    def is_exhausted(self, position: int) -> bool:
        """Whether a reader at `position` has everything that this log will ever have."""
        return self.closed and position >= self.last

    def since(self, position: int) -> list[tuple[int, Wire]] | None:
        """The chunks after `position`, at most 500; None if some of them are no longer in memory."""
        with self._lock:
            base, wires = self._base, self._wires
        if position < base:
            return None
        start = position - base
        return list(enumerate(wires[start : start + 500], position + 1))

    @contextmanager
    def subscribed(self) -> Iterator[Wake]:
        """A wake-up call for the running event loop, for the length of a `with`."""
        wake = Wake()
        with self._lock:
            self._wakes = (*self._wakes, wake)
        try:
            yield wake
        finally:
            with self._lock:
                self._wakes = tuple(one for one in self._wakes if one is not wake)


def live_log_expect(run_id: str) -> None:
    """A run is about to begin in this process for the first time: readers may wait for it here."""
    live_logs.setdefault(run_id, LiveLog())


def live_log_forget(run_id: str, live: LiveLog | None = None) -> None:
    """Take a log away (`live`: only if it is still this one); its readers look elsewhere."""
    found = live_logs.get(run_id)
    if found is not None and (live is None or found is live):
        del live_logs[run_id]
        found.close()


live_logs: dict[str, LiveLog] = {}
"""Run id → its log, for the runs of this process that are going on (and for a moment after)."""
