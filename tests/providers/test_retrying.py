"""A call is repeated only while nothing was said, and only when that can help."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents.providers.retrying import RetryingModel
from agents.providers.scripted import ScriptedModel, says
from processors.engine.chunks import text_delta
from processors.engine.errors import ConfigError, ModelAPIError, RunCancelled
from processors.engine.ports import AbortSignal
from tests.providers.asking import HELLO, answer, text_of


def busy(**values: Any) -> list[Any]:
    return [ModelAPIError("Busy.", status=503, retryable=True, **values)]


def retrying(*script: Any, **values: Any) -> tuple[RetryingModel, ScriptedModel]:
    model = ScriptedModel("scripted/busy", list(script))
    return RetryingModel(model, first_wait=0.001, **values), model


async def test_it_tries_again_until_the_service_answers() -> None:
    model, script = retrying(busy(), busy(), says("Hello."))
    assert text_of(await answer(model)) == "Hello."
    assert len(script.requests) == 3
    assert model.id == "scripted/busy"


async def test_it_gives_up_after_its_retries() -> None:
    model, script = retrying(busy(), busy(), busy(), says("Hello."), max_retries=2)
    with pytest.raises(ModelAPIError, match="Busy"):
        await answer(model)
    assert len(script.requests) == 3


async def test_it_does_not_repeat_what_was_half_said() -> None:
    model, script = retrying([text_delta("Hel"), *busy()], says("Hello."))
    with pytest.raises(ModelAPIError):
        await answer(model)
    assert len(script.requests) == 1
    assert script.open_streams == 0


async def test_it_does_not_repeat_what_cannot_succeed() -> None:
    model, script = retrying([ModelAPIError("Wrong key.", status=401)], says("Hello."))
    with pytest.raises(ModelAPIError, match="Wrong key"):
        await answer(model)
    assert len(script.requests) == 1


async def test_it_waits_as_long_as_the_service_asks() -> None:
    loop = asyncio.get_running_loop()
    model, _ = retrying(busy(retry_after=0.08), says("Hello."))
    start = loop.time()
    await answer(model)
    assert loop.time() - start >= 0.08


async def test_it_does_not_come_back_before_a_wait_that_is_too_long() -> None:
    model, script = retrying(busy(retry_after=3_600), says("Hello."))
    with pytest.raises(ModelAPIError) as caught:
        await answer(model)
    assert caught.value.retry_after == 3_600
    assert len(script.requests) == 1


async def test_stopping_the_run_ends_the_wait() -> None:
    signal = AbortSignal()
    model, script = retrying(busy(retry_after=20), says("Hello."))
    task = asyncio.ensure_future(answer(model, HELLO, signal=signal))
    await asyncio.sleep(0.01)
    signal.abort("alice pressed Stop")
    with pytest.raises(RunCancelled, match="alice pressed Stop"):
        await asyncio.wait_for(task, 1)
    assert len(script.requests) == 1


def test_a_negative_number_of_retries_is_refused() -> None:
    with pytest.raises(ConfigError, match="negative"):
        retrying(max_retries=-1)
