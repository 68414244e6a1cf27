"""The WebSocket: a skin over the run services. Frames come in, chunks go out; nothing is decided here."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from types import SimpleNamespace
from typing import Any, Final

from channels.generic.websocket import AsyncWebsocketConsumer
from django.contrib.auth import get_user
from django.contrib.sessions.backends.db import SessionStore
from redis import RedisError

from agents.bridge import in_database
from agents.live_log import live_logs
from agents.models import Run
from agents.redis_link import redis_client
from agents.run_log import END, key_of, read
from agents.services.runs import RunRefused, run_decide, run_get, run_launch, run_start, run_stop
from agents.stored_chunks import final_status
from chat.frames import BadFrame, FloodGate, error_frame, number_of, parsed, written
from processors.engine.errors import GatehouseError

log = logging.getLogger("gatehouse.chat")
MOST_WATCHED: Final = 32
"""Runs that one socket may watch at a time."""
SEND_PATIENCE: Final = 30.0
"""Seconds that a client may leave a frame unread. Then it is dropped; it connects again and resumes where it was."""
LOOK_EVERY: Final = 2.0
"""Seconds between two looks at a run that waits for a decision."""
YIELD_EVERY: Final = 32
"""Frames after which a replay lets others have the event loop."""
CLOSE_ANONYMOUS: Final = 4401
CLOSE_SLOW: Final = 4408
CLOSE_FLOOD: Final = 4429


class ChatConsumer(AsyncWebsocketConsumer):
    """One socket of one signed-in person."""

    async def connect(self) -> None:
        self.watching: dict[str, asyncio.Task[None]] = {}
        self.gate = FloodGate()
        self.group = ""
        self.decided = asyncio.Event()
        person = await self.person()
        if person is None:
            await self.accept()
            await self.send_frame(error_frame("not_signed_in", "Sign in first."))
            await self.close(CLOSE_ANONYMOUS, reason="not signed in")
            return
        self.group = f"person.{person.pk}"
        try:
            await self.channel_layer.group_add(self.group, self.channel_name)
        except (RedisError, OSError):
            log.warning("Redis cannot be reached; tabs do not hear of each other.")
        await self.accept()

    async def disconnect(self, code: int) -> None:
        """Readers go; runs go on."""
        for task in self.watching.values():
            task.cancel()
        await asyncio.gather(*self.watching.values(), return_exceptions=True)
        if self.group:
            try:
                await self.channel_layer.group_discard(self.group, self.channel_name)
            except (RedisError, OSError):
                log.debug("Redis cannot be reached.")

    async def person(self) -> Any:
        """Who this is, as the session says now: signing out, a new password or a switched-off account ends it. None: nobody."""
        session = self.scope.get("session")
        key = getattr(session, "session_key", None)
        return await in_database(signed_in, key) if key else None

    async def send_frame(self, frame: dict[str, Any]) -> None:
        await self.send(text_data=written(frame))

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Read one frame and answer it, or say what is wrong with it. The socket survives everything but a flood."""
        if self.gate.is_shut():
            await self.send_frame(
                error_frame("rate_limited", "Too many frames; connect again and go slower.", retryable=True)
            )
            await self.close(CLOSE_FLOOD, reason="too many frames")
            return
        frame: dict[str, Any] = {}
        try:
            frame = parsed(text_data, bytes_data)
            handler = self.handler(frame["type"])
            self.user = await self.person()
            if self.user is None:
                await self.send_frame(
                    error_frame("not_signed_in", "You have been signed out. Sign in again.", about=frame)
                )
                await self.close(CLOSE_ANONYMOUS, reason="signed out")
                return
            await handler(frame)
        except GatehouseError as error:
            await self.send_frame(error_frame(error.code, str(error), retryable=error.retryable, about=frame))
        except Exception as error:
            note("A frame could not be answered", error)
            words = "Something went wrong on our side. Try again."
            await self.send_frame(error_frame("internal_error", words, retryable=True, about=frame))

    def handler(self, kind: str) -> Callable[[dict[str, Any]], Awaitable[None]]:
        """What answers a frame. Raises BadFrame."""
        handlers: dict[str, Callable[[dict[str, Any]], Awaitable[None]]] = {
            "message.send": self.on_send, "run.resume": self.on_resume, "run.stop": self.on_stop,
            "tool.decide": self.on_decide, "ping": self.on_ping,
        }  # fmt: skip
        if kind not in handlers:
            raise BadFrame(
                "unknown_type", f"There is no frame type {kind[:60]!r}; use one of: {', '.join(handlers)}."
            )
        return handlers[kind]

    async def on_ping(self, frame: dict[str, Any]) -> None:
        await self.send_frame({"type": "pong"})

    async def on_send(self, frame: dict[str, Any]) -> None:
        started = await in_database(message_send, self.user, frame)
        await self.send_frame(
            {"type": "run.started", "clientMessageId": frame.get("clientMessageId"), **started}
        )
        self.watch(started["runId"], 0)
        try:
            await self.channel_layer.group_send(
                self.group,
                {
                    "type": "thread.run",
                    "by": self.channel_name,
                    "threadId": started["threadId"],
                    "runId": started["runId"],
                },
            )
        except (RedisError, OSError):
            log.warning("Redis cannot be reached; other tabs are not told.")

    async def thread_run(self, event: dict[str, Any]) -> None:
        """Another tab of the same person began a run."""
        if event["by"] != self.channel_name:
            await self.send_frame(
                {"type": "thread.run", "threadId": event["threadId"], "runId": event["runId"]}
            )

    async def on_resume(self, frame: dict[str, Any]) -> None:
        after = number_of(frame, "after")
        run = await in_database(run_get, user=self.user, run_id=frame.get("runId") or "")
        self.watch(str(run.pk), after)

    async def on_stop(self, frame: dict[str, Any]) -> None:
        await in_database(run_stop, user=self.user, run_id=frame.get("runId") or "")

    async def on_decide(self, frame: dict[str, Any]) -> None:
        if not isinstance(frame.get("approved"), bool):
            raise BadFrame("bad_frame", "“approved” must be true or false.")
        run = await in_database(
            run_decide, user=self.user, run_id=frame.get("runId") or "", tool_call_id=frame.get("toolCallId") or "",
            approved=frame["approved"], reason=str(frame.get("reason") or ""), args=frame.get("args"),
        )  # fmt: skip
        self.decided.set()
        if str(run.pk) not in self.watching:
            self.watch(str(run.pk), number_of(frame, "after"))

    def watch(self, run_id: str, after: int) -> None:
        """Follow a run; a second request for the same run replaces the first. Raises RunRefused."""
        previous = self.watching.pop(run_id, None)
        if previous is not None:
            previous.cancel()
        if len(self.watching) >= MOST_WATCHED:
            raise RunRefused("rate_limited", "This connection watches too many runs already.")
        task = asyncio.create_task(self.follow(run_id, after))
        self.watching[run_id] = task
        task.add_done_callback(
            lambda done: self.watching.pop(run_id) if self.watching.get(run_id) is done else None
        )

    async def follow(self, run_id: str, after: int) -> None:
        """Send each chunk with its number, over pauses for approval, to the run's end."""
        try:
            while True:
                status, after = await self.send_chunks(run_id, after)
                if status != Run.Status.WAITING:
                    return
                while not await in_database(has_gone_on, run_id, after):
                    self.decided.clear()
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self.decided.wait(), LOOK_EVERY)
        except TimeoutError:
            await self.close(CLOSE_SLOW, reason="frames were not read")
        except Exception as error:
            note("A run could not be followed", error)
            await self.send_frame(error_frame("internal_error", "The answer cannot be shown at the moment.", retryable=True,
                                              about={"runId": run_id}))  # fmt: skip

    async def send_chunks(self, run_id: str, after: int) -> tuple[str, int]:
        """One stretch of a run's log. `send` waits for the socket, so nothing is buffered for a slow client.

        Returns the status at its end, and the end's number. Raises TimeoutError when the client does not read.
        """
        async with aclosing(read(run_id, after=after)) as chunks:
            async for number, chunk in chunks:
                if chunk.get("type") == END:
                    status = str(chunk.get("status"))
                    await self.send_frame(
                        {"type": "run.ended", "runId": run_id, "status": status, "seq": number}
                    )
                    return status, number
                async with asyncio.timeout(SEND_PATIENCE):
                    await self.send_frame({"type": "chunk", "runId": run_id, "seq": number, "chunk": chunk})
                if number % YIELD_EVERY == 0:
                    await asyncio.sleep(0)
        return Run.Status.INTERRUPTED, after


