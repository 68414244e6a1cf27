"""The shape and length of answers, topics, closed lists, normal forms."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest

from agents.providers.scripted import says, tool_call
from processors.engine.chunks import Chunk
from tests.builtin.harness import guard, read, stream, tool_returns
from tests.engine.stage import Echo, agent_with, play

SCHEMA = '{"type": "object", "properties": {"price": {"type": "number"}}, "required": ["price"]}'


async def test_an_answer_of_the_right_shape_is_shown_out_of_its_fence() -> None:
    check = guard("json-schema", schema_text=SCHEMA)
    agent, model = agent_with(
        [says('```json\n{"price": 4}\n```')], output_processors=[check], model_values={"cut": 5}
    )
    assert (await play(agent, model)).delivered == '{"price": 4}'


async def test_another_answer_is_asked_for_and_told_what_is_wrong() -> None:
    check = guard("json-schema", schema_text=SCHEMA)
    script = [says("Four euros."), says('{"price": "four"}'), says('{"price": 4}')]
    agent, model = agent_with(script, output_processors=[check], max_processor_retries=3)
    played = await play(agent, model)
    assert played.delivered == '{"price": 4}'
    assert "it is no JSON" in repr(model.requests[1].prompt)
    assert "price breaks the condition type" in repr(model.requests[2].prompt)


async def test_words_before_a_tool_call_need_no_shape() -> None:
    check, echo = guard("json-schema", schema_text=SCHEMA), Echo()
    script = [[*says("Let me look."), tool_call("echo", {})], says('{"price": 4}')]
    agent, model = agent_with(script, output_processors=[check], tools=[echo.tool()])
    played = await play(agent, model)
    assert (played.result.status, len(echo.runs)) == ("completed", 1)


@pytest.mark.parametrize(("text", "words"), [
    ("{{", "no JSON"), ("[]", "an object"), ('{"type": "colour"}', "no JSON Schema"), ('{"$ref": "https://example.org/x"}', "inside the schema"),
])  # fmt: skip
def test_a_schema_that_is_none_is_refused(text: str, words: str) -> None:
    with pytest.raises(pydantic.ValidationError, match=words):
        guard("json-schema", schema_text=text)


@pytest.mark.parametrize("pieces", [["one two ", "three four"], list("one two three four")])
def test_an_answer_is_cut_at_the_same_place_however_it_comes(pieces: list[str]) -> None:
    assert stream(guard("length-limit", output_chars=9, strategy="truncate"), pieces).text == "one two t"
    assert stream(guard("length-limit", output_words=2, strategy="truncate"), pieces).text == "one two "


def test_long_messages_and_results_are_refused_or_cut() -> None:
    assert read(guard("length-limit", input_chars=5), "too long").tripwire is not None
    assert (
        read(guard("length-limit", input_words=2, strategy="truncate"), "one two three").messages[0].text
        == "one two "
    )
    assert (
        tool_returns(guard("length-limit", tool_result_chars=3, strategy="truncate"), "abcdef").result
        == "abc…"
    )
    heard = stream(guard("length-limit", output_chars=3, strategy="warn"), ["ab", "cd", "ef"])
    assert (heard.text, len(heard.violations)) == ("abcdef", 1)


def test_a_limit_of_nothing_is_refused() -> None:
    with pytest.raises(pydantic.ValidationError, match="set at least one"):
        guard("length-limit", input_chars=None)


WEAPONS = [
    {"name": "weapons", "words": ["gun", "ammunition", "rifle"], "exceptions": ["glue gun"], "at_least": 2}
]


@pytest.mark.parametrize(("text", "blocked"), [
    ("a gun and a rifle", True), ("a gun, a gun, a gun", False), ("a glue gun and a rifle", False), ("a rifle and AMMUNITION", True),
])  # fmt: skip
def test_a_topic_needs_enough_different_words(text: str, blocked: bool) -> None:
    topics = guard("topic-rules", topics=WEAPONS)
    assert (read(topics, text).tripwire is not None) == blocked
    whole, cut = stream(topics, [text + " ok"]), stream(topics, list(text + " ok"))
    assert (whole.tripwire is not None, whole.text) == (cut.tripwire is not None, cut.text)
    assert (whole.tripwire is not None) == blocked


def test_only_named_topics_can_be_allowed() -> None:
    topics = guard(
        "topic-rules", mode="allow-only", topics=[{"name": "parcels", "words": ["parcel", "delivery"]}]
    )
    assert read(topics, "Where is my parcel right now?").tripwire is None
    assert read(topics, "thanks a lot").tripwire is None
    assert read(topics, "Tell me a story about a dragon").tripwire is not None


def test_a_topic_that_asks_for_more_words_than_it_has_is_refused() -> None:
    with pytest.raises(pydantic.ValidationError, match="add words"):
        guard("topic-rules", topics=[{"name": "one", "words": ["a"], "at_least": 2}])


def test_only_listed_texts_pass() -> None:
    listed = guard("allow-list", phrases=["Yes", "No, thanks"], patterns=[r"order \d{4,8}"])
    for text in ("yes", " NO,   thanks ", "order 4711"):
        assert read(listed, text).tripwire is None
        assert stream(listed, list(text)).text == text
    assert read(listed, "order 4711; drop it").tripwire is not None
    assert stream(listed, ["yes", " or no"]).text == ""


@pytest.mark.parametrize(("options", "text", "normal"), [
    ({}, "  ﬁne  ①  café\n\n\tok  ", "fine 1 café ok"), ({}, "a\u200bb\u202ec\U000e0041", "abc"), ({}, "👨\u200d👩\u200d👧 ok ™", "👨\u200d👩\u200d👧 ok TM"),
    ({}, "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"),
    ({"strip_control_chars": True}, "a\x07b", "ab"), ({"collapse_whitespace": False, "trim": False}, " a  b ", " a  b "),
])  # fmt: skip
def test_input_comes_into_its_normal_form_once(options: dict[str, Any], text: str, normal: str) -> None:
    normalizer = guard("unicode-normalizer", **options)
    assert read(normalizer, text).messages[0].text == normal
    assert read(normalizer, normal).messages[0].text == normal


def test_rules_for_arguments_are_checked_one_by_one() -> None:
    def refused(args: Any, **rule: Any) -> bool:
        rules = guard("tool-arguments", rules=[{"tool": "pay*", **rule}])
        chunk = stream(
            rules, [Chunk("tool-call", {"toolCallId": "c", "toolName": "payout", "args": args})]
        ).chunks[0]
        return "refused" in (chunk.payload or {})

    assert refused({"to": "eve"}, argument="to", test="one-of", values=["bob"])
    assert not refused({"to": "bob"}, argument="to", test="one-of", values=["bob"])
    assert refused({}, argument="to", test="one-of", values=["bob"])
    assert refused({"items": [{"n": 1}, {"n": 900}]}, argument="items.*.n", test="at-most", number=500)
    assert refused({"n": "many"}, argument="n", test="at-least", number=1)
    assert refused({"a": {"b": "DROP it"}}, test="matches-not", pattern="(?i)drop")
    assert refused({}, argument="reason", test="required")
    assert refused({"force": False}, argument="force", test="forbidden")
    assert refused({"note": "abcd"}, argument="note", test="longest", number=3)
    assert refused({"x": 1}, argument="x", test="schema", schema_text='{"type": "string"}')


@pytest.mark.parametrize(
    "rule",
    [
        {"test": "matches"},
        {"test": "one-of"},
        {"test": "at-most"},
        {"test": "schema"},
        {"test": "required"},
        {"test": "matches", "pattern": "(a"},
    ],
)
def test_a_rule_without_what_it_compares_is_refused(rule: dict[str, Any]) -> None:
    with pytest.raises(pydantic.ValidationError):
        guard("tool-arguments", rules=[{"tool": "x", **rule}])


async def test_tools_of_other_roles_are_hidden_and_calls_to_them_refused() -> None:
    from processors.engine.hooks import RequestContext

    read_, delete = Echo("read_mail"), Echo("delete_mail")
    access = guard(
        "tool-access", rules=[{"role": "*", "tools": ["read_*"]}, {"role": "operator", "tools": ["delete_*"]}]
    )
    script = [[tool_call("delete_mail", {})], says("I can't.")]
    for roles, seen, ran in (
        (["chat_user"], ["read_mail"], 0),
        (["operator"], ["delete_mail", "read_mail"], 1),
    ):
        delete.runs.clear()
        agent, model = agent_with(script, access, tools=[read_.tool(), delete.tool()])
        played = await play(agent, model, request_context=RequestContext(roles=roles))
        assert sorted(spec.name for spec in model.requests[0].tools) == seen
        assert (len(delete.runs), played.result.status) == (ran, "completed")
