"""A policy in plain words, groundedness and languages: the other guardrails that read texts as a whole."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from agents.providers.scripted import ScriptedModel, says, tool_call
from processors.engine.messages import user_message
from tests.builtin.judged import DOWN, asked_text, built, deltas, judge, talk
from tests.engine.stage import Echo

POLICY = "No advice on medicines. General health tips are fine."
GERMAN = "Guten Morgen, ich hätte gern zwei Brötchen und einen Kaffee, bitte."
ENGLISH = "Good morning, I would like two rolls and a coffee, please."


def pill_judge(rewritten: str | None = None, confidence: float = 0.9) -> ScriptedModel:
    return judge(
        lambda text: {
            "violates": "pill" in text,
            "confidence": confidence,
            "reason": "It names a pill.",
            "rewritten": rewritten,
        }
    )


def policy(model: ScriptedModel, **options: Any) -> Any:
    return built("policy-judge", "policy", model=model, policy=POLICY, name="medicines", **options)


async def test_the_policy_and_its_examples_are_what_the_judge_is_asked_about() -> None:
    model = pill_judge()
    guard = policy(model, refused_examples=["Take two aspirins."], allowed_examples=["Drink enough water."])
    await talk([says("Hi.")], input=[guard])
    system = model.requests[0].prompt[0]["content"]
    assert all(words in system for words in (POLICY, "Take two aspirins.", "Drink enough water."))


async def test_a_text_that_breaks_the_policy_stops_the_run_and_names_the_policy() -> None:
    played = await talk([says("Hi.")], input=[policy(pill_judge())], says="Which pill?")
    assert played.result.tripwire is not None
    assert (played.result.status, played.result.tripwire.metadata["rule"]) == ("blocked", "medicines")


async def test_a_judge_that_is_not_sure_enough_does_not_count() -> None:
    played = await talk([says("Hi.")], input=[policy(pill_judge(confidence=0.3))], says="Which pill?")
    assert played.result.status == "completed"


@pytest.mark.parametrize("size", [1, 6, 1000])
async def test_a_reworded_answer_is_what_is_shown_and_stored(size: int) -> None:
    guard = policy(pill_judge("Ask a doctor."), strategy="rewrite")
    played = await talk([deltas("Take this pill.", size)], output=[guard])
    assert (played.delivered, played.result.text) == ("Ask a doctor.", "Ask a doctor.")
    assert "pill" not in played.thread.everything


async def test_a_refusal_without_a_rewording_blocks_even_where_failures_may_pass() -> None:
    guard = policy(pill_judge(None), strategy="rewrite")
    played = await talk([says("Take this pill.")], output=[guard])
    assert (played.result.status, played.delivered) == ("blocked", "")


async def test_a_question_is_reworded_before_the_model_sees_it() -> None:
    played = await talk(
        [says("Hi.")],
        input=[policy(pill_judge("How do I stay healthy?"), strategy="rewrite")],
        says="Which pill?",
    )
    assert "pill" not in repr(played.model.requests[0].prompt) + played.thread.everything


async def test_the_judges_words_are_kept_only_if_the_admin_wants_that() -> None:
    silent = await talk([says("Hi.")], input=[policy(pill_judge())], says="Which pill?")
    telling = await talk([says("Hi.")], input=[policy(pill_judge(), include_reason=True)], says="Which pill?")
    assert "judge" not in silent.audit.entries[0].violation.detail
    assert telling.audit.entries[0].violation.detail["judge"] == "It names a pill."


def test_an_example_in_both_lists_is_a_form_error() -> None:
    with pytest.raises(ValidationError, match="both lists"):
        policy(pill_judge(), refused_examples=["x"], allowed_examples=["x"])


# Groundedness


def support_judge() -> ScriptedModel:
    """Supports only texts about four degrees."""
    return judge(
        lambda text: {
            "supported": 1.0 if "4 degrees" in text.rpartition("Text:")[2] else 0.2,
            "unsupported": 1,
        }
    )


async def test_an_answer_that_its_tools_do_not_support_is_refused() -> None:
    echo = Echo("weather")
    script = [[tool_call("weather", {"celsius": 4})], says("It is 40 degrees.")]
    guard = built("groundedness", model=support_judge(), strategy="block")
    played = await talk(script, output=[guard], agent={"tools": [echo.tool()]})
    assert (played.result.status, played.delivered) == ("blocked", "")


async def test_the_judge_is_shown_the_results_of_this_run_and_the_fixed_source() -> None:
    model, echo = support_judge(), Echo("weather")
    guard = built("groundedness", model=model, sources="Degrees are Celsius.")
    played = await talk(
        [[tool_call("weather", {"celsius": 4})], says("It is 4 degrees.")],
        output=[guard],
        agent={"tools": [echo.tool()]},
    )
    asked = asked_text(model.requests[0])
    assert '"celsius": 4' in asked and "Degrees are Celsius." in asked
    assert (played.delivered, played.audit.entries) == ("It is 4 degrees.", [])


async def test_an_answer_without_any_source_passes_or_is_refused_as_the_admin_says() -> None:
    lenient = await talk(
        [says("Hello!")], output=[built("groundedness", model=support_judge(), strategy="block")]
    )
    strict = await talk(
        [says("Hello!")],
        output=[built("groundedness", model=support_judge(), strategy="block", without_sources="refuse")],
    )
    assert (lenient.result.status, strict.result.status) == ("completed", "blocked")


# Languages


def language(**options: Any) -> Any:
    return built("language-detector", "language", **options)


async def test_it_notes_the_language_with_the_message_and_lets_it_pass() -> None:
    message = user_message(GERMAN)
    played = await talk([says("Hi.")], input=[language()], says=message)
    [stored] = [one for one in played.thread.messages.values() if one.role == "user"]
    assert stored.content.metadata["language_detection"]["iso_code"] == "de"
    assert (played.result.status, played.audit.entries) == ("completed", [])


@pytest.mark.parametrize(
    ("text", "status"), [(GERMAN, "blocked"), (ENGLISH, "completed"), ("Ja.", "completed")]
)
async def test_it_stops_messages_in_other_languages_that_are_long_enough(text: str, status: str) -> None:
    played = await talk([says("Hi.")], input=[language(strategy="block")], says=text)
    assert played.result.status == status


async def test_an_answer_in_another_language_is_asked_for_again() -> None:
    played = await talk(
        [deltas(GERMAN, 5), says(ENGLISH)],
        output=[language(strategy="retry")],
        agent={"max_processor_retries": 1},
    )
    assert (played.result.status, played.delivered) == ("completed", ENGLISH)


async def test_a_translation_takes_the_messages_place_and_its_other_parts_stay() -> None:
    model = judge(lambda text: {"iso_code": "de", "confidence": 1, "translated_text": ENGLISH})
    message = user_message(GERMAN)
    message.content.parts.append({"type": "file", "mimeType": "image/png", "data": "AAAA"})
    played = await talk([says("Hi.")], input=[language(strategy="translate", model=model)], says=message)
    [stored] = [one for one in played.thread.messages.values() if one.role == "user"]
    assert (stored.text, len(stored.content.parts)) == (ENGLISH, 2)
    assert GERMAN not in played.thread.everything + repr(stored.content.metadata)


async def test_the_original_is_kept_only_if_the_admin_wants_that() -> None:
    model = judge(lambda text: {"translated_text": ENGLISH})
    message = user_message(GERMAN)
    await talk(
        [says("Hi.")],
        input=[language(strategy="translate", model=model, preserve_original=True)],
        says=message,
    )
    assert message.content.metadata["language_detection"]["original_text"] == GERMAN


@pytest.mark.parametrize("answer", [DOWN, {"translated_text": None}, "Good morning"])
async def test_a_translation_that_fails_lets_nothing_pass(answer: Any) -> None:
    played = await talk(
        [says("Hi.")], input=[language(strategy="translate", model=judge(lambda text: answer))], says=GERMAN
    )
    assert played.result.status in ("failed", "blocked")
    assert played.model.requests == []


def test_translating_without_a_model_and_an_unknown_language_are_form_errors() -> None:
    with pytest.raises(ValidationError, match="needs a model"):
        language(strategy="translate")
    with pytest.raises(ValidationError, match="no language we know"):
        language(target_languages=["Klingonese"])
