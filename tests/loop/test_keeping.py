"""What a run stores, when, and what it never stores."""

from __future__ import annotations

from typing import Any

import pytest

from agents.loop.tools import Tool
from agents.providers.scripted import says, tool_call
from processors.engine.chunks import Chunk
from processors.engine.messages import assistant_message, user_message
from processors.engine.ports import Turn
from tests.engine.stage import MODES, Echo, Mode, Thread, agent_with, one_hook, play


class Broken(Thread):
    """A thread that cannot be written."""

    async def save(self, turn: Turn) -> None:
        raise OSError("the disk is full")


async def test_a_turn_is_stored_once_and_before_the_client_sees_the_end() -> None:
    agent, model = agent_with([says("Hello, Alice.")])
    thread = Thread()
    stream = agent.stream("Hello from Bob.", memory=thread)
    async for chunk in stream:
        if chunk.type == "finish":
            assert len(thread.turns) == 1
        elif chunk.type == "step-finish":
            assert thread.turns == []
    assert len(thread.turns) == 1


async def test_a_tripwire_reaches_the_client_after_the_trace_is_stored() -> None:
    agent, model = agent_with([says("Hello.")], one_hook("process_output_step", lambda a: a.abort("no")))
    thread = Thread()
    async for chunk in agent.stream("Hello from Bob.", memory=thread):
        assert chunk.type != "tripwire" or len(thread.turns) == 1


@pytest.mark.parametrize("mode", MODES)
async def test_a_run_that_cannot_be_stored_has_failed(mode: Mode) -> None:
    agent, model = agent_with([says("Hello, Alice.")])
    played = await play(agent, model, mode, thread=Broken())
    assert played.result.status == "failed"
    if mode == "stream":
        assert played.types("finish", "error") == ["error"]
        assert "disk" not in repr([chunk.to_wire() for chunk in played.chunks])


async def test_a_context_message_is_sent_and_never_stored() -> None:
    agent, model = agent_with([says("Hello, Alice.")])
    played = await play(agent, model, context=[user_message("for this run only")])
    assert "for this run only" in repr(model.requests[0].prompt)
    assert "for this run only" not in played.thread.everything


async def test_a_message_that_is_stored_already_is_updated_and_sent_once() -> None:
    said = user_message("Hello from Bob.")
    agent, model = agent_with([says("Hello, Alice.")])
    thread = Thread([said])
    await play(agent, model, says=said, thread=thread)
    assert repr(model.requests[0].prompt).count("Hello from Bob.") == 1
    assert [message.id for message in thread.turns[0].messages][0] == said.id
    assert thread.texts == [("user", "Hello from Bob."), ("assistant", "Hello, Alice.")]


async def test_blocked_messages_of_earlier_runs_are_seen_by_no_processor_and_no_model() -> None:
    seen: list[str] = []
    agent, model = agent_with([says("Hello, Alice.")],
                              one_hook("process_input_step", lambda a: seen.extend(m.text for m in a.messages)))  # fmt: skip
    thread = Thread([user_message("refused words", blocked=True), assistant_message("fine")])
    await play(agent, model, thread=thread)
    assert "refused words" not in repr(model.requests[0].prompt)
    assert "refused words" not in seen


async def test_dropping_remembered_messages_does_not_delete_them() -> None:
    agent, model = agent_with(
        [says("Hello, Alice.")], one_hook("process_input_step", lambda a: a.messages[-1:])
    )
    thread = Thread([user_message("old question"), assistant_message("old answer")])
    played = await play(agent, model, thread=thread)
    assert "old question" not in repr(model.requests[0].prompt)
    assert played.thread.texts[0] == ("user", "old question")
    assert {message.text for message in played.thread.turns[0].messages} == {
        "Hello from Bob.",
        "Hello, Alice.",
    }


async def test_a_redaction_of_the_input_is_stored_also_when_the_answer_is_refused_later() -> None:
    def redact(args: Any) -> None:
        for message in args.messages:
            message.set_text(message.text.replace("secret", "#"))

    agent, model = agent_with([says("Hello.")], one_hook("process_input_step", redact),
                              one_hook("process_output_step", lambda a: a.abort("no")))  # fmt: skip
    played = await play(agent, model, says="my secret")
    assert "secret" not in played.thread.everything
    assert "my #" in played.thread.everything


