"""Server-sent events: the same numbered log that the WebSocket reads."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, Final

from django.db import connections
from django.http import StreamingHttpResponse
from rest_framework.renderers import JSONRenderer

from agents.run_log import END, read

HEARTBEAT: Final = 15.0
"""Seconds of silence after which a comment is sent, so that proxies keep the connection."""
MOST_WAITING: Final = 256
"""Events that wait for a slow client; then its reader waits, and costs the run nothing."""


class EventRenderer(JSONRenderer):
    """Lets clients ask for events; errors that come before the stream are JSON."""

    media_type = "text/event-stream"


def connections_release() -> None:
    """Give this request's database connections back to the pool: what follows may take minutes."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()


def event_stream(source: AsyncGenerator[str, None]) -> StreamingHttpResponse:
    """A response of server-sent events. The view that returns it has done all its work with the database."""
    connections_release()
    answer = StreamingHttpResponse(with_heartbeats(source), content_type="text/event-stream; charset=utf-8")
    answer["Cache-Control"] = "no-cache"
    answer["X-Accel-Buffering"] = "no"
    return answer


async def with_heartbeats(source: AsyncGenerator[str, None]) -> AsyncIterator[str]:
    """The events, those that are ready together in one piece, and a comment when nothing came for a while."""
    pump = Pump(source)
    try:
        while True:
            piece = await pump.next(HEARTBEAT)
            if piece is None:
                return
            yield piece or ": still here\n\n"
    finally:
        await pump.close()


class Pump:
    """Reads ahead a little, in one task for the whole stream."""

    def __init__(self, source: AsyncGenerator[str, None]) -> None:
        self._ready: deque[str] = deque()
        self._some, self._room = asyncio.Event(), asyncio.Event()
        self._room.set()
        self._source = source
        self._task = asyncio.create_task(self._fill())

    async def _fill(self) -> None:
        try:
            async with aclosing(self._source):
                async for piece in self._source:
                    self._ready.append(piece)
                    self._some.set()
                    if len(self._ready) >= MOST_WAITING:
                        self._room.clear()
                        await self._room.wait()
        finally:
            self._some.set()

    async def next(self, patience: float) -> str | None:
        """Everything that is ready; "" when nothing came for `patience` seconds; None at the end. Raises what the source raised."""
        if not self._ready:
            if self._task.done():
                self._end()
                return None
            self._some.clear()
            try:
                async with asyncio.timeout(patience):
                    await self._some.wait()
            except TimeoutError:
                return ""
        if not self._ready:
            self._end()
            return None
        piece = "".join(self._ready)
        self._ready.clear()
        self._room.set()
        return piece

    def _end(self) -> None:
        if self._task.done() and not self._task.cancelled() and (error := self._task.exception()) is not None:
            raise error

    async def close(self) -> None:
        """Stop reading. The run goes on."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


def event(data: Any, *, name: str, number: int | None = None) -> str:
    """One event. The number becomes its id, so that `Last-Event-ID` resumes after it."""
    id = f"id: {number}\n" if number is not None else ""
    return f"{id}event: {name}\ndata: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n"


async def events_of(
    run_id: str, after: int, *, first: dict[str, Any] | None = None
) -> AsyncGenerator[str, None]:
    """The run's chunks (`chunk`) and its end (`end`); before them `run` with `first` if it is given."""
    if first is not None:
        yield event(first, name="run")
    async with aclosing(read(run_id, after=after)) as chunks:
        async for number, chunk in chunks:
            yield event(chunk, name="end" if chunk.get("type") == END else "chunk", number=number)
