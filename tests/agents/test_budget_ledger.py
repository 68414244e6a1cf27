"""The accounts in Redis: promises count at once, windows move along, and the larger of two figures is believed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from uuid import uuid4

import pytest

from agents import budget_ledger
from agents.budget_ledger import BudgetLedger
from agents.redis_link import redis_client


@pytest.fixture
def who() -> str:
    return uuid4().hex


class Told:
    """Totals of another store."""

    async def spent(self, *, scope: str, key: str, window_seconds: float | None) -> Mapping[str, float]:
        return {"cost": 3.0, "tokens": 10.0, "calls": 99.0}


async def one_call(ledger: BudgetLedger, who: str, limit: float, window: float | None = 3600.0) -> bool:
    answer = await ledger.reserve(
        scope="user", key=who, window_seconds=window, amounts={"calls": 1}, limits={"calls": limit}
    )
    return answer.granted


async def test_eight_at_once_on_a_budget_of_one_admit_one(who: str) -> None:
    ledgers = [BudgetLedger() for _ in range(8)]
    assert sum(await asyncio.gather(*(one_call(ledger, who, 1) for ledger in ledgers))) == 1


async def test_what_was_really_spent_takes_the_promises_place(who: str) -> None:
    ledger = BudgetLedger()
    promise = await ledger.reserve(
        scope="user",
        key=who,
        window_seconds=3600,
        amounts={"tokens": 500, "cost": 0.5},
        limits={"tokens": 600},
    )
    assert await ledger.spent(scope="user", key=who, window_seconds=3600) == {
        "cost": 0.5,
        "tokens": 500,
        "calls": 0,
    }
    await ledger.settle(promise.id, amounts={"tokens": 20, "cost": 0.01})
    assert await ledger.spent(scope="user", key=who, window_seconds=3600) == {
        "cost": pytest.approx(0.01), "tokens": 20, "calls": 0,
    }  # fmt: skip


async def test_a_refused_request_reserves_nothing_and_is_told_what_was_used(who: str) -> None:
    ledger = BudgetLedger()
    assert await one_call(ledger, who, 1)
    answer = await ledger.reserve(
        scope="user", key=who, window_seconds=3600, amounts={"calls": 1}, limits={"calls": 1}
    )
    assert (answer.granted, answer.used["calls"]) == (False, 1.0)


async def test_the_window_moves_along(who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, now = BudgetLedger(), 1_000_000.0
    monkeypatch.setattr(budget_ledger.time, "time", lambda: now)
    assert await one_call(ledger, who, 1, 60)
    now += 59
    assert not await one_call(ledger, who, 1, 60)
    now += 2
    assert await one_call(ledger, who, 1, 60)


async def test_people_and_windows_have_accounts_of_their_own(who: str) -> None:
    ledger = BudgetLedger()
    assert await one_call(ledger, who, 1)
    assert await one_call(ledger, uuid4().hex, 1)
    assert await one_call(ledger, who, 1, None)


async def test_an_account_does_not_stay_for_ever(who: str) -> None:
    await one_call(BudgetLedger(), who, 1, 60)
    assert 0 < redis_client().ttl(f"{budget_ledger.PREFIX}user:60:{who}") <= 62  # type: ignore[operator]


async def test_the_larger_of_two_figures_is_believed_and_runs_are_no_calls(who: str) -> None:
    used = await BudgetLedger(Told()).spent(scope="user", key=who, window_seconds=60)
    assert used == {"cost": 3.0, "tokens": 10.0, "calls": 0.0}


async def test_a_measure_that_does_not_exist_is_refused(who: str) -> None:
    with pytest.raises(ValueError, match="no measure called euros"):
        await BudgetLedger().reserve(
            scope="user", key=who, window_seconds=60, amounts={"euros": 1}, limits={}
        )
