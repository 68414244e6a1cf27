"""The live list: views, reconciling what hooks return, rolling back, and the prompt it makes."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from processors.engine.message_list import MessageList
from processors.engine.messages import Message, MessageContent, assistant_message, user_message
from processors.engine.prompt import excluded


def said(text: str) -> Message:
    return user_message(text, id=text)


def listed(**texts: str) -> MessageList:
    """A list with the words of each source as messages."""
    made = MessageList()
    for source, words in texts.items():
        made.add([said(word) for word in words.split()], source)  # type: ignore[arg-type]
    return made


def words(messages: list[Message]) -> str:
    return " ".join(message.text for message in messages)


def test_views_tell_sources_apart_and_keep_the_order() -> None:
    made = listed(memory="old older", context="aside", input="new", response="answer")
    assert words(made.all) == "old older aside new answer"
    assert (words(made.remembered), words(made.input), words(made.response)) == ("old older", "new", "answer")
    assert (made.source_of("aside"), made.source_of("nobody"), made.get("nobody")) == ("context", None, None)


def test_a_returned_list_removes_replaces_adds_and_orders() -> None:
    made = listed(memory="old", input="a b c")
    changed = user_message("B", id="b")
    made.reconcile(made.input, [said("new"), said("c"), changed], "input")
    assert words(made.all) == "old new c B"
    assert words(made.input) == "new c B"


def test_messages_outside_the_view_keep_their_places() -> None:
    made = listed(input="a", response="r1")
    made.add(said("hint"), "input")
    made.add(said("r2"), "response")
    made.reconcile(made.response, [said("r2"), said("r1"), said("r3")], "response")
    assert words(made.all) == "a r2 hint r1 r3"


def test_an_empty_list_removes_the_view_only() -> None:
    made = listed(memory="old", input="a b")
    made.reconcile(made.input, [], "input")
    assert words(made.all) == "old"


def test_a_remembered_message_that_is_returned_stays_remembered() -> None:
    made = listed(memory="old", input="a")
    made.reconcile(made.input, [said("old"), said("a")], "input")
    assert (words(made.remembered), words(made.input)) == ("old", "a")


def test_system_messages_that_are_returned_are_kept_apart() -> None:
    made = listed(input="a")
    made.reconcile(
        made.input,
        [Message("system", MessageContent([{"type": "text", "text": "Be kind."}])), said("a")],
        "input",
    )
    assert words(made.all) == "a"
    assert [system.text for system in made.system_messages] == ["Be kind."]


names = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=6)


@given(memory=names, own=names, returned=names)
def test_reconciling_gives_exactly_what_was_returned(
    memory: list[str], own: list[str], returned: list[str]
) -> None:
    made = listed(memory=" ".join(word.upper() for word in memory), input=" ".join(own))
    made.reconcile(made.input, [said(word) for word in returned], "input")
    assert [message.text for message in made.input] == returned
    assert [message.text for message in made.remembered] == [word.upper() for word in memory]


def test_a_checkpoint_undoes_edits_additions_and_removals() -> None:
    made = listed(memory="old", input="a b")
    part: dict[str, Any] = {"type": "tool-invocation", "toolInvocation": {
        "state": "call", "toolCallId": "c", "toolName": "t", "args": {}}}  # fmt: skip
    made.add(Message("assistant", MessageContent([part]), "call"), "response")
    live, mark = made.get("a"), made.checkpoint()
    made.get("a").set_text("edited")  # type: ignore[union-attr]
    made.update_tool_invocation(tool_call_id="c", result=1)
    part["toolInvocation"]["state"] = "error"
    made.remove_by_ids(["b"])
    made.add(said("new"), "input")
    made.add_system("Be kind.")
    made.restore(mark)
    assert words(made.all) == "old a b "
    assert made.get("a") is live
    assert made.response[0].content.parts[0]["toolInvocation"]["state"] == "call"
    assert (made.system_messages, made.source_of("new")) == ([], None)


def test_a_call_is_found_by_its_id_and_gets_its_result_in_either_way() -> None:
    made = MessageList()
    call = {"state": "call", "toolCallId": "c", "toolName": "t", "args": {"x": 1}}
    made.add(
        Message("assistant", MessageContent([{"type": "tool-invocation", "toolInvocation": call}])),
        "response",
    )
    assert made.update_tool_invocation(tool_call_id="c", result=1)
    assert made.update_tool_invocation(
        {"type": "tool-invocation", "toolInvocation": {"toolCallId": "c", "result": 2}}
    )
    found = made.find_tool_invocation("c")
    assert found is not None
    assert found["toolInvocation"] == {**call, "state": "result", "result": 2}
    assert not made.update_tool_invocation(tool_call_id="other", result=1)


def test_a_prompt_has_no_notices_errors_data_parts_or_refused_words() -> None:
    made = MessageList()
    parts: list[dict[str, Any]] = [
        {"type": "text", "text": "fine"}, {"type": "data-x", "data": 1}, {"type": "notice", "reason": "no"},
        {"type": "error", "error": {"name": "E", "message": "boom"}},
    ]  # fmt: skip
    made.add(Message("assistant", MessageContent(parts)), "memory")
    made.add(user_message("refused", blocked=True), "memory")
    made.add(assistant_message("failed", id="f"), "memory")
    made.get("f").content.metadata["failed"] = True  # type: ignore[union-attr]
    assert made.to_prompt() == [{"role": "assistant", "content": [{"type": "text", "text": "fine"}]}]
    assert [excluded(message) for message in made.all] == [False, True, True]


def test_every_call_in_a_prompt_has_a_result() -> None:
    made = MessageList()
    call = {"state": "call", "toolCallId": "c", "toolName": "t", "args": {}}
    made.add(
        Message("assistant", MessageContent([{"type": "tool-invocation", "toolInvocation": call}])), "memory"
    )
    roles = [message["role"] for message in made.to_prompt()]
    assert roles == ["assistant", "tool"]
    assert made.to_prompt()[1]["content"][0]["isError"]


def test_a_call_that_was_answered_later_is_sent_once() -> None:
    made = MessageList()
    call = {"state": "call", "toolCallId": "c", "toolName": "t", "args": {}}
    done = {**call, "state": "result", "result": "blue"}
    for invocation in (call, done):
        parts = [{"type": "tool-invocation", "toolInvocation": invocation}]
        made.add(Message("assistant", MessageContent(parts)), "memory")
    prompt = made.to_prompt()
    assert [message["role"] for message in prompt] == ["assistant", "tool"]
    assert prompt[1]["content"][0]["result"] == "blue"
