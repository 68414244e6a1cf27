"""Stopping a run: from the caller, from the consumer, at any moment; what was shown is kept."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents.loop.budget import Budget
from agents.providers.scripted import Pause, says, tool_call
from processors.engine.chunks import Chunk, text_delta
from processors.engine.errors import BudgetExceeded
from processors.engine.ports import AbortSignal, AuditEntry, Turn
from tests.engine.stage import Audit, Echo, Thread, agent_with, one_hook, play

FOREVER = 30.0


async def drained(stream: Any) -> list[Chunk]:
    return [chunk async for chunk in stream]


async def test_stop_closes_the_provider_at_once_and_keeps_what_was_shown() -> None:
    agent, model = agent_with([[text_delta("Hello, "), Pause(FOREVER), text_delta("Alice.")]])
    signal, thread = AbortSignal(), Thread()
    stream = agent.stream("Hello from Bob.", memory=thread, abort_signal=signal)
    asyncio.get_running_loop().call_later(0.02, signal.abort, "stopped by bob")
    chunks = await asyncio.wait_for(drained(stream), 2)
    result = await stream.result()
    assert (result.status, result.text) == ("cancelled", "Hello, ")
    assert chunks[-1].type == "abort"
    assert (chunks[-1].payload or {})["reason"] == "stopped by bob"
    assert thread.texts == [("user", "Hello from Bob."), ("assistant", "Hello, ")]
    assert thread.turns[0].status == "cancelled"
    assert model.open_streams == 0


async def test_stop_works_while_a_model_client_ignores_the_signal() -> None:
    never = asyncio.Event()

    class Deaf:
        id = "deaf/model"
        closed = False

        async def stream(self, request: Any, *, signal: Any = None) -> Any:
            try:
                await never.wait()
                yield text_delta("late")
            finally:
                self.closed = True

    model = Deaf()
    agent, _ = agent_with([])
    agent.model = model
    signal = AbortSignal()
    stream = agent.stream("Hello from Bob.", abort_signal=signal)
    asyncio.get_running_loop().call_later(0.02, signal.abort)
    await asyncio.wait_for(drained(stream), 2)
    assert (await stream.result()).status == "cancelled"
    assert model.closed


async def test_stop_works_inside_a_hook() -> None:
    async def judge(args: Any) -> None:
        await asyncio.sleep(FOREVER)

    agent, model = agent_with([says("Hello, Alice.")], one_hook("process_output_step", judge))
    signal, thread = AbortSignal(), Thread()
    stream = agent.stream("Hello from Bob.", memory=thread, abort_signal=signal)
    asyncio.get_running_loop().call_later(0.02, signal.abort)
    await asyncio.wait_for(drained(stream), 2)
    assert (await stream.result()).status == "cancelled"
    assert model.open_streams == 0


async def test_stop_ends_running_tools_and_closes_their_calls() -> None:
    ended: list[str] = []

    async def execute(args: Any, context: Any) -> Any:
        try:
            await asyncio.sleep(FOREVER)
        finally:
            ended.append(context.tool_call_id)

    from agents.loop.tools import Tool

    agent, _ = agent_with(
        [[*says("Looking. "), tool_call("slow", {})]], tools=[Tool("slow", execute=execute)]
    )
    signal, thread = AbortSignal(), Thread()
    stream = agent.stream("Hello from Bob.", memory=thread, abort_signal=signal)
    asyncio.get_running_loop().call_later(0.02, signal.abort)
    await asyncio.wait_for(drained(stream), 2)
    assert (await stream.result()).status == "cancelled"
    assert ended == ["call-1"]
    invocations = [part["toolInvocation"] for message in thread.turns[0].messages for part in message.content.parts
                   if part["type"] == "tool-invocation"]  # fmt: skip
    assert [call["state"] for call in invocations] == ["error"]


async def test_a_signal_that_was_set_before_the_run_calls_no_model() -> None:
    agent, model = agent_with([says("Hello, Alice.")])
    signal = AbortSignal()
    signal.abort()
    played = await play(agent, model, abort_signal=signal)
    assert (played.result.status, model.requests) == ("cancelled", [])
    assert played.thread.texts == [("user", "Hello from Bob.")]


async def test_stop_between_two_chunks_does_not_disturb_the_consumer() -> None:
    agent, model = agent_with([says("Hello, Alice.")], model_values={"cut": 1})
    signal = AbortSignal()
    stream = agent.stream("Hello from Bob.", abort_signal=signal)
    seen = []
    async for chunk in stream:
        seen.append(chunk.type)
        if chunk.type == "text-delta" and not signal.aborted:
            signal.abort()
            await asyncio.sleep(0.01)
    assert seen[-1] == "abort"
    assert model.open_streams == 0
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_the_consumer_may_pull_each_chunk_from_another_task() -> None:
    agent, model = agent_with([[text_delta("Hello, "), Pause(FOREVER)]])
    signal = AbortSignal()
    stream = agent.stream("Hello from Bob.", abort_signal=signal)
    asyncio.get_running_loop().call_later(0.05, signal.abort)
    types = []
    while True:
        try:
            types.append((await asyncio.wait_for(stream.__anext__(), 2)).type)
        except StopAsyncIteration:
            break
    assert types[-1] == "abort"
    assert model.open_streams == 0


async def test_a_cancelled_task_is_cancelled_and_closes_the_provider() -> None:
    agent, model = agent_with([[text_delta("Hello, "), Pause(FOREVER)]])
    thread = Thread()
    task = asyncio.create_task(agent.generate("Hello from Bob.", memory=thread))
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert model.open_streams == 0
    assert thread.turns[0].status == "cancelled"


async def test_a_text_that_is_still_held_back_is_not_stored_on_stop() -> None:
    from tests.engine.guards import Holder

    agent, _ = agent_with([[text_delta("a secret"), Pause(FOREVER)]], Holder())
    signal, thread = AbortSignal(), Thread()
    stream = agent.stream("Hello from Bob.", memory=thread, abort_signal=signal)
    asyncio.get_running_loop().call_later(0.02, signal.abort)
    await asyncio.wait_for(drained(stream), 2)
    assert "secret" not in thread.everything


async def test_no_task_is_left_behind() -> None:
    agent, model = agent_with([[tool_call("echo", {}), tool_call("echo", {}, "call-2")], says("Done.")],
                              tools=[Echo().tool()])  # fmt: skip
    before = asyncio.all_tasks()
    await play(agent, model)
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize(
    ("budget", "limit"),
    [
        (Budget(steps=1), "steps"),
        (Budget(tokens=15), "tokens"),
        (Budget(cost=0.0001, price=(0.001, 0.001)), "cost"),
    ],
)
async def test_a_budget_ends_the_run_before_the_call_that_would_break_it(budget: Budget, limit: str) -> None:
    agent, model = agent_with([[tool_call("echo", {})], says("Done.")], tools=[Echo().tool()], budget=budget)
    played = await play(agent, model)
    assert isinstance(played.result.error, BudgetExceeded)
    assert (played.result.status, played.result.error.limit, len(model.requests)) == ("failed", limit, 1)


async def test_a_budget_of_seconds_interrupts_a_silent_model() -> None:
    agent, model = agent_with([[text_delta("Hello, "), Pause(FOREVER)]], budget=Budget(seconds=0.05))
    played = await asyncio.wait_for(play(agent, model), 2)
    assert isinstance(played.result.error, BudgetExceeded)
    assert (played.result.status, played.result.error.limit) == ("failed", "seconds")
    assert model.open_streams == 0


async def test_a_budget_starts_anew_with_each_run() -> None:
    agent, model = agent_with([says("One."), says("Two.")], budget=Budget(seconds=0.2))
    assert (await play(agent, model)).result.status == "completed"
    await asyncio.sleep(0.25)
    assert (await play(agent, model)).result.status == "completed"


class SlowAudit(Audit):
    """Takes its time to write."""

    async def record(self, entry: AuditEntry) -> None:
        await asyncio.sleep(0.05)
        await super().record(entry)


class SlowThread(Thread):
    """Takes its time to store."""

    async def save(self, turn: Turn) -> None:
        await asyncio.sleep(0.05)
        await super().save(turn)


async def test_a_row_that_is_being_written_is_written_whole_before_the_run_stops() -> None:
    warn = one_hook("process_input", lambda a: a.report_violation("seen"))
    agent, model = agent_with([says("never")], warn)
    signal = AbortSignal()
    asyncio.get_running_loop().call_later(0.02, signal.abort)
    played = await play(agent, model, audit=SlowAudit(), abort_signal=signal)
    assert (played.result.status, len(played.audit.entries), model.requests) == ("cancelled", 1, [])


async def test_a_turn_that_is_being_stored_is_stored_whole_and_the_run_ends_as_it_would_have() -> None:
    agent, model = agent_with([says("Hello, Alice.")])
    signal = AbortSignal()
    asyncio.get_running_loop().call_later(0.02, signal.abort)
    played = await play(agent, model, thread=SlowThread(), abort_signal=signal)
    assert (played.result.status, len(played.thread.turns), played.types()[-1]) == ("completed", 1, "finish")


async def test_a_hook_or_a_tool_may_stop_the_run_itself() -> None:
    agent, model = agent_with(
        [says("never")], one_hook("process_input", lambda a: a.abort_signal.abort("enough"))
    )
    played = await play(agent, model)
    assert (played.result.status, model.requests) == ("cancelled", [])
    assert (played.chunks[-1].payload or {})["reason"] == "enough"
