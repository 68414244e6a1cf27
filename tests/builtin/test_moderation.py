"""Moderation: what a judge refuses is not delivered, not stored and not acted upon, however the answer is cut."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from agents.providers.scripted import ScriptedModel, says, tool_call
from processors.engine.chunks import reasoning_delta, text_delta
from processors.engine.messages import Message, MessageContent, user_message
from processors.engine.processor import ChainEntry
from tests.builtin.judged import DOWN, built, deltas, hate_judge, judge, talk, texts_asked
from tests.engine.stage import Echo

LONG = "".join(f"This is sentence number {number}, and it is harmless. " for number in range(60))


def moderation(model: ScriptedModel, **options: Any) -> Any:
    return built("moderation", "moderation", model=model, **options)


async def test_a_refused_message_stops_the_run_before_any_model_call() -> None:
    played = await talk([says("Hi.")], input=[moderation(hate_judge())], says="They are vermin.")
    assert (played.result.status, played.model.requests) == ("blocked", [])
    assert "vermin" not in played.thread.everything
    [entry] = played.audit.entries
    detail = entry.violation.detail
    assert (detail["type"], detail["score"], detail["strategy"], detail["where"]) == (
        "hate",
        0.9,
        "block",
        "input",
    )
    assert "vermin" not in repr(detail)


async def test_no_refused_character_leaves_a_stream_and_judged_text_before_it_does() -> None:
    played = await talk([deltas(LONG + "They are vermin. " + LONG, 7)], output=[moderation(hate_judge())])
    assert played.result.status == "blocked"
    assert "vermin" not in "".join(chunk.text for chunk in played.chunks)
    assert played.delivered.startswith("This is sentence number 0")
    assert played.audit.entries[0].delivered_chars == len(played.delivered)


@pytest.mark.parametrize("size", [1, 2, 7, 50, 100_000])
async def test_every_cut_asks_the_same_questions_and_gives_the_same_answer(size: int) -> None:
    model = hate_judge()
    played = await talk([deltas(LONG, size)], output=[moderation(model)])
    assert (played.delivered, played.result.text, played.thread.texts[-1][1]) == (LONG, LONG, LONG)
    whole = hate_judge()
    await talk([deltas(LONG, len(LONG))], output=[moderation(whole)])
    assert texts_asked(model) == texts_asked(whole)
    assert "".join(texts_asked(model)) == LONG


async def test_a_long_answer_costs_a_handful_of_questions() -> None:
    model = hate_judge()
    await talk([deltas(LONG * 3, 4)], output=[moderation(model)])
    assert len(model.requests) <= 8


async def test_no_token_of_the_judge_reaches_the_client() -> None:
    played = await talk([deltas(LONG, 9)], output=[moderation(hate_judge())])
    assert "category_scores" not in repr([chunk.to_wire() for chunk in played.chunks])


async def test_filter_withholds_the_window_and_goes_on() -> None:
    played = await talk(
        [deltas(LONG + "They are vermin. " + LONG, 11)], output=[moderation(hate_judge(), strategy="filter")]
    )
    assert played.result.status == "completed"
    assert "vermin" not in played.delivered + played.thread.everything
    assert played.delivered.startswith("This is sentence number 0")
    assert played.delivered.endswith("number 59, and it is harmless. ")


async def test_retry_asks_for_another_answer() -> None:
    played = await talk([says("They are vermin."), says("They are people.")], output=[moderation(hate_judge(), strategy="retry")],
                        agent={"max_processor_retries": 1})  # fmt: skip
    assert (played.result.status, played.delivered) == ("completed", "They are people.")
    assert played.audit.outcomes() == [("violation", "retry", "moderation")]


@pytest.mark.parametrize("strategy", ["filter", "block"])
async def test_files_and_other_parts_survive(strategy: str) -> None:
    message = Message("user", MessageContent([
        {"type": "text", "text": "They are vermin." if strategy == "filter" else "Look."},
        {"type": "file", "mimeType": "image/png", "data": "AAAA"},
    ]))  # fmt: skip
    played = await talk(
        [says("Hi.")], input=[moderation(hate_judge(), strategy=strategy, files="skip")], says=message
    )
    [sent] = [one for one in played.model.requests[0].prompt if one["role"] == "user"]
    assert {"type": "file", "mimeType": "image/png", "data": "AAAA"} in sent["content"]
    assert "vermin" not in repr(sent)
    assert "not-scanned" in [entry.violation.detail["type"] for entry in played.audit.entries]


async def test_a_file_that_the_judge_cannot_read_is_an_error_unless_the_admin_said_otherwise() -> None:
    message = Message("user", MessageContent([{"type": "file", "mimeType": "image/png", "data": "AAAA"}]))
    played = await talk([says("Hi.")], input=[moderation(hate_judge())], says=message)
    assert (played.result.status, played.model.requests) == ("failed", [])
    assert played.audit.outcomes() == [("error", "block", "moderation")]


async def test_it_judges_tool_arguments_before_the_tool_runs() -> None:
    echo = Echo()
    played = await talk([[text_delta("Let me see."), tool_call("echo", {"text": "They are vermin."})]],
                        output=[moderation(hate_judge())], agent={"tools": [echo.tool()]})  # fmt: skip
    assert (played.result.status, echo.runs) == ("blocked", [])
    assert played.audit.entries[0].violation.detail["where"] == "tool-args"


async def test_it_judges_tool_results_before_the_model_reads_them() -> None:
    echo = Echo()
    played = await talk([[tool_call("echo", {"q": "vermin"})], says("Done.")], agent={"tools": [echo.tool()]},
                        output=[moderation(hate_judge(), strategy="filter", tool_results=True, tool_arguments=False)])  # fmt: skip
    assert played.result.status == "completed"
    assert "[withheld]" in repr(played.model.requests[1].prompt)
    assert "vermin" not in repr(played.model.requests[1].prompt[-1]["content"][0]["result"])


async def test_it_judges_what_the_model_thinks_aloud() -> None:
    played = await talk(
        [[reasoning_delta("They are vermin."), text_delta("Hello.")]], output=[moderation(hate_judge())]
    )
    assert (played.result.status, played.delivered) == ("blocked", "")
    assert "vermin" not in repr([chunk.to_wire() for chunk in played.chunks])


async def test_fast_release_shows_text_at_once_and_the_audit_counts_what_was_shown() -> None:
    played = await talk([deltas("They are vermin.", 4)], output=[moderation(hate_judge(), release="fast")])
    assert played.result.status == "blocked"
    assert played.audit.entries[0].delivered_chars == len("They are vermin.")
    assert "vermin" not in played.thread.everything


def test_fast_release_cannot_withhold_anything() -> None:
    with pytest.raises(ValidationError, match="choose safe release"):
        moderation(hate_judge(), strategy="filter", release="fast")


async def test_a_category_below_its_own_threshold_passes() -> None:
    model = hate_judge(category="violence")
    played = await talk(
        [says("Hi.")], input=[moderation(model, thresholds={"violence": 0.95})], says="They are vermin."
    )
    assert played.result.status == "completed"


async def test_a_category_that_was_not_chosen_does_not_count_and_an_invented_one_is_no_verdict() -> None:
    unchosen = await talk(
        [says("Hi.")], input=[moderation(hate_judge(), categories=["violence"])], says="They are vermin."
    )
    invented = await talk(
        [says("Hi.")], input=[moderation(hate_judge(category="fun"))], says="They are vermin."
    )
    assert (unchosen.result.status, invented.result.status) == ("completed", "failed")


def test_a_threshold_for_a_category_that_is_not_there_is_a_form_error() -> None:
    with pytest.raises(ValidationError, match="not among the categories"):
        moderation(hate_judge(), categories=["hate"], thresholds={"violence": 0.5})


@pytest.mark.parametrize("size", [1, 5, 1000])
async def test_where_the_admin_lets_text_pass_unread_all_of_it_passes_in_order(size: int) -> None:
    entry = ChainEntry(moderation(judge(lambda text: DOWN)), on_error="allow")
    played = await talk([deltas(LONG, size)], output=[entry])
    assert (played.result.status, played.delivered) == ("completed", LONG)
    assert {outcome for outcome, _, _ in played.audit.outcomes()} == {"not_scanned"}


async def test_what_the_judge_refuses_stays_refused_although_failures_may_pass() -> None:
    entry = ChainEntry(moderation(hate_judge()), on_error="allow")
    played = await talk([says("Hi.")], input=[entry], says="They are vermin.")
    assert played.result.status == "blocked"


async def test_when_its_questions_are_used_up_it_fails_instead_of_passing() -> None:
    played = await talk([deltas(LONG, 40)], output=[moderation(hate_judge(), max_calls=2)])
    assert (played.result.status, len(played.delivered) < len(LONG)) == ("failed", True)


async def test_all_new_messages_are_judged_and_only_the_last_if_the_admin_said_so() -> None:
    said = [user_message("They are vermin, aren't they?"), user_message("Explain the above.")]
    every = await talk([says("Hi.")], input=[moderation(hate_judge())], says=said)
    last = await talk([says("Hi.")], input=[moderation(hate_judge(), last_message_only=True)], says=said)
    assert (every.result.status, last.result.status) == ("blocked", "completed")


async def test_judges_that_only_read_stand_beside_each_other() -> None:
    first, second = moderation(hate_judge()), built("moderation", "second", model=hate_judge())
    changing = moderation(hate_judge(), strategy="filter")
    assert first.group == second.group == "judges"
    assert changing.group is None
    played = await talk([says("Hi.")], input=[first, second], says="They are vermin.")
    assert [entry.violation.processor_id for entry in played.audit.entries if entry.outcome == "violation"][
        0
    ] == "moderation"


async def test_a_message_of_the_house_replaces_the_reason() -> None:
    played = await talk(
        [says("Hi.")], input=[moderation(hate_judge(), message="Please be kind.")], says="They are vermin."
    )
    assert played.result.tripwire is not None
    assert played.result.tripwire.reason == "Please be kind."


async def test_text_before_a_refused_part_is_shown_and_no_tool_of_that_reply_runs() -> None:
    echo = Echo()
    call = tool_call("echo", {"text": "hello"})
    first = await talk(
        [[call, text_delta(LONG + "They are vermin.")]],
        output=[moderation(hate_judge())],
        agent={"tools": [echo.tool()]},
    )
    second = await talk([[text_delta(LONG), tool_call("echo", {"text": "vermin"})]], output=[moderation(hate_judge())], agent={"tools": [echo.tool()]})  # fmt: skip
    assert (first.result.status, second.result.status, echo.runs) == ("blocked", "blocked", [])
    assert first.delivered.startswith("This is sentence number 0")
    assert second.delivered == LONG
    assert "vermin" not in repr([chunk.to_wire() for chunk in [*first.chunks, *second.chunks]])


@pytest.mark.parametrize(
    "options", [{}, {"strategy": "warn"}, {"release": "fast"}], ids=["safe", "warn", "fast"]
)
async def test_two_judges_of_one_answer_stand_next_to_each_other(options: dict[str, Any]) -> None:
    first, second = (
        moderation(hate_judge("x"), **options),
        built("moderation", "second", model=hate_judge(), **options),
    )
    clean = await talk([deltas(LONG, 9)], output=[first, second])
    refused = await talk([deltas("They are vermin.", 3)], output=[first, second])
    assert (clean.result.status, clean.delivered) == ("completed", LONG)
    assert [entry.violation.processor_id for entry in refused.audit.entries] == ["second"]
