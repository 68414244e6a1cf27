"""A real HTTP server on loopback that plays an OpenAI-compatible service, scene after scene."""

from __future__ import annotations

import asyncio
import json
import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

Step = bytes | float | asyncio.Event | Literal["cut"]
"""What the service does next: send bytes, be silent for seconds or until an event, or cut the connection."""


@dataclass
class Scene:
    """How the service answers one request. framed: chunked transfer encoding; else the body ends with the socket."""

    steps: list[Step]
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    framed: bool = True
    before_head: float | asyncio.Event = 0.0


@dataclass
class Exchange:
    """One request as the service saw it. sent: bytes of the body handed to the socket so far."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    sent: int = 0
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    gone_at: float | None = None


class ModelServer:
    """Answers each request with the next scene. connections: how many were opened. asked: set by a request."""

    def __init__(self) -> None:
        self.scenes: list[Scene] = []
        self.exchanges: list[Exchange] = []
        self.connections = 0
        self.asked = asyncio.Event()
        self.closes_next = False
        """Close the connection on which the next request comes, without an answer."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, tls: ssl.SSLContext | None = None) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}/v1"

    async def stop(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def plays(self, *steps: Step, **values: Any) -> None:
        """Add a scene."""
        self.scenes.append(Scene(list(steps), **values))

    @property
    def last(self) -> Exchange:
        return self.exchanges[-1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()
            self._tasks.discard(task)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Play a scene. True if the connection stays for another."""
        exchange = await _request(reader)
        if self.closes_next:
            self.closes_next = False
            return False
        self.exchanges.append(exchange)
        self.asked.set()
        scene = self.scenes.pop(0)
        watch = asyncio.ensure_future(self._watch(reader, exchange))
        try:
            await _idle(scene.before_head)
            kept = scene.headers.get("connection") == "keep-alive"
            headers = scene.headers if kept else {"connection": "close", **scene.headers}
            if scene.framed:
                headers = {"transfer-encoding": "chunked", **headers}
            lines = [
                f"HTTP/1.1 {scene.status} Scene",
                *(f"{name}: {value}" for name, value in headers.items()),
            ]
            writer.write("\r\n".join([*lines, "", ""]).encode())
            await writer.drain()
            for step in scene.steps:
                if step == "cut":
                    return False
                if isinstance(step, bytes):
                    writer.write(b"%x\r\n%b\r\n" % (len(step), step) if scene.framed else step)
                    await writer.drain()
                    exchange.sent += len(step)
                else:
                    await _idle(step)
            if scene.framed:
                writer.write(b"0\r\n\r\n")
            await writer.drain()
        finally:
            watch.cancel()
            with suppress(asyncio.CancelledError):
                await watch
        if not kept:
            writer.close()
            await writer.wait_closed()
        return kept

    async def _watch(self, reader: asyncio.StreamReader, exchange: Exchange) -> None:
        """Note the moment at which the client is gone."""
        with suppress(OSError):
            if await reader.read(1):
                return
        exchange.gone_at = asyncio.get_running_loop().time()
        exchange.gone.set()


async def _request(reader: asyncio.StreamReader) -> Exchange:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Exchange(method, path, headers, json.loads(body) if body else None)


async def _idle(pause: float | asyncio.Event) -> None:
    await (pause.wait() if isinstance(pause, asyncio.Event) else asyncio.sleep(pause))


def event(value: Any) -> bytes:
    """An event of the stream."""
    return b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n"


def delta(index: int = 0, reason: str | None = None, **values: Any) -> bytes:
    """An event with one choice's delta."""
    choice = {"index": index, "delta": values, "finish_reason": reason}
    return event(
        {"id": "chat-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    )


def says(*texts: str) -> bytes:
    """Events with a text delta each."""
    return b"".join(delta(content=text) for text in texts)


def calls(index: int, arguments: str = "", *, id: str | None = None, name: str | None = None) -> bytes:
    """An event with a tool call's delta."""
    function = {"arguments": arguments, **({"name": name} if name else {})}
    call = {"index": index, "function": function, **({"id": id, "type": "function"} if id else {})}
    return delta(tool_calls=[call])


def usage(read: int = 7, written: int = 5, **details: Any) -> bytes:
    """The event with the usage and no choices."""
    counts = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written, **details}
    return event({"id": "chat-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [],
                  "usage": counts})  # fmt: skip


def ends(reason: str = "stop") -> bytes:
    """The last delta, the usage and the end mark."""
    return delta(reason=reason) + usage() + event(b"[DONE]")
