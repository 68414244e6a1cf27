"""The WebSocket: a skin over the run services. Frames come in, chunks go out; nothing is decided here.

client → server   message.send, run.resume, run.stop, tool.decide, ping
server → client   run.started, chunk, run.ended, error, pong
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from channels.generic.websocket import AsyncWebsocketConsumer

from agents.bridge import in_database
from agents.run_log import END, read
from agents.services.runs import RunRefused, run_begin, run_decide, run_get, run_stop
from processors.engine.errors import GatehouseError

LONGEST_FRAME: Final = 256 * 1024
"""Characters of one frame."""
FRAMES_PER_SECOND: Final = 20
MOST_WATCHED: Final = 16
"""Runs that one socket may watch at a time."""
CLOSE_FLOOD: Final = 4429
CLOSE_ANONYMOUS: Final = 4401


class BadFrame(GatehouseError):
    """The frame cannot be read; the message says what is wrong."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ChatConsumer(AsyncWebsocketConsumer):
    """One socket of one signed-in person."""

    async def connect(self) -> None:
        self.watching: dict[str, asyncio.Task[None]] = {}
        self.second, self.frames = 0, 0
        self.user = self.scope.get("user")
        await self.accept()
        if self.user is None or not self.user.is_authenticated:
            await self.send_frame({"type": "error", "code": "not_signed_in", "message": "Sign in again.", "retryable": False})
            await self.close(CLOSE_ANONYMOUS)

    async def disconnect(self, code: int) -> None:
        """Readers go; runs go on."""
        for task in self.watching.values():
            task.cancel()
        await asyncio.gather(*self.watching.values(), return_exceptions=True)

    async def send_frame(self, frame: dict[str, Any]) -> None:
        await self.send(text_data=json.dumps(frame, ensure_ascii=False, separators=(",", ":")))

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Read one frame and answer it, or say what is wrong with it. The socket survives everything but a flood."""
        if self.user is None or not self.user.is_authenticated:
            return
        if self._floods():
            await self.send_frame({"type": "error", "code": "rate_limited", "retryable": True,
                                   "message": "Too many frames; connect again more slowly."})  # fmt: skip
            await self.close(CLOSE_FLOOD)
            return
        frame: dict[str, Any] = {}
        try:
            frame = self._parsed(text_data, bytes_data)
            await self._handler(frame)(frame)
        except GatehouseError as error:
            answer: dict[str, Any] = {"type": "error", "code": error.code, "message": str(error), "retryable": error.retryable}
            answer.update({key: frame[key] for key in ("clientMessageId", "runId") if isinstance(frame.get(key), str)})
            await self.send_frame(answer)

    def _floods(self) -> bool:
        second = int(time.monotonic())
        self.frames = self.frames + 1 if second == self.second else 1
        self.second = second
        return self.frames > FRAMES_PER_SECOND

    @staticmethod
    def _parsed(text: str | None, data: bytes | None) -> dict[str, Any]:
        if text is None:
            raise BadFrame("bad_frame", f"Send text frames; this one was binary ({len(data or b'')} bytes).")
        if len(text) > LONGEST_FRAME:
            raise BadFrame("too_long", f"The frame has {len(text):,} characters; at most {LONGEST_FRAME:,} are possible.")
        try:
            frame = json.loads(text)
        except ValueError:
            raise BadFrame("bad_frame", "The frame is no JSON.") from None
        if not isinstance(frame, dict) or not isinstance(frame.get("type"), str):
            raise BadFrame("bad_frame", "A frame is a JSON object with a “type”.")
        return frame

    def _handler(self, frame: dict[str, Any]) -> Callable[[dict[str, Any]], Awaitable[None]]:
        handlers = {"message.send": self.on_send, "run.resume": self.on_resume, "run.stop": self.on_stop,
                    "tool.decide": self.on_decide, "ping": self.on_ping}  # fmt: skip
        handler = handlers.get(frame["type"])
        if handler is None:
            raise BadFrame("unknown_type", f"There is no frame type {frame['type'][:60]!r}; use one of: {', '.join(handlers)}.")
        return handler

    async def on_ping(self, frame: dict[str, Any]) -> None:
        await self.send_frame({"type": "pong"})

    async def on_send(self, frame: dict[str, Any]) -> None:
        run = await run_begin(
            user=self.user, agent_slug=frame.get("agent") or "", text=frame.get("text"), thread_id=frame.get("threadId"),
            client_message_id=frame.get("clientMessageId"), channel="websocket",
        )  # fmt: skip
        await self.send_frame({
            "type": "run.started", "runId": str(run.pk), "threadId": str(run.thread_id) if run.thread_id else None,
            "messageId": str(run.input_message_id), "clientMessageId": frame.get("clientMessageId"), "agent": frame["agent"],
        })  # fmt: skip
        self._watch(str(run.pk), 0)

    async def on_resume(self, frame: dict[str, Any]) -> None:
        run = await in_database(lambda: run_get(user=self.user, run_id=frame.get("runId") or ""))
        after = frame.get("after", 0)
        if not isinstance(after, int) or isinstance(after, bool) or after < 0:
            raise BadFrame("bad_frame", "“after” is the number of the last chunk seen, 0 for none.")
        self._watch(str(run.pk), after)

    async def on_stop(self, frame: dict[str, Any]) -> None:
        await in_database(lambda: run_stop(user=self.user, run_id=frame.get("runId") or ""))

    async def on_decide(self, frame: dict[str, Any]) -> None:
        if not isinstance(frame.get("approved"), bool):
            raise BadFrame("bad_frame", "“approved” must be true or false.")
        await in_database(lambda: run_decide(
            user=self.user, run_id=frame.get("runId") or "", tool_call_id=frame.get("toolCallId") or "",
            approved=frame["approved"], reason=str(frame.get("reason") or ""), args=frame.get("args"),
        ))  # fmt: skip
        self._watch(str(frame["runId"]), int(frame.get("after") or 0))

    def _watch(self, run_id: str, after: int) -> None:
        """Follow a run; a second request for the same run replaces the first."""
        previous = self.watching.pop(run_id, None)
        if previous is not None:
            previous.cancel()
        if len(self.watching) >= MOST_WATCHED:
            raise RunRefused("rate_limited", "This connection watches too many runs already.")
        task = asyncio.create_task(self._follow(run_id, after))
        self.watching[run_id] = task
        task.add_done_callback(lambda done: self.watching.pop(run_id, None) if self.watching.get(run_id) is done else None)

    async def _follow(self, run_id: str, after: int) -> None:
        """Send each chunk with its number. `send` waits for the socket, so a slow client only slows itself."""
        async for number, chunk in read(run_id, after=after):
            if chunk.get("type") == END:
                await self.send_frame({"type": "run.ended", "runId": run_id, "status": chunk.get("status"), "seq": number})
                return
            await self.send_frame({"type": "chunk", "runId": run_id, "seq": number, "chunk": chunk})
