"""The logs of the runs of this process, in memory: written by the runner's thread, read from any event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

WINDOW: Final = 4096
"""Chunks kept in memory per run; a reader that falls further behind reads the rest from Redis."""

Wire = dict[str, Any]


class Wake:
    """Wakes one reader, in its own event loop, however often it is asked between two looks."""

    __slots__ = ("_armed", "_event", "_loop")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        self._armed = True

    def clear(self) -> None:
        """Called by the reader before it looks."""
        self._event.clear()
        self._armed = True

    async def wait(self) -> None:
        await self._event.wait()

    def __call__(self) -> None:
        """Called by the writer, in any thread. A reader whose loop is closed is gone."""
        if self._armed:
            self._armed = False
            try:
                self._loop.call_soon_threadsafe(self._event.set)
            except RuntimeError:
                return


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


live_logs: dict[str, LiveLog] = {}
"""Run id → its log, for the runs of this process that are going on (and for a moment after)."""
