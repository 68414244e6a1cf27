"""Token limits: the same count however a text arrives, old messages go first, and an answer really ends."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from agents.providers.scripted import ScriptedModel, says, tool_call
from processors.builtin.token_count import RunningCount, count, estimate
from processors.engine.chunks import text_delta
from processors.engine.messages import assistant_message, user_message
from tests.builtin.judged import built, deltas, talk
from tests.engine.stage import Echo, Thread

TEXT = "The quick brown fox jumps over the lazy dog, again and again and again."


def limiter(limit: int, **options: Any) -> Any:
    return built("token-limiter", "limiter", limit=limit, **options)


@settings(deadline=None, max_examples=60)
@given(
    text=st.text(max_size=60),
    cuts=st.lists(st.integers(1, 5), min_size=1, max_size=10),
    limit=st.integers(1, 12),
)
def test_every_cut_counts_the_same_and_keeps_the_same_characters(
    text: str, cuts: list[int], limit: int
) -> None:
    whole = RunningCount()
    expected = text[: whole.add(text, limit)]
    counter, at, turn, kept = RunningCount(), 0, 0, ""
    while at < len(text):
        piece = text[at : at + cuts[turn % len(cuts)]]
        within = counter.add(piece, limit)
        kept += piece[:within]
        if within < len(piece):
            break
        at, turn = at + len(piece), turn + 1
    assert kept == expected
    assert estimate(expected) <= limit


@pytest.mark.parametrize(
    "text", [TEXT, "Was kostet die Straßenbahn nach Zürich?", "def add(a, b):\n    return a + b\n"]
)
def test_the_estimate_is_close_to_the_exact_count(text: str) -> None:
    assert estimate(text) == pytest.approx(count(text, "exact"), rel=0.35)


async def test_the_oldest_messages_go_and_the_stored_thread_stays() -> None:
    thread = Thread(
        [
            user_message("First question about trains."),
            assistant_message("First answer."),
            user_message("Second question."),
            assistant_message("Second answer."),
        ]
    )
    played = await talk([says("Hi.")], input=[limiter(60)], thread=thread)
    assert [message["role"] for message in played.model.requests[0].prompt] == [
        "system",
        "user",
        "assistant",
        "user",
    ]
    assert "trains" not in repr(played.model.requests[0].prompt)
    assert len(thread.messages) == 6


async def test_calls_and_their_results_go_together() -> None:
    echo = Echo()
    script = [[tool_call("echo", {"text": "x " * 300})], says("Done.")]
    played = await talk(script, input=[limiter(120)], agent={"tools": [echo.tool()]})
    last = played.model.requests[-1].prompt
    assert [message["role"] for message in last] == ["system", "user"]


@pytest.mark.parametrize(("limit", "rule"), [(10, "systemTokens"), (36, "systemTokens")])
async def test_instructions_or_a_last_message_that_do_not_fit_stop_the_run(limit: int, rule: str) -> None:
    played = await talk([says("Hi.")], input=[limiter(limit)], says=TEXT)
    assert played.result.tripwire is not None
    assert (played.result.status, rule in played.result.tripwire.metadata) == ("blocked", True)


async def test_an_answer_is_cut_at_its_limit_and_the_model_is_stopped() -> None:
    said: list[int] = []

    def lines(request: Any) -> Any:
        for number in range(1000):
            said.append(number)
            yield text_delta(f"word{number} ")

    model = ScriptedModel(script=[lines])
    played = await talk([], output=[limiter(10)], agent={"model_settings": {}}, input=[_SwitchTo(model)])
    assert (played.result.status, played.result.finish_reason) == ("completed", "length")
    assert (played.delivered, estimate(played.delivered)) == ("word0 word1 word2 word3 word4", 10)
    assert len(said) < 15
    assert model.open_streams == 0
    assert [chunk.data["limit"] for chunk in played.chunks if chunk.type == "data-token-limit-reached"] == [
        10
    ]
    assert "token-limit" not in played.thread.everything


class _SwitchTo:
    """Lets a scripted model that counts what it said answer."""

    id = "switch"

    def __init__(self, model: ScriptedModel) -> None:
        self._model = model

    def process_input_step(self, args: Any) -> dict[str, Any]:
        return {"model": self._model}


@pytest.mark.parametrize("size", [1, 3, 1000])
async def test_the_cut_is_at_the_same_place_however_the_answer_arrives(size: int) -> None:
    played = await talk([deltas(TEXT, size)], output=[limiter(6)])
    assert played.delivered == "The quick brown fox jumps over"


async def test_an_answer_that_is_too_long_may_stop_the_run_instead() -> None:
    played = await talk([deltas(TEXT, 3)], output=[limiter(6, strategy="abort")])
    assert played.result.status == "blocked"


async def test_the_tokens_of_a_withdrawn_attempt_do_not_count() -> None:
    class Once:
        id = "once"

        def process_output_step(self, args: Any) -> None:
            if args.retry_count == 0:
                args.abort("Again.", retry=True)

    played = await talk(
        [deltas(TEXT[:40], 3), deltas(TEXT[:40], 3)],
        output=[limiter(10), Once()],
        agent={"max_processor_retries": 1},
    )
    assert played.delivered == TEXT[:40]


async def test_part_mode_limits_each_block_and_reports_once_for_each() -> None:
    script = [
        [
            text_delta("one two three four", block="a"),
            text_delta(" five", block="a"),
            text_delta("six seven eight", block="b"),
        ]
    ]
    played = await talk(script, output=[limiter(2, count_mode="part")])
    assert played.delivered == "one twosix seven"
    assert len(played.audit.entries) == 2


def test_making_more_room_than_there_is_is_a_form_error() -> None:
    with pytest.raises(ValidationError, match="as large as the limit"):
        limiter(50, at_max_remove_tokens=50)
