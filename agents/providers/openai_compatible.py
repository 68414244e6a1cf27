"""The direct client for OpenAI and everything that speaks its `/chat/completions`."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote

from agents.providers.endpoint import Endpoint
from agents.providers.failures import broken, rejection
from agents.providers.http_connection import Connection
from agents.providers.idle_connections import give_back, take
from agents.providers.openai_request import request_body
from agents.providers.reply import Reply
from agents.providers.sse import EventReader
from agents.providers.timeouts import Timeouts
from processors.engine.chunks import Chunk
from processors.engine.errors import ModelAPIError, RunCancelled
from processors.engine.ports import AbortSignal, ModelRequest

OPENAI_HOST: Final = "api.openai.com"
EVENTS_PER_TURN: Final = 64
"""Events handed out before other tasks get a turn, when the buffer is full and the reader never waits."""
LONGEST_ERROR: Final = 64 * 1024
LONGEST_BODY: Final = 16 * 1024 * 1024


class OpenAICompatibleModel:
    """A `LanguageModel` over an OpenAI-compatible endpoint.

    id: `provider/name` as shown. name: the model's name at the service. api_key: empty for services without keys.
    ssl_context: other certificate authorities than the system's.
    It never repeats a call (see `retrying.RetryingModel`).
    """

    def __init__(
        self, id: str, *, name: str, endpoint: Endpoint, api_key: str = "", timeouts: Timeouts | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:  # fmt: skip
        self._id, self._name, self._endpoint = id, name, endpoint
        self._api_key, self._timeouts, self._ssl_context = api_key, timeouts or Timeouts(), ssl_context
        self._option_keys = tuple(dict.fromkeys(("openai", "openai-compatible", id.partition("/")[0])))

    @property
    def id(self) -> str:
        return self._id

    def __repr__(self) -> str:
        return f"OpenAICompatibleModel({self._id!r}, host={self._endpoint.host!r})"

    async def stream(
        self, request: ModelRequest, *, signal: AbortSignal | None = None
    ) -> AsyncIterator[Chunk]:
        """One call. See `LanguageModel`; raises ModelAPIError, or RunCancelled when `signal` is set."""
        body, warnings = request_body(request, model=self._name, option_keys=self._option_keys)
        if self._endpoint.host == OPENAI_HOST and "max_tokens" in body:
            # OpenAI's reasoning models refuse the older name.
            body["max_completion_tokens"] = body.pop("max_tokens")
        stopped = _watch(signal)
        connection: Connection | None = None
        reply, limit, since_turn = Reply(secret=self._api_key), self._timeouts.first_byte, 0
        try:
            connection = await self._asked(json.dumps(body).encode("ascii"), signal, stopped)
            if connection.headers.get("content-type", "").startswith("application/json"):
                for chunk in reply.read(await read_whole(connection, self._timeouts)):
                    yield chunk
                reply.ended = True
            reader = EventReader()
            while not reply.ended:
                data = await connection.read(limit)
                events = reader.feed(data) if data else reader.flush()
                for event in events:
                    for chunk in reply.read(event):
                        yield chunk
                if not data:
                    break
                limit = self._timeouts.between
                since_turn += len(events)
                if since_turn >= EVENTS_PER_TURN:
                    since_turn = 0
                    await asyncio.sleep(0)
            for chunk in reply.end(warnings):
                yield chunk
        finally:
            if stopped is not None:
                stopped.cancel()
            if connection is not None:
                give_back(connection, answered=reply.ended)

    async def _asked(
        self, body: bytes, signal: AbortSignal | None, stopped: asyncio.Task[None] | None
    ) -> Connection:
        """A connection whose answer has begun with status 200. Raises ModelAPIError for any other."""
        connection = await _unless_stopped(
            signal,
            stopped,
            begin(
                self._endpoint, "POST", "/chat/completions", bearer(self._api_key), body,
                timeouts=self._timeouts, ssl_context=self._ssl_context,
            ),
        )  # fmt: skip
        exchange = connection.exchanges

        def stop(task: asyncio.Task[None]) -> None:
            # A stop that comes as the answer ends must not reach the next one on the same connection.
            if signal is not None and not task.cancelled() and connection.exchanges == exchange:
                connection.cancel(signal.reason)

        if stopped is not None:
            stopped.add_done_callback(stop)
        try:
            await check_status(connection, self._timeouts, self._api_key)
        except BaseException:
            connection.close()
            raise
        return connection


async def fetch_models(
    endpoint: Endpoint, *, headers: list[tuple[str, str]], timeouts: Timeouts, secret: str = "",
    path: str = "/models",
) -> list[str]:  # fmt: skip
    """The names that `GET /models` lists. headers: how the key is sent; secret: the key itself, kept out of errors.

    Raises ConfigError or ModelAPIError.
    """
    connection = await begin(endpoint, "GET", path, headers, timeouts=timeouts)
    try:
        await check_status(connection, timeouts, secret)
        listed: Any = json.loads(await read_whole(connection, timeouts))
        rows = listed if isinstance(listed, list) else listed.get("data") or listed.get("models") or []
        return [str(row["id"] if "id" in row else row["name"]) for row in rows]
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
        raise broken(
            "The service answered with something else than a list of models. Check the address; "
            "it usually ends in /v1.",
            "malformed_answer", retryable=False,
        ) from None  # fmt: skip
    finally:
        connection.close()


def bearer(api_key: str) -> list[tuple[str, str]]:
    """The header that carries a key; none for a service without keys."""
    return [("authorization", f"Bearer {api_key}")] if api_key else []


async def begin(
    endpoint: Endpoint, method: str, path: str, headers: list[tuple[str, str]], body: bytes = b"", *,
    timeouts: Timeouts, ssl_context: ssl.SSLContext | None = None,
) -> Connection:  # fmt: skip
    """Send a request and wait for the head of its answer."""
    headers = [
        ("host", endpoint.host_header), ("accept", "text/event-stream, application/json"),
        ("accept-encoding", "identity"), ("user-agent", "gatehouse"), *headers,
    ]  # fmt: skip
    if body:
        headers.append(("content-type", "application/json"))
    target = quote(endpoint.path + path, safe="/:@!$&'()*+,;=~%?")
    while True:
        connection = await take(endpoint, timeouts, ssl_context)
        try:
            connection.send(method, target, headers, body)
            await connection.read_head(timeouts.first_byte)
        except ModelAPIError as problem:
            connection.close()
            # The service closed a kept connection before it saw this request: a new one is tried.
            if connection.exchanges > 1 and connection.untouched and problem.provider_code == "disconnected":
                continue
            raise
        except BaseException:
            connection.close()
            raise
        return connection


async def check_status(connection: Connection, timeouts: Timeouts, secret: str) -> None:
    """Raises the ModelAPIError that the answer's status and body mean, unless it is a success."""
    status, headers = connection.status, connection.headers
    if 200 <= status < 300:
        if headers.get("content-type", "").startswith("text/html"):
            raise broken(
                "The address answers with a web page. Check it; a model service's usually ends in /v1.",
                "malformed_answer", status=status, retryable=False,
            )  # fmt: skip
        if headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            raise broken("The model's service compresses its answer unasked.", "malformed_answer",
                         status=status, retryable=False)  # fmt: skip
        return
    body = b""
    with suppress(ModelAPIError):
        while len(body) < LONGEST_ERROR and (data := await connection.read(min(5.0, timeouts.between))):
            body += data
    raise rejection(status, headers, body, secret=secret)


