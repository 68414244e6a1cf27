"""The scripted model does what its script says, call after call."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents.providers.scripted import Pause, ScriptedModel, finish, paced, says, tool_call
from processors.engine.chunks import Chunk, text_delta
from processors.engine.errors import ConfigError, ModelAPIError, RunCancelled
from processors.engine.ports import AbortSignal, ModelRequest

pytestmark = pytest.mark.asyncio


def asks(text: str) -> ModelRequest:
    return ModelRequest([{"role": "user", "content": [{"type": "text", "text": text}]}])


async def answer(model: ScriptedModel, text: str = "Hello") -> list[Chunk]:
    return [chunk async for chunk in model.stream(asks(text))]


def texts(chunks: list[Chunk]) -> list[str]:
    return [chunk.text for chunk in chunks if chunk.type == "text-delta"]


async def test_it_answers_call_after_call_and_adds_the_missing_finish() -> None:
    model = ScriptedModel(script=[says("Hello, Alice."), [tool_call("clock", {})]])
    first, second = await answer(model), await answer(model)
    assert texts(first) == ["Hello, Alice."]
    assert first[-1].payload == {
        "finishReason": "stop", "usage": {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}
    }  # fmt: skip
    assert [chunk.type for chunk in second] == ["tool-call", "finish"]
    assert (second[-1].payload or {})["finishReason"] == "tool-calls"


@pytest.mark.parametrize(
    ("cut", "pieces"),
    [(4, ["Hell", "o 👋🏽"]), (1, list("Hello 👋🏽")), ([1, 3], ["H", "ell", "o", " 👋🏽"])],
)
async def test_it_cuts_text_at_the_given_sizes(cut: Any, pieces: list[str]) -> None:
    assert texts(await answer(ScriptedModel(script=[says("Hello 👋🏽")], cut=cut))) == pieces


async def test_it_cuts_reasoning_too_and_leaves_other_chunks_whole() -> None:
    model = ScriptedModel(script=[[*says("", thinks="Hmmm"), tool_call("clock", {"zone": "UTC"})]], cut=2)
    chunks = await answer(model)
    assert [chunk.text for chunk in chunks] == ["Hm", "mm", "", ""]
    assert (chunks[2].payload or {})["args"] == {"zone": "UTC"}


async def test_it_refuses_a_size_below_one() -> None:
    with pytest.raises(ConfigError, match="at least one character"):
        ScriptedModel(cut=0)


async def test_it_raises_the_exceptions_of_its_script_after_what_came_before() -> None:
    model = ScriptedModel(script=[[text_delta("Hel"), ModelAPIError("Busy.", status=503, retryable=True)]])
    seen: list[Chunk] = []
    with pytest.raises(ModelAPIError, match="Busy"):
        async for chunk in model.stream(asks("Hello")):
            seen.append(chunk)
    assert texts(seen) == ["Hel"]
    assert model.open_streams == 0


async def test_a_function_answers_from_the_request() -> None:
    model = ScriptedModel(script=lambda request: says(request.prompt[-1]["content"][0]["text"].upper()))
    assert texts(await answer(model, "hello")) == ["HELLO"]
    assert texts(await answer(model, "again")) == ["AGAIN"]


async def test_it_says_which_call_is_missing_from_the_script() -> None:
    model = ScriptedModel("scripted/short", [says("Once.")])
    await answer(model)
    with pytest.raises(ConfigError, match=r"'scripted/short' has 1 calls, and this is call 2"):
        await answer(model)


async def test_it_repeats_the_last_call_when_told_so() -> None:
    model = ScriptedModel(script=[says("Yes."), says("No.")], repeat_last=True)
    assert [texts(await answer(model)) for _ in range(3)] == [["Yes."], ["No."], ["No."]]


async def test_it_remembers_the_prompts_as_they_were() -> None:
    model = ScriptedModel(script=[says("Hello.")])
    request = asks("before")
    async for _ in model.stream(request):
        pass
    request.prompt[0]["content"][0]["text"] = "after"
    assert model.requests[0].prompt[0]["content"][0]["text"] == "before"


async def test_it_counts_streams_that_nobody_closed() -> None:
    model = ScriptedModel(script=[says("Hello.")])
    stream = model.stream(asks("Hello"))
    await anext(stream)
    assert model.open_streams == 1
    await stream.aclose()  # type: ignore[attr-defined]
    assert model.open_streams == 0


async def test_a_pause_ends_when_its_event_is_set() -> None:
    gate = asyncio.Event()
    model = ScriptedModel(script=[[Pause(until=gate), text_delta("Now."), finish()]])
    task = asyncio.ensure_future(answer(model))
    await asyncio.sleep(0.01)
    assert not task.done()
    gate.set()
    assert texts(await task) == ["Now."]


@pytest.mark.parametrize("pause", [Pause(60), Pause(until=asyncio.Event())])
async def test_stopping_the_run_ends_a_pause_at_once(pause: Pause) -> None:
    signal = AbortSignal()
    stream = ScriptedModel(script=[[pause]]).stream(asks("Hello"), signal=signal)
    asyncio.get_running_loop().call_later(0.01, signal.abort, "alice pressed Stop")
    with pytest.raises(RunCancelled, match="alice pressed Stop"):
        async with asyncio.timeout(1):
            await anext(stream)


async def test_it_keeps_a_pace() -> None:
    loop = asyncio.get_running_loop()
    start = loop.time()
    assert texts(await answer(ScriptedModel(script=[paced(["a", "b"], 0.01)]))) == ["a", "b"]
    assert texts(await answer(ScriptedModel(script=[says("abcd")], cut=2, pace=0.01))) == ["ab", "cd"]
    assert loop.time() - start >= 0.04
