"""Budgets and rates: nobody slips under a limit, and nobody without a limit is ever stopped."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import ValidationError

from agents.providers.scripted import says, tool_call
from processors.engine.errors import ConfigError
from processors.engine.hooks import RequestContext
from processors.engine.ports import BuildContext
from tests.builtin.judged import Accounts, SpendingOnly, built, talk
from tests.engine.stage import Echo


def budget(costs: Any = None, **options: Any) -> Any:
    return built("token-cost-control", "budget", context=BuildContext(costs=costs), **options)


async def test_a_spent_budget_stops_the_run_before_the_model_is_asked() -> None:
    played = await talk([says("Hi.")], input=[budget(SpendingOnly(cost=2.0), max_cost=1)])
    assert (played.result.status, played.model.requests) == ("blocked", [])
    assert played.result.tripwire is not None
    assert played.result.tripwire.reason == "Cost control: estimated cost limit exceeded (2/1)"


async def test_stopping_and_warning_report_the_same_facts() -> None:
    stopped = await talk([says("Hi.")], input=[budget(SpendingOnly(cost=2.0), max_cost=1)])
    warned = await talk([says("Hi.")], input=[budget(SpendingOnly(cost=2.0), max_cost=1, strategy="warn")])
    first, second = stopped.audit.entries[0].violation.detail, warned.audit.entries[0].violation.detail
    assert {**first, "strategy": ""} == {**second, "strategy": ""}
    assert (first["scope"], first["scopeKey"], first["threshold"]) == ("user", "bob", "hard")
    assert warned.result.status == "completed"


async def test_eight_at_once_on_a_budget_of_one_admit_one() -> None:
    accounts = Accounts()
    runs = await asyncio.gather(
        *(talk([says("Hi.")], input=[budget(accounts, max_calls=1)]) for _ in range(8))
    )
    assert sorted(played.result.status for played in runs) == ["blocked"] * 7 + ["completed"]


async def test_what_was_reserved_is_settled_with_what_was_really_used() -> None:
    accounts = Accounts()
    await talk([says("Hi.")], input=[budget(accounts, max_tokens=10_000, expected_tokens=5000)])
    [book] = accounts.booked.values()
    assert [one["tokens"] for one in book.values()] == [15.0]


async def test_a_long_tool_loop_stops_within_a_step_of_its_limit_although_the_accounts_lag() -> None:
    echo = Echo()
    script = [[tool_call("echo", {"n": n}, f"call-{n}")] for n in range(30)]
    played = await talk(
        script,
        input=[budget(SpendingOnly(), max_tokens=100)],
        agent={"tools": [echo.tool()], "max_steps": 30},
    )
    assert (played.result.status, len(played.model.requests)) == ("blocked", 7)


async def test_cost_is_counted_from_prices_before_the_accounts_know_it() -> None:
    echo = Echo()
    script = [[tool_call("echo", {"n": n}, f"call-{n}")] for n in range(9)]
    guard = budget(SpendingOnly(), max_cost=0.00005, input_price=1.0, output_price=2.0)
    played = await talk(script, input=[guard], agent={"tools": [echo.tool()], "max_steps": 9})
    assert (played.result.status, len(played.model.requests)) == ("blocked", 3)


async def test_a_runs_own_budget_needs_no_accounts() -> None:
    echo = Echo()
    script = [[tool_call("echo", {"n": n}, f"call-{n}")] for n in range(9)]
    played = await talk(
        script, input=[budget(None, max_calls=2, scope="run")], agent={"tools": [echo.tool()], "max_steps": 9}
    )
    assert len(played.model.requests) == 2


async def test_each_run_reports_once_from_the_percentage_on() -> None:
    echo = Echo()
    script = [[tool_call("echo", {}, "call-1")], [tool_call("echo", {}, "call-2")], says("Done.")]
    played = await talk(
        script,
        input=[budget(SpendingOnly(cost=0.9), max_cost=1, warn_at_percent=80)],
        agent={"tools": [echo.tool()]},
    )
    assert played.result.status == "completed"
    assert [entry.violation.detail["threshold"] for entry in played.audit.entries] == ["soft"]


async def test_accounts_that_cannot_answer_are_an_error_and_not_a_pass() -> None:
    played = await talk([says("Hi.")], input=[budget(Accounts(broken=True), max_cost=1)])
    assert (played.result.status, played.model.requests) == ("failed", [])


async def test_without_a_budget_nobody_is_stopped_for_one() -> None:
    played = await talk([says("Hi.")], input=[budget(SpendingOnly(cost=1e9, tokens=5), max_tokens=1_000_000)])
    assert played.result.status == "completed"


async def test_people_have_accounts_of_their_own_and_those_without_a_name_share_one() -> None:
    accounts = Accounts()
    guard = budget(accounts, max_calls=1)
    seen = [
        (await talk([says("Hi.")], input=[guard], user=user)).result.status
        for user in ("alice", "bob", "alice", None, None)
    ]
    assert seen == ["completed", "completed", "blocked", "completed", "blocked"]


def test_nothing_limited_accounts_missing_and_odd_messages_are_refused() -> None:
    with pytest.raises(ValidationError, match="Nothing is limited"):
        budget(SpendingOnly())
    with pytest.raises(ConfigError, match="only the budget of a run works"):
        budget(None, max_cost=1)
    with pytest.raises(ValidationError, match="may stand in braces"):
        budget(SpendingOnly(), max_cost=1, message="{usage.__class__} {secret}")


# Rates


def rate(accounts: Any, **options: Any) -> Any:
    return built("rate-limit", "rate", context=BuildContext(costs=accounts), **options)


async def test_messages_beyond_the_rate_are_refused_and_do_not_count() -> None:
    accounts = Accounts()
    guard = rate(accounts, max_messages=2)
    statuses = [(await talk([says("Hi.")], input=[guard])).result.status for _ in range(4)]
    assert statuses == ["completed", "completed", "blocked", "blocked"]
    assert len(accounts.booked["rate:rate:user", "bob"]) == 2


async def test_one_person_does_not_use_up_anothers_rate() -> None:
    guard = rate(Accounts(), max_messages=1)
    runs = [
        await talk([says("Hi.")], input=[guard], user=user) for user in ("alice", "bob", "charlie", "bob")
    ]
    assert [played.result.status for played in runs] == ["completed", "completed", "completed", "blocked"]


async def test_a_rate_may_be_counted_per_conversation() -> None:
    guard = rate(Accounts(), max_messages=1, scope="thread")
    contexts = [RequestContext(user_id="bob", thread_id=thread) for thread in ("one", "two", "one")]
    runs = [await talk([says("Hi.")], input=[guard], request_context=context) for context in contexts]
    assert [played.result.status for played in runs] == ["completed", "completed", "blocked"]


def test_a_rate_limit_without_shared_accounts_is_refused() -> None:
    with pytest.raises(ConfigError, match="can't work"):
        rate(SpendingOnly())