async def read_whole(connection: Connection, timeouts: Timeouts) -> bytes:
    """The whole body. Raises ModelAPIError if it does not end."""
    pieces, size, limit = [], 0, timeouts.first_byte
    while data := await connection.read(limit):
        pieces.append(data)
        size += len(data)
        limit = timeouts.between
        if size > LONGEST_BODY:
            raise broken("The model's service sent an answer without an end.", "malformed_answer")
    return b"".join(pieces)


def _watch(signal: AbortSignal | None) -> asyncio.Task[None] | None:
    """A task that ends when the run is stopped. Raises RunCancelled if it is stopped already."""
    if signal is None:
        return None
    if signal.aborted:
        raise RunCancelled(f"The run was stopped: {signal.reason}.")
    return asyncio.ensure_future(signal.wait())


async def _unless_stopped(
    signal: AbortSignal | None, stopped: asyncio.Task[None] | None, opening: Coroutine[Any, Any, Connection]
) -> Connection:
    """The opened connection; a stopped run ends the wait for it."""
    if stopped is None or signal is None:
        return await opening
    task = asyncio.ensure_future(opening)
    try:
        await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
    except BaseException:
        _drop(task)
        raise
    if task.done() and not stopped.done():
        return task.result()
    _drop(task)
    raise RunCancelled(f"The run was stopped: {signal.reason}.")


def _drop(task: asyncio.Task[Connection]) -> None:
    """Nobody wants the connection any more: stop opening it, or close it if it stands."""

    def close(task: asyncio.Task[Connection]) -> None:
        if not task.cancelled() and task.exception() is None:
            task.result().close()

    task.cancel()
    task.add_done_callback(close)
