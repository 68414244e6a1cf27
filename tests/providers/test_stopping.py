"""Stopping an answer closes the connection at once: the service must not go on, and nobody pays for unread text."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, cast

import pytest

from processors.engine.chunks import Chunk
from processors.engine.errors import RunCancelled
from processors.engine.ports import AbortSignal
from tests.providers.asking import HELLO, answer
from tests.providers.conftest import MakeClient
from tests.providers.server import ModelServer, says

pytestmark = pytest.mark.asyncio(loop_scope="package")
SOON = 0.2
"""Seconds within which the service sees the connection closed."""


async def gone_within(server: ModelServer, since: float) -> float:
    await asyncio.wait_for(server.last.gone.wait(), 2)
    assert server.last.gone_at is not None
    return server.last.gone_at - since


def now() -> float:
    return asyncio.get_running_loop().time()


async def begun(connect: MakeClient, signal: AbortSignal | None = None) -> AsyncIterator[Chunk]:
    stream = connect().stream(HELLO, signal=signal)
    assert (await anext(stream)).text == "Hello"
    return stream


async def test_closing_the_stream_closes_the_socket(connect: MakeClient, server: ModelServer) -> None:
    server.plays(says("Hello"), asyncio.Event())
    stream = await begun(connect)
    since = now()
    await cast("Any", stream).aclose()
    assert await gone_within(server, since) < SOON


async def test_cancelling_the_reader_closes_the_socket(connect: MakeClient, server: ModelServer) -> None:
    server.plays(says("Hello"), asyncio.Event())
    reading = cast("Any", await begun(connect))

    async def read_on() -> None:
        async with aclosing(reading):
            await anext(reading)

    task = asyncio.ensure_future(read_on())
    await asyncio.sleep(0.01)
    since = now()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await gone_within(server, since) < SOON


async def test_cancelling_before_the_first_byte_closes_the_socket(
    connect: MakeClient, server: ModelServer
) -> None:
    server.plays(says("Hello"), before_head=asyncio.Event())
    task = asyncio.ensure_future(answer(connect()))
    await server.asked.wait()
    since = now()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await gone_within(server, since) < SOON


async def test_the_stop_signal_ends_a_silent_stream(connect: MakeClient, server: ModelServer) -> None:
    server.plays(says("Hello"), asyncio.Event())
    signal = AbortSignal()
    stream = await begun(connect, signal)
    asyncio.get_running_loop().call_later(0.02, signal.abort, "bob pressed Stop")
    since = now() + 0.02
    with pytest.raises(RunCancelled, match="bob pressed Stop"):
        await anext(stream)
    assert await gone_within(server, since) < SOON


async def test_the_stop_signal_ends_the_wait_for_the_first_byte(
    connect: MakeClient, server: ModelServer
) -> None:
    server.plays(says("Hello"), before_head=asyncio.Event())
    signal = AbortSignal()
    task = asyncio.ensure_future(answer(connect(), signal=signal))
    await server.asked.wait()
    since = now()
    signal.abort("bob pressed Stop")
    with pytest.raises(RunCancelled, match="bob pressed Stop"):
        await task
    assert await gone_within(server, since) < SOON


async def test_a_run_that_was_stopped_asks_nobody(connect: MakeClient, server: ModelServer) -> None:
    signal = AbortSignal()
    signal.abort()
    with pytest.raises(RunCancelled):
        await answer(connect(), signal=signal)
    assert server.exchanges == []
