"""Events are read from bytes cut anywhere, and every service's habits end in the same chunks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.providers.reply import Reply
from agents.providers.sse import LONGEST_EVENT, EventReader
from processors.engine.chunks import Chunk
from processors.engine.errors import ModelAPIError
from tests.providers.asking import of_type, text_of


def read(*deltas: dict[str, Any], reason: str | None = "stop") -> list[Chunk]:
    """The chunks of a reply with these deltas."""
    reply = Reply()
    chunks: list[Chunk] = []
    for delta in deltas:
        chunks += reply.read(json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode())
    reply.finish_reason = reason
    return [*chunks, *reply.end([])]


def call(**values: Any) -> dict[str, Any]:
    return {"tool_calls": [values]}


def events(*pieces: bytes) -> list[bytes]:
    reader = EventReader()
    return [event for piece in pieces for event in reader.feed(piece)] + reader.flush()


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_any_cut_gives_the_same_events(newline: bytes, data: st.DataObject) -> None:
    lines = [
        b"\xef\xbb\xbfdata: one", b"", b": a comment", b"", b"event: x", b"data:two", b"data: three", b"id: 7", b"",
        b"data: " + "Zoë 👋🏽".encode(), b"", b"data", b"", b"data: [DONE]", b"", b"",
    ]  # fmt: skip
    whole = newline.join(lines)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(whole) - 1), max_size=12)))
    pieces = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert events(*pieces) == [b"one", b"two\nthree", "Zoë 👋🏽".encode(), b"[DONE]"]


def test_a_last_event_without_an_empty_line_counts() -> None:
    assert events(b"data: one\n\ndata: two") == [b"one", b"two"]


def test_an_event_without_an_end_is_given_up() -> None:
    reader = EventReader()
    with pytest.raises(ModelAPIError, match="without an end"):
        reader.feed(b"data: " + b"x" * (LONGEST_EVENT + 1))


def test_a_thought_sent_under_both_names_comes_once() -> None:
    chunks = read({"reasoning_content": "Hm.", "reasoning": "Hm."}, {"reasoning": "So."})
    assert [chunk.text for chunk in chunks if chunk.type == "reasoning-delta"] == ["Hm.", "So."]


def test_content_in_parts_is_text_and_thought() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    chunks = read({"content": [thinking, {"type": "text", "text": "Yes."}]})
    assert [(chunk.type, chunk.text) for chunk in chunks[:2]] == [
        ("reasoning-delta", "Hm."), ("text-delta", "Yes.")
    ]  # fmt: skip


def test_a_refusal_is_text_that_guardrails_see() -> None:
    assert text_of(read({"content": None, "refusal": "I will not."})) == "I will not."


def test_citations_are_sources() -> None:
    note = {"type": "url_citation", "url_citation": {"url": "https://example.com", "title": "Example"}}
    assert of_type(read({"content": "See.", "annotations": [note]}), "source") == [
        {"url": "https://example.com", "title": "Example"}
    ]


@pytest.mark.parametrize(
    "deltas",
    [
        # whole calls without index or id
        [call(function={"name": "a", "arguments": '{"n": 1}'}), call(function={"name": "b", "arguments": '{"n": 2}'})],
        # all numbered 0, told apart by their ids
        [call(index=0, id="x", function={"name": "a", "arguments": '{"n": 1}'}),
         call(index=0, id="y", function={"name": "b", "arguments": '{"n": 2}'})],
        # ids instead of indexes, name repeated
        [call(id="x", function={"name": "a", "arguments": '{"n"'}), call(id="y", function={"name": "b"}),
         call(id="x", function={"name": "a", "arguments": ": 1}"}), call(id="y", function={"arguments": '{"n": 2}'})],
        # the name after the arguments, the id after the name
        [call(index=0, function={"arguments": '{"n": 1'}), call(index=0, function={"name": "a", "arguments": "}"}),
         call(index=1, function={"name": "b", "arguments": '{"n": 2}'})],
        # arguments as an object
        [call(index=0, id="x", function={"name": "a", "arguments": {"n": 1}}),
         call(index=1, id="y", function={"name": "b", "arguments": {"n": 2}})],
        # pieces without index or id belong to the last call
        [call(function={"name": "a", "arguments": '{"n"'}), call(function={"arguments": ": 1}"}),
         call(function={"name": "b", "arguments": '{"n": 2}'})],
    ],
)  # fmt: skip
def test_tool_calls_are_whole_whatever_a_service_leaves_out(deltas: list[dict[str, Any]]) -> None:
    chunks = read(*deltas)
    whole = of_type(chunks, "tool-call")
    assert [(one["toolName"], one["args"]) for one in whole] == [("a", {"n": 1}), ("b", {"n": 2})]
    ids = [one["toolCallId"] for one in whole]
    assert all(ids)
    assert len(set(ids)) == 2
    assert [one["toolCallId"] for one in of_type(chunks, "tool-call-input-streaming-start")] == ids
    assert of_type(chunks, "finish")[0]["finishReason"] == "tool-calls", "also when the service says stop"


@pytest.mark.parametrize("arguments", ["[1]", '"text"', "{", "nul", "[" * 100_000])
def test_arguments_that_are_no_object_are_kept_as_text(arguments: str) -> None:
    (whole,) = of_type(
        read(call(index=0, id="x", function={"name": "a", "arguments": arguments})), "tool-call"
    )
    assert (whole["args"], whole["invalidArgs"]) == ({}, arguments)


def test_a_call_without_a_name_is_a_broken_stream() -> None:
    with pytest.raises(ModelAPIError, match="without a name"):
        read(call(index=0, id="x", function={"arguments": "{}"}))


def test_a_flood_of_calls_is_a_broken_stream() -> None:
    with pytest.raises(ModelAPIError, match="too many tool calls"):
        read(*(call(index=index, function={"name": "a"}) for index in range(200)))


def test_a_reply_without_usage_says_so() -> None:
    (finish,) = of_type(read({"content": "Hi."}), "finish")
    assert finish["usage"] == {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}
    assert finish["warnings"] == [{"type": "other", "message": "The service did not report its usage."}]


@pytest.mark.parametrize(
    "event", ['{"choices": [3]}', '{"choices": {"a": 1}}', '{"choices": [{"delta": "x"}]}', "[]", "3", "null",
              '{"choices": [{"delta": {"tool_calls": [3]}}]}', "[" * 100_000],
)  # fmt: skip
def test_an_event_of_the_wrong_shape_is_a_broken_stream(event: str) -> None:
    with pytest.raises(ModelAPIError) as caught:
        Reply().read(event.encode())
    assert caught.value.provider_code == "malformed_stream"


@pytest.mark.parametrize(
    ("error", "status", "retryable"),
    [
        ({"message": "Busy.", "code": 429}, 429, True), ({"message": "Bad.", "code": 400}, 400, False),
        ({"message": "Busy.", "type": "overloaded_error"}, None, True), ("Stalled.", None, True),
        ({"message": "No.", "type": "invalid_request_error"}, None, False),
        ({"message": "Empty.", "code": "insufficient_quota"}, None, False),
    ],
)  # fmt: skip
def test_an_error_event_says_whether_again_may_help(error: Any, status: int | None, retryable: bool) -> None:
    with pytest.raises(ModelAPIError) as caught:
        Reply().read(json.dumps({"error": error}).encode())
    assert (caught.value.status, caught.value.retryable) == (status, retryable)
