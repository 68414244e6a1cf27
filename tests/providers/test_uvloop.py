"""The web server runs on uvloop, whose transports and timers are its own; the direct client works there too."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agents.providers.endpoint import endpoint_check
from agents.providers.openai_compatible import OpenAICompatibleModel
from agents.providers.timeouts import Timeouts
from processors.engine.errors import ModelAPIError
from tests.providers.asking import HELLO, answer, text_of
from tests.providers.server import ModelServer, ends, says

uvloop: Any = pytest.importorskip("uvloop", reason="uvloop does not exist on this platform")


def on_uvloop(scene: Callable[[ModelServer, OpenAICompatibleModel], Awaitable[None]]) -> None:
    """Play a scene between a service and the direct client."""

    async def main() -> None:
        server = ModelServer()
        await server.start()
        try:
            endpoint = endpoint_check(server.url, allow_private=True)
            model = OpenAICompatibleModel("a/m", name="m", endpoint=endpoint, timeouts=Timeouts(between=0.2))
            await scene(server, model)
        finally:
            await server.stop()

    uvloop.run(main())


def test_it_reads_an_answer_larger_than_its_buffer() -> None:
    async def scene(server: ModelServer, model: OpenAICompatibleModel) -> None:
        server.plays(*[says(str(number % 10) * 10_000) for number in range(30)], ends())
        assert len(text_of(await answer(model))) == 300_000

    on_uvloop(scene)


def test_it_gives_up_on_silence() -> None:
    async def scene(server: ModelServer, model: OpenAICompatibleModel) -> None:
        server.plays(says("Hello"), asyncio.Event())
        with pytest.raises(ModelAPIError, match="fell silent"):
            await answer(model)

    on_uvloop(scene)


def test_closing_the_stream_closes_the_socket() -> None:
    async def scene(server: ModelServer, model: OpenAICompatibleModel) -> None:
        server.plays(says("Hello"), asyncio.Event())
        stream: Any = model.stream(HELLO)
        await anext(stream)
        await stream.aclose()
        await asyncio.wait_for(server.last.gone.wait(), 0.2)

    on_uvloop(scene)