def has_gone_on(run_id: str, number: int) -> bool:
    """Whether a run that paused at chunk `number` has done anything since; it may wait again already."""
    if final_status(run_id) != Run.Status.WAITING:
        return True
    live = live_logs.get(run_id)
    if live is not None and live.last > number:
        return True
    try:
        found: Any = redis_client().xrevrange(key_of(run_id), count=1)
    except RedisError:
        return False
    return bool(found) and int(found[0][0].split(b"-")[0]) > number


def signed_in(session_key: str) -> Any:
    """The person of a session, None if it has ended."""
    request: Any = SimpleNamespace(session=SessionStore(session_key))
    person = get_user(request)
    return person if person.is_authenticated else None


def message_send(user: Any, frame: dict[str, Any]) -> dict[str, Any]:
    """Begin the run that a frame asks for, and say which it is. Raises RunRefused."""
    run = run_start(
        user=user, agent_slug=frame.get("agent") or "", text=frame.get("text"), thread_id=frame.get("threadId"),  # type: ignore[arg-type]
        client_message_id=frame.get("clientMessageId"), channel="websocket",
    )  # fmt: skip
    run_launch(run)
    thread = str(run.thread_id) if run.thread_id else None
    return {
        "runId": str(run.pk),
        "threadId": thread,
        "messageId": str(run.input_message_id),
        "agent": run.agent.slug,
    }


def note(what: str, error: Exception) -> None:
    """Log where a bug is. Its words are left out: they may hold what somebody wrote."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    log.error("%s: %s at %s:%s.", what, type(error).__name__, frame.filename, frame.lineno)
