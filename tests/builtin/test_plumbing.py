"""Batches, model choice, structured answers, and providers that fail or are strict."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from agents.providers.scripted import ScriptedModel, says, tool_call
from processors.builtin import batch_parts, provider_history
from processors.engine.chunks import Chunk, reasoning_delta, text_delta
from processors.engine.errors import ModelAPIError
from processors.engine.messages import Message, MessageContent, assistant_message, user_message
from processors.engine.ports import AbortSignal
from tests.builtin.judged import DOWN, built, deltas, judge, talk
from tests.engine.stage import Echo, Thread

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


def texts(chunks: list[Chunk]) -> list[str]:
    return [chunk.text for chunk in chunks if chunk.type == "text-delta"]


# Batches


async def test_deltas_are_joined_in_groups_and_the_rest_comes_at_the_end() -> None:
    played = await talk([deltas("abcde", 1)], output=[built("batch-parts", batch_size=2)])
    assert texts(played.chunks) == ["ab", "cd", "e"]


async def test_text_never_moves_past_a_call_or_into_another_block() -> None:
    echo = Echo()
    script = [
        [reasoning_delta("hm"), text_delta("a"), text_delta("b", block="two"), tool_call("echo", {})],
        says("c"),
    ]
    played = await talk(script, output=[built("batch-parts", batch_size=9)], agent={"tools": [echo.tool()]})
    wanted = [
        chunk.text or chunk.type
        for chunk in played.chunks
        if chunk.type in ("text-delta", "reasoning-delta", "tool-call")
    ]
    assert wanted == ["hm", "a", "b", "tool-call", "c"]


def test_what_providers_say_beside_the_text_is_kept() -> None:
    held = [
        Chunk("text-delta", {"id": "t", "text": "a", "providerMetadata": {"x": 1}}),
        text_delta("b", block="t"),
    ]
    joined = batch_parts._joined(held)
    assert joined is not None
    assert (joined.text, (joined.payload or {})["providerMetadata"]) == ("ab", {"x": 1})


@settings(deadline=None, max_examples=60)
@given(pieces=st.lists(st.text(max_size=4), max_size=12), size=st.integers(1, 5))
async def test_batches_lose_nothing(pieces: list[str], size: int) -> None:
    played = await talk(
        [[text_delta(piece) for piece in pieces]], output=[built("batch-parts", batch_size=size)]
    )
    assert played.delivered == "".join(pieces)


# Model choice


def chooser(number: int, probability: float = 0.9) -> ScriptedModel:
    return judge(lambda text: {"choice": number, "probability": probability})


def selection(model: ScriptedModel, strong: ScriptedModel, **options: Any) -> Any:
    choices = [
        {"model": ScriptedModel("scripted/small"), "use_for": "greetings"},
        {"model": strong, "use_for": "hard questions"},
    ]
    return built("model-selection", model=model, choices=choices, **options)


async def test_the_chosen_model_answers_every_step_and_is_chosen_once() -> None:
    echo, choosing = Echo(), chooser(2)
    strong = ScriptedModel("scripted/strong", [[tool_call("echo", {})], says("42.")])
    played = await talk([], input=[selection(choosing, strong)], agent={"tools": [echo.tool()]})
    assert (played.result.text, len(choosing.requests), len(strong.requests)) == ("42.", 1, 2)


@pytest.mark.parametrize(
    "model", [chooser(2, 0.1), chooser(7), judge(lambda text: DOWN), judge(lambda text: "the second")]
)
async def test_an_unsure_or_failing_choice_leaves_the_agents_own_model(model: ScriptedModel) -> None:
    played = await talk([says("Hi.")], input=[selection(model, ScriptedModel("scripted/strong"))])
    assert (played.result.text, len(played.model.requests)) == ("Hi.", 1)


async def test_a_failing_choice_is_an_error_if_the_admin_wants_that() -> None:
    guard = selection(judge(lambda text: DOWN), ScriptedModel("scripted/strong"), on_failure="fail")
    assert (await talk([says("Hi.")], input=[guard])).result.status == "failed"


# Structured answers


async def test_a_second_model_puts_the_answer_into_shape() -> None:
    shaper = judge(lambda text: {"city": "Oslo"} if "Oslo" in text else {})
    played = await talk(
        [says("It is Oslo.")], output=[built("structured-output", json_schema=SCHEMA, model=shaper)]
    )
    assert (played.delivered, played.result.object) == ("It is Oslo.", {"city": "Oslo"})
    assert [(chunk.payload or {})["object"] for chunk in played.chunks if chunk.type == "object-result"] == [
        {"city": "Oslo"}
    ]


async def test_an_answer_that_does_not_fit_is_asked_for_again() -> None:
    guard = built("structured-output", json_schema=SCHEMA)
    played = await talk(
        [says("Oslo."), says('{"city": "Oslo"}')], output=[guard], agent={"max_processor_retries": 1}
    )
    assert (played.result.status, played.result.object) == ("completed", {"city": "Oslo"})


async def test_in_the_input_chain_the_model_itself_is_given_the_schema() -> None:
    played = await talk(
        [says('{"city": "Oslo"}')], input=[built("structured-output", json_schema='{"type": "object"}')]
    )
    assert played.model.requests[0].response_schema == {"type": "object"}
    assert played.result.object == {"city": "Oslo"}


@pytest.mark.parametrize(
    ("options", "status", "value"),
    [
        ({"error_strategy": "strict"}, "blocked", None),
        ({"error_strategy": "warn"}, "completed", None),
        (
            {"error_strategy": "fallback", "fallback_value": '{"city": "unknown"}'},
            "completed",
            {"city": "unknown"},
        ),
    ],
)
async def test_an_answer_that_never_fits_ends_as_the_admin_says(
    options: dict[str, Any], status: str, value: Any
) -> None:
    played = await talk([says("Oslo.")], output=[built("structured-output", json_schema=SCHEMA, **options)])
    assert (played.result.status, played.result.object) == (status, value)
    assert len(played.audit.entries) == 1


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"json_schema": "{"}, "no JSON"),
        ({"json_schema": {"type": "string"}}, "must describe an object"),
        ({"json_schema": {"type": "object", "properties": 1}}, "no valid JSON Schema"),
        ({"json_schema": SCHEMA, "error_strategy": "fallback"}, "does not match the schema"),
    ],
)
def test_schemas_and_values_that_cannot_work_are_form_errors(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        built("structured-output", **options)


# Providers that fail


def failing(status: int | None, message: str = "Busy.", **values: Any) -> list[Any]:
    return [ModelAPIError(message, status=status, **values)]


@pytest.mark.parametrize(
    "error",
    [
        failing(503),
        failing(429),
        failing(None, retryable=True),
        [text_delta("He"), *failing(None, retryable=True)],
    ],
)
async def test_an_error_that_may_pass_is_tried_again_once(error: list[Any]) -> None:
    played = await talk([error, says("Hello.")], error=[built("stream-error-retry", delay=0)])
    assert (played.result.status, played.delivered) == ("completed", "Hello.")
    twice = await talk([error, error, says("Hello.")], error=[built("stream-error-retry", delay=0)])
    assert twice.result.status == "failed"


@pytest.mark.parametrize("error", [failing(401), failing(400), failing(429, retry_after=3600.0)])
async def test_an_error_that_stays_or_asks_for_too_long_a_wait_is_final(error: list[Any]) -> None:
    played = await talk([error, says("Hello.")], error=[built("stream-error-retry", delay=0)])
    assert (played.result.status, len(played.model.requests)) == ("failed", 1)


async def test_the_providers_own_wait_is_kept() -> None:
    start = time.monotonic()
    await talk([failing(429, retry_after=0.15), says("Hello.")], error=[built("stream-error-retry", delay=0)])
    assert time.monotonic() - start >= 0.15


async def test_stop_ends_the_wait() -> None:
    signal = AbortSignal()
    asyncio.get_running_loop().call_later(0.05, signal.abort)
    start = time.monotonic()
    played = await talk(
        [failing(429, retry_after=20.0), says("Hello.")],
        error=[built("stream-error-retry")],
        abort_signal=signal,
    )
    assert (played.result.status, time.monotonic() - start < 2) == ("cancelled", True)


async def test_a_model_that_wants_the_last_word_from_people_gets_it_and_nothing_is_stored() -> None:
    said = [user_message("Tell me a story."), assistant_message("Once upon a time")]
    refusal = failing(
        400,
        "This model does not support assistant message prefill. The conversation must end with a user message.",
    )
    played = await talk(
        [refusal, says(" there was Alice.")], says=said, error=[built("prefill-error-handler")]
    )
    assert played.model.requests[1].prompt[-1] == {
        "role": "user",
        "content": [{"type": "text", "text": "Continue."}],
    }
    assert (played.result.status, "Continue." in played.thread.everything) == ("completed", False)
    other = await talk(
        [failing(400, "Bad temperature."), says("x")], says=said, error=[built("prefill-error-handler")]
    )
    assert other.result.status == "failed"


# Histories of other providers


def odd_history() -> Thread:
    call = {"state": "result", "toolCallId": "call:1/ä", "toolName": "clock", "args": {}, "result": "12:00"}
    parts = [
        {"type": "reasoning", "text": "Hm."},
        {"type": "tool-invocation", "toolInvocation": call},
        {"type": "text", "text": "Noon."},
    ]
    return Thread(
        [user_message("Time?"), Message("assistant", MessageContent(parts)), user_message("Thanks.")]
    )


async def test_ids_turns_and_reasoning_are_put_right_for_a_strict_provider() -> None:
    thread = odd_history()
    played = await talk([says("Hi.")], input=[built("provider-history", drop_reasoning=True)], thread=thread)
    prompt = played.model.requests[0].prompt
    assert [message["role"] for message in prompt] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert {
        part["toolCallId"] for message in prompt[1:] for part in message["content"] if "toolCallId" in part
    } == {"call_1__"}
    assert "Hm." not in repr(prompt)
    assert "call:1/ä" in thread.everything and "Hm." in thread.everything


async def test_a_complaint_about_reasoning_leaves_it_out_and_tries_again() -> None:
    guard = built("provider-history")
    played = await talk(
        [failing(400, "Invalid signature in thinking block."), says("Hi.")],
        error=[guard],
        thread=odd_history(),
    )
    assert ["Hm." in repr(request.prompt) for request in played.model.requests] == [True, False]


def test_calls_without_results_and_results_without_calls_are_put_right() -> None:
    prompt = [
        {
            "role": "tool",
            "content": [{"type": "tool-result", "toolCallId": "lost", "toolName": "t", "result": 1}],
        },
        {
            "role": "assistant",
            "content": [{"type": "tool-call", "toolCallId": "open", "toolName": "t", "args": {}}],
        },
        {"role": "user", "content": [{"type": "text", "text": "Hello?"}]},
    ]
    paired = provider_history._paired(prompt)
    assert [message["role"] for message in paired if message["content"]] == ["assistant", "tool", "user"]
    assert paired[2]["content"][0]["isError"] is True
