"""What a service says arrives as our chunks, whichever client brings it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from processors.engine.ports import ModelRequest, ToolSpec
from tests.providers.asking import HELLO, answer, of_type, text_of
from tests.providers.conftest import SECRET, MakeClient
from tests.providers.server import ModelServer, calls, delta, ends, event, says, usage

pytestmark = pytest.mark.asyncio(loop_scope="package")


async def test_text_comes_delta_by_delta(connect: MakeClient, server: ModelServer) -> None:
    server.plays(delta(role="assistant", content=""), says("Hel", "lo, ", "Zoë 👋🏽"), ends())
    chunks = await answer(connect())
    assert [chunk.text for chunk in chunks if chunk.type == "text-delta"] == ["Hel", "lo, ", "Zoë 👋🏽"]
    assert chunks[-1].type == "finish"
    assert server.last.headers["authorization"] == f"Bearer {SECRET}"
    assert server.last.body["messages"] == [{"role": "user", "content": "Hello"}]
    assert server.last.body["stream_options"] == {"include_usage": True}


async def test_the_finish_says_what_it_cost(connect: MakeClient, server: ModelServer) -> None:
    details: Any = {
        "prompt_tokens_details": {"cached_tokens": 3}, "completion_tokens_details": {"reasoning_tokens": 2}
    }  # fmt: skip
    server.plays(says("Hi."), delta(reason="stop"), usage(11, 4, **details), event(b"[DONE]"))
    (finish,) = of_type(await answer(connect()), "finish")
    assert finish["usage"] == {
        "inputTokens": 11, "outputTokens": 4, "totalTokens": 15, "cachedInputTokens": 3, "reasoningTokens": 2
    }  # fmt: skip


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("tool_calls", "tool-calls"),
        ("content_filter", "content-filter"),
    ],
)
async def test_finish_reasons_have_our_names(
    connect: MakeClient, server: ModelServer, theirs: str, ours: str
) -> None:
    server.plays(says("Hi."), ends(theirs))
    (finish,) = of_type(await answer(connect()), "finish")
    assert finish["finishReason"] == ours


async def test_a_tool_call_comes_in_pieces_and_then_whole(connect: MakeClient, server: ModelServer) -> None:
    server.plays(
        calls(0, id="call_1", name="weather"), calls(0, '{"ci'), calls(0, 'ty": "Paris"}'), ends("tool_calls")
    )
    chunks = await answer(connect())
    assert of_type(chunks, "tool-call-input-streaming-start") == [
        {"toolCallId": "call_1", "toolName": "weather"}
    ]
    pieces = [piece["argsTextDelta"] for piece in of_type(chunks, "tool-call-delta")]
    assert "".join(pieces) == '{"city": "Paris"}'
    assert of_type(chunks, "tool-call") == [
        {"toolCallId": "call_1", "toolName": "weather", "args": {"city": "Paris"}}
    ]
    assert of_type(chunks, "finish")[0]["finishReason"] == "tool-calls"


async def test_parallel_tool_calls_stay_apart(connect: MakeClient, server: ModelServer) -> None:
    server.plays(
        calls(0, '{"city": "Par', id="call_1", name="weather"), calls(1, '{"zone"', id="call_2", name="time"),
        calls(0, 'is"}'), calls(1, ': "UTC"}'), calls(2, id="call_3", name="ping"), ends("tool_calls"),
    )  # fmt: skip
    whole = of_type(await answer(connect()), "tool-call")
    assert [(call["toolCallId"], call["toolName"], call["args"]) for call in whole] == [
        ("call_1", "weather", {"city": "Paris"}), ("call_2", "time", {"zone": "UTC"}), ("call_3", "ping", {}),
    ]  # fmt: skip


async def test_arguments_that_are_no_object_travel_as_they_came(
    connect: MakeClient, server: ModelServer
) -> None:
    server.plays(calls(0, '{"city": "Par', id="call_1", name="weather"), ends("length"))
    (call,) = of_type(await answer(connect()), "tool-call")
    assert (call["args"], call["invalidArgs"]) == ({}, '{"city": "Par')


async def test_reasoning_is_told_apart_from_text(connect: MakeClient, server: ModelServer) -> None:
    server.plays(delta(reasoning_content="Let me "), delta(reasoning_content="see."), says("42"), ends())
    chunks = await answer(connect())
    assert "".join(chunk.text for chunk in chunks if chunk.type == "reasoning-delta") == "Let me see."
    assert text_of(chunks) == "42"


async def test_only_the_first_of_two_choices_is_heard(connect: MakeClient, server: ModelServer) -> None:
    server.plays(
        delta(content="Yes"),
        delta(1, content="NO"),
        delta(content=", Alice."),
        delta(1, reason="stop"),
        ends(),
    )
    assert text_of(await answer(connect())) == "Yes, Alice."


async def test_an_answer_may_come_byte_by_byte(connect: MakeClient, server: ModelServer) -> None:
    stream = says("Grüße, ", "Zoë 👋🏽") + ends()
    server.plays(*(stream[at : at + 1] for at in range(len(stream))))
    assert text_of(await answer(connect())) == "Grüße, Zoë 👋🏽"


async def test_comments_that_keep_the_line_open_are_skipped(connect: MakeClient, server: ModelServer) -> None:
    server.plays(b": processing\n\n", says("Hi."), b": still here\n\n", ends())
    assert text_of(await answer(connect())) == "Hi."


async def test_tools_and_settings_reach_the_service(connect: MakeClient, server: ModelServer) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    request = ModelRequest(
        HELLO.prompt, tools=[ToolSpec("weather", "Tells the weather.", schema)],
        tool_choice={"type": "tool", "toolName": "weather"},
        settings={"temperature": 0.5, "maxOutputTokens": 9},
        provider_options={"openai": {"parallel_tool_calls": False}},
    )  # fmt: skip
    server.plays(says("Hi."), ends())
    await answer(connect(), request)
    body = server.last.body
    function = {"name": "weather", "description": "Tells the weather.", "parameters": schema}
    assert body["tools"] == [{"type": "function", "function": function}]
    assert body["tool_choice"] == {"type": "function", "function": {"name": "weather"}}
    assert (body["temperature"], body["max_tokens"], body["parallel_tool_calls"]) == (0.5, 9, False)


async def test_a_slow_consumer_holds_the_service_back_and_loses_nothing(
    connect: MakeClient, server: ModelServer
) -> None:
    """10 MB are not read into memory while nobody wants them."""
    count, size = 160, 64 * 1024
    server.plays(*[says(f"{number:>{size}}") for number in range(count)], ends())
    stream = connect().stream(HELLO)
    first = await anext(stream)
    await asyncio.sleep(0.4)
    assert server.last.sent < count * size * 0.6
    numbers = [int(first.text), *[int(chunk.text) async for chunk in stream if chunk.text]]
    assert numbers == list(range(count))


async def test_a_slow_consumer_is_no_silent_service(connect: MakeClient, server: ModelServer) -> None:
    server.plays(*[says(word) for word in "abcdef"], ends())
    heard = ""
    async for chunk in connect(between=0.2).stream(HELLO):
        heard += chunk.text
        await asyncio.sleep(0.06)
    assert heard == "abcdef"
