"""What a processor may not do is told to its author: who, where, what came, what may come."""

from __future__ import annotations

from typing import Any

import pytest

from agents.providers.scripted import says
from processors.engine.chunks import Chunk
from processors.engine.errors import ConfigError, ContractError
from processors.engine.hooks import RequestContext
from processors.engine.message_list import MessageList
from processors.engine.processor import ChainEntry, Processor
from processors.engine.slots import build_slots, entries_of
from tests.engine.stage import agent_with, one_hook, play


async def broken(hook: str, act: Any) -> ContractError:
    """The error of a run whose processor breaks the contract."""
    agent, model = agent_with([says("Hello, Alice.")], one_hook(hook, act))
    played = await play(agent, model)
    assert isinstance(played.result.error, ContractError), played.result
    assert played.result.error.processor_id == "guard"
    assert played.thread.turns[-1].status == "failed"
    return played.result.error


@pytest.mark.parametrize(
    "hook", ["process_input", "process_input_step", "process_output_step", "process_output_result"]
)
async def test_another_message_list_is_refused(hook: str) -> None:
    def foreign(args: Any) -> Any:
        other = MessageList()
        other.add(args.messages, "input")
        return other

    error = await broken(hook, foreign)
    assert "another MessageList" in error.returned


async def test_messages_and_message_list_together_are_refused() -> None:
    def both(args: Any) -> Any:
        return {"messages": args.messages, "message_list": args.message_list}

    error = await broken("process_input_step", both)
    assert "both messages and message_list" in error.returned


async def test_a_message_list_in_an_object_must_be_the_one_it_was_given() -> None:
    await broken("process_input_step", lambda a: {"message_list": MessageList()})
    agent, model = agent_with(
        [says("Hi.")], one_hook("process_input_step", lambda a: {"message_list": a.message_list})
    )
    assert (await play(agent, model)).result.status == "completed"


@pytest.mark.parametrize(
    "chunk",
    [{"type": "moderation", "data": 1}, {"type": "data-"}, {"data": 1}, {"type": 5}, None, "data-x", Chunk("text-delta"),
     {"type": "data-x", "data": {1, 2}}, {"type": "data-x", "data": object()}],
)  # fmt: skip
async def test_only_data_chunks_with_json_may_be_written(chunk: Any) -> None:
    error = await broken("process_output_step", lambda a: a.writer.custom(chunk) and None)
    assert (error.hook, "data-" in error.allowed) == ("writer.custom", True)


async def test_there_is_no_writer_in_process_input() -> None:
    seen: list[Any] = []
    agent, model = agent_with([says("Hi.")], one_hook("process_input", lambda a: seen.append(a.writer)))
    await play(agent, model)
    assert seen == [None]


class Nameless(Processor):
    def process_input(self, args: Any) -> None:
        """Does nothing."""


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (Nameless(), "no id"),
        (one_hook("process_output_step", print), "no hook for the input chain"),
        (ChainEntry(one_hook("process_input", print, redacts=True), on_error="allow"), "redacts"),
    ],
)
def test_a_chain_that_cannot_work_is_refused_when_it_is_built(entry: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        build_slots({"input": entries_of([entry], RequestContext()), "output": [], "error": []})


def test_a_processor_shares_its_state_between_lists_and_not_with_itself() -> None:
    class Both(Nameless):
        id = "both"

        def process_output_step(self, args: Any) -> None:
            """Does nothing."""

    both, other = Both(), Both()
    entries = entries_of([both, both, other], RequestContext())
    slots = build_slots({"input": entries, "output": entries[:1], "error": []})
    first, second, third, output = [slot.state for slot in slots]
    assert first is output
    assert len({id(first), id(second), id(third)}) == 3
    assert [slot.index for slot in slots] == [0, 1, 2, 3]


async def test_mandatory_processors_stay_and_stand_outermost() -> None:
    order: list[str] = []

    def noting(hook: str, name: str) -> ChainEntry:
        return ChainEntry(one_hook(hook, lambda a: order.append(name), id=name), mandatory=True)

    agent, model = agent_with(
        [says("Hi.")], mandatory_input=[noting("process_input", "first")],
        mandatory_output=[noting("process_output_step", "last")],
    )  # fmt: skip
    mine = one_hook("process_input", lambda a: order.append("mine"))
    out = one_hook("process_output_step", lambda a: order.append("out"))
    await play(agent, model, input_processors=[mine], output_processors=[out])
    assert order == ["first", "mine", "out", "last"]


async def test_a_function_is_called_once_per_run_whatever_happens_in_it() -> None:
    calls: list[Any] = []

    def choose(context: RequestContext) -> list[Any]:
        calls.append(context["tier"])
        return [
            one_hook(
                "process_output_step", lambda a: a.abort("x", retry=True) if a.retry_count == 0 else None
            )
        ]

    agent, model = agent_with([says("One."), says("Two.")], output_processors=choose, max_processor_retries=1)
    played = await play(agent, model, request_context=RequestContext(tier="gold"))
    assert (played.result.text, calls) == ("Two.", ["gold"])
