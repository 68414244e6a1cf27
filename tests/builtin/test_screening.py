"""What all screening guardrails share: strategies, places, reasoning, data parts, the second net under the stream."""

from __future__ import annotations

from typing import Any

import pytest

from processors.engine.chunks import Chunk
from processors.engine.messages import Message, MessageContent, assistant_message
from tests.builtin.harness import chunks_of, guard, read, stream, tool_returns
from tests.engine.stage import agent_with, play

WORD = {"words": ["persimmon"]}


def test_filter_shows_the_text_before_the_finding_and_drops_the_rest_of_the_block() -> None:
    both = [*chunks_of(["ripe pers", "immon pie", " today"]), *chunks_of(["Next block"])]
    heard = stream(guard("block-list", strategy="filter", **WORD), both)
    assert heard.text == "ripe Next block"
    assert len(heard.violations) == 1


def test_filter_withholds_a_message_and_keeps_its_files() -> None:
    image = {"type": "file", "mimeType": "image/png", "data": "aGk="}
    plain = read(guard("block-list", strategy="filter", **WORD), "a persimmon", "hello")
    assert [message.text for message in plain.messages] == ["hello"]
    with_file = Message("user", MessageContent([{"type": "text", "text": "a persimmon"}, image]))
    kept = read(guard("block-list", strategy="filter", **WORD), with_file).messages
    assert kept[0].content.parts == [image]


def test_filter_withholds_a_result_of_a_tool() -> None:
    assert (
        tool_returns(guard("block-list", strategy="filter", **WORD), {"fruit": "persimmon"}).result
        == "[withheld]"
    )


def test_warn_changes_nothing_and_holds_nothing_back() -> None:
    heard = stream(guard("block-list", strategy="warn", **WORD), ["pers", "immon pie"])
    assert heard.deltas == ["pers", "immon pie"]
    assert [detail["strategy"] for detail in heard.details] == ["warn"]


async def test_retry_asks_for_another_answer_and_takes_the_first_one_back() -> None:
    retry = guard("block-list", strategy="retry", **WORD)
    script: list[Any] = [
        chunks_of(["a ", "persimmon "])[1:2] + chunks_of(["persimmon "])[1:2],
        chunks_of(["a plum"])[1:2],
    ]
    agent, model = agent_with(script, output_processors=[retry], max_processor_retries=2)
    played = await play(agent, model)
    assert played.result.text == played.delivered == "a plum"
    assert "A blocked word was found." in repr(model.requests[1].prompt)


@pytest.mark.parametrize(
    ("reasoning", "shown"), [(True, "think of […] now"), (False, "think of persimmon now")]
)
def test_reasoning_is_screened_unless_it_is_switched_off(reasoning: bool, shown: str) -> None:
    words = guard("block-list", strategy="redact", reasoning=reasoning, **WORD)
    heard = stream(words, ["think of pers", "immon now"], kind="reasoning")
    assert "".join(chunk.text for chunk in heard.chunks) == shown


def test_data_parts_are_walked_and_overtake_held_text() -> None:
    pii = guard("pii-detector", redaction_method="placeholder")
    data = Chunk("data-card", data={"mail": "pat@example.org", "n": 1})
    start, *rest = chunks_of(["ask pat@", "example.org"])
    heard = stream(pii, [start, rest[0], data, rest[1], rest[2]])
    assert [chunk.data for chunk in heard.chunks if chunk.is_data] == [{"mail": "[EMAIL]", "n": 1}]
    assert heard.text == "ask [EMAIL]"


def test_held_text_comes_out_before_the_next_chunk_of_another_kind() -> None:
    start, delta, _ = chunks_of(["ask pat"])
    source = Chunk("source", {"url": "https://example.org/", "title": "Hi"})
    heard = stream(guard("block-list", **WORD | {"words": ["pattern"]}), [start, delta, source])
    assert [chunk.type for chunk in heard.chunks] == [
        "text-start",
        "text-delta",
        "text-delta",
        "source",
        "finish",
    ]


def test_errors_of_tools_and_objects_are_screened_too() -> None:
    pii = guard("pii-detector", redaction_method="placeholder")
    error = Chunk(
        "tool-error", {"toolCallId": "pat@example.org", "toolName": "x", "error": "no pat@example.org"}
    )
    whole = Chunk("object-result", {"object": {"mail": "pat@example.org"}})
    heard = stream(pii, [error, whole])
    assert (heard.chunks[0].payload or {})["error"] == "no [EMAIL]"
    assert (heard.chunks[1].payload or {})["object"] == {"mail": "[EMAIL]"}


def test_a_broken_attempt_leaves_nothing_behind_for_the_next_one() -> None:
    start, delta, _ = chunks_of(["ask pat@"])
    again = [Chunk("step-start", {"stepNumber": 0}), *chunks_of(["example.org is a site"])]
    assert (
        stream(guard("pii-detector", detection_types=["email"]), [start, delta, *again]).text
        == "ask example.org is a site"
    )


async def test_what_another_processor_adds_later_is_caught_before_it_is_stored() -> None:
    from processors.engine.processor import Processor

    class Adds(Processor):
        id = "adds"

        def process_output_step(self, args: Any) -> None:
            args.message_list.add(assistant_message("write to pat@example.org"), "response")

    pii = guard("pii-detector", redaction_method="placeholder")
    agent, model = agent_with([chunks_of(["Hi."])[1:2]], output_processors=[Adds(), pii])
    played = await play(agent, model)
    assert "pat@example.org" not in played.thread.everything
    assert "[EMAIL]" in played.thread.everything


def test_deeply_nested_values_fail_instead_of_passing_unseen() -> None:
    value: Any = "persimmon"
    for _ in range(500):
        value = [value]
    with pytest.raises(ValueError, match="nested deeper"):
        tool_returns(guard("block-list", **WORD), value)


def test_a_card_number_given_as_a_number_is_seen() -> None:
    assert tool_returns(guard("pii-detector"), {"card": 4111111111111111}).result == {
        "card": "************1111"
    }