async def test_a_repeated_step_starts_from_the_list_as_it_was() -> None:
    def remind(args: Any) -> None:
        args.message_list.add("remember", "input")
        args.messages[0].content.parts[0]["text"] += "!"

    retry = one_hook(
        "process_output_step", lambda a: a.abort("again", retry=True) if a.retry_count == 0 else None
    )
    agent, model = agent_with([says("Bad."), says("Good.")], one_hook("process_input_step", remind, id="remind"), retry,
                              max_processor_retries=1)  # fmt: skip
    played = await play(agent, model)
    assert repr(model.requests[1].prompt).count("remember") == 1
    assert repr(model.requests[1].prompt).count("Hello from Bob.!") == 1
    assert "Hello from Bob.!!" not in played.thread.everything


async def test_accepted_steps_of_a_blocked_run_are_kept_and_marked() -> None:
    block = one_hook("process_output_step", lambda a: a.abort("no") if a.step_number == 1 else None)
    agent, model = agent_with([[*says("Looking. "), tool_call("echo", {})], says("refused words")], block,
                              tools=[Echo().tool()])  # fmt: skip
    played = await play(agent, model)
    assert played.thread.texts == [("user", "Hello from Bob."), ("assistant", "Looking. ")]
    assert all(message.blocked for message in played.thread.turns[0].messages)
    assert (played.result.text, len(played.result.steps)) == ("Looking. ", 1)


async def test_two_equal_data_parts_are_two_and_transient_ones_are_none() -> None:
    async def execute(args: Any, context: Any) -> Any:
        for transient in (False, False, True):
            context.writer.custom({"type": "data-note", "data": {"n": 1}, "transient": transient})
        return "done"

    agent, model = agent_with([[tool_call("note", {})], says("Done.")], tools=[Tool("note", execute=execute)])
    played = await play(agent, model)
    assert played.types("data-note") == ["data-note"] * 3
    parts = [part for message in played.thread.turns[0].messages for part in message.content.parts]
    assert [part for part in parts if part["type"] == "data-note"] == [
        {"type": "data-note", "data": {"n": 1}}
    ] * 2
    assert "data-note" not in repr(model.requests[1].prompt)


async def test_two_processors_that_answer_data_with_data_come_to_an_end() -> None:
    def ping(args: Any) -> Any:
        if args.part.type.startswith("data-"):
            args.writer.custom({"type": "data-ping", "data": None})
        return args.part

    async def execute(args: Any, context: Any) -> Any:
        context.writer.custom({"type": "data-start", "data": None})

    players = [
        one_hook("process_output_stream", ping, id=id, process_data_parts=True) for id in ("alice", "bob")
    ]
    agent, model = agent_with(
        [[tool_call("go", {})], says("Done.")], *players, tools=[Tool("go", execute=execute)]
    )
    played = await play(agent, model)
    assert played.result.status == "completed"
    assert len(played.types("data-ping")) < 10


async def test_a_guard_sees_the_data_that_others_emit() -> None:
    def emit(args: Any) -> Any:
        if args.part.type == "text-delta":
            args.writer.custom({"type": "data-copy", "data": args.part.text})
        return args.part

    guard = one_hook("process_output_stream", lambda a: None if a.part.type == "data-copy" else a.part,
                     process_data_parts=True)  # fmt: skip
    agent, model = agent_with([says("Hello.")], guard, one_hook("process_output_stream", emit, id="copier"))
    played = await play(agent, model)
    assert "data-copy" not in played.types()
    assert "data-copy" not in played.thread.everything


async def test_an_abort_on_the_finish_chunk_prevents_storage_of_the_answer() -> None:
    def late(args: Any) -> Chunk:
        if args.part.type == "finish":
            args.abort("too late")
        part: Chunk = args.part
        return part

    agent, model = agent_with([says("Hello, Alice.")], one_hook("process_output_stream", late))
    played = await play(agent, model)
    assert (played.result.status, played.result.text, played.result.steps) == ("blocked", "", [])
    assert "Hello, Alice" not in played.thread.everything


async def test_refused_attempts_were_paid_for() -> None:
    retry = one_hook("process_output_step", lambda a: a.abort("again", retry=True))
    agent, model = agent_with([says("one"), says("two")], retry, max_processor_retries=1)
    played = await play(agent, model)
    assert (played.result.status, played.result.usage.total_tokens) == ("blocked", 30)

    def fail(args: Any) -> None:
        raise LookupError("no such table")

    agent, model = agent_with([says("one")], one_hook("process_output_step", fail))
    played = await play(agent, model)
    assert (played.result.status, played.result.usage.total_tokens) == ("failed", 15)


async def test_a_run_that_nobody_reads_has_been_cancelled_and_calls_no_model() -> None:
    agent, model = agent_with([says("never")])
    stream = agent.stream("Hello from Bob.")
    await stream.aclose()
    assert ((await stream.result()).status, model.requests) == ("cancelled", [])
