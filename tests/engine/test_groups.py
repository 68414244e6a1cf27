"""Judges of one group look side by side; the first refusal in list order wins, whoever was quicker."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents.providers.scripted import says
from processors.engine.errors import ContractError
from processors.engine.processor import ChainEntry
from tests.engine.stage import Played, agent_with, one_hook, play

HOOKS = (
    "process_input",
    "process_input_step",
    "process_output_stream",
    "process_output_step",
    "process_output_result",
)


def stage_of(hook: str) -> str:
    return "input_processors" if hook.startswith("process_input") else "output_processors"


def unchanged(args: Any) -> Any:
    return getattr(args, "part", None)


async def judged(hook: str, *acts: Any, group: str | None = "judges") -> Played:
    """An answer with one group of judges, called alice, bob and charlie."""
    entries = [
        ChainEntry(one_hook(hook, act, id=name), group=group)
        for name, act in zip(("alice", "bob", "charlie"), acts, strict=False)
    ]
    agent, model = agent_with([says("Hello, Alice.")], **{stage_of(hook): entries})
    return await asyncio.wait_for(play(agent, model), 5)


@pytest.mark.parametrize("hook", HOOKS)
async def test_they_look_side_by_side(hook: str) -> None:
    barrier = asyncio.Barrier(3)

    async def meet(args: Any) -> Any:
        await barrier.wait()
        return unchanged(args)

    played = await judged(hook, meet, meet, meet)
    assert (played.result.status, played.result.text) == ("completed", "Hello, Alice.")


@pytest.mark.parametrize("hook", HOOKS)
async def test_the_first_refusal_in_list_order_wins(hook: str) -> None:
    ended: list[str] = []

    async def slow(args: Any) -> Any:
        args.report_violation("slow saw it", {"strategy": "warn"})
        await asyncio.sleep(0.02)
        args.abort("slow refuses")

    async def quick(args: Any) -> Any:
        args.report_violation("never recorded")
        args.abort("quick refuses")

    async def endless(args: Any) -> Any:
        try:
            await asyncio.sleep(30)
        finally:
            ended.append(hook)

    played = await judged(hook, slow, quick, endless)
    assert played.result.tripwire is not None
    assert (played.result.tripwire.reason, played.result.tripwire.processor_id) == ("slow refuses", "alice")
    assert [entry.violation.message for entry in played.audit.entries] == ["slow saw it", "slow refuses"]
    assert ended == [hook]


@pytest.mark.parametrize("hook", HOOKS)
async def test_a_judge_of_a_group_may_not_change_anything(hook: str) -> None:
    def change(args: Any) -> Any:
        return (
            args.part.with_text("changed")
            if hook == "process_output_stream"
            else [*args.messages, *args.messages]
        )

    played = await judged(hook, unchanged, change)
    assert isinstance(played.result.error, ContractError)
    assert played.result.error.processor_id == "bob"


async def test_groups_of_another_name_stand_apart() -> None:
    order: list[str] = []

    async def slow(args: Any) -> None:
        await asyncio.sleep(0.01)
        order.append("slow")

    def quick(args: Any) -> None:
        order.append("quick")

    await judged("process_input", slow, quick, group=None)
    assert order == ["slow", "quick"]
