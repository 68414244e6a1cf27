"""A queued tool's side effect happens once: the row decides, whatever the broker delivers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from agents.models import Run, ToolCall
from agents.providers.scripted import says, tool_call
from agents.services.runs import run_start, run_stop
from agents.tasks import reap_expired, run_tool_call
from agents.tools.kinds import Job, ToolKind, tool_register
from agents.tools.queue_rows import call_finish, call_keep, call_take, lost_call_settle
from processors.engine.errors import ToolFailed
from tests.agents.conftest import ask, finish, follow, in_background, published

pytestmark = pytest.mark.django_db(transaction=True)
SLOW = {"slug": "slow_report", "kind": "slow-report", "mode": "queue", "time_limit": 30}


class Worker:
    """Stands for Celery's worker: takes the ids that were sent, each as often as asked, in a thread of its own."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.deliveries = 1

    def apply_async(self, *, args: tuple[str], **_: Any) -> None:
        self.sent.append(args[0])
        for _number in range(self.deliveries):
            in_background(lambda: self.work(args[0]))

    def work(self, call_id: str) -> None:
        try:
            run_tool_call(call_id)
        finally:
            connection.close()


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    worker = Worker()
    monkeypatch.setattr(run_tool_call, "apply_async", worker.apply_async)
    return worker


@pytest.fixture
def counting() -> Iterator[list[str]]:
    """A kind of tool with a side effect that is counted."""
    from agents.tools import kinds

    effects: list[str] = []

    def run(args: dict[str, Any], options: dict[str, Any], job: Job) -> Any:
        effects.append(job.call_id)
        if args.get("fail"):
            raise ToolFailed("It did not work.")
        for step in range(int(args.get("steps", 1))):
            job.progress(step * 10, "working")
            time.sleep(0.05)
        return {"effects": len(effects)}

    tool_register(ToolKind("counting", "Counting", "Counts.", {"type": "object"}, run))
    yield effects
    del kinds._kinds["counting"]


def counted(**values: Any) -> dict[str, Any]:
    return {"slug": "count", "kind": "counting", "mode": "queue", "time_limit": 10, **values}


@pytest.fixture
def queued(alice, agent, counting) -> ToolCall:
    """A call in the queue, of a run that nobody follows."""
    published("counter", tools=[counted()])
    run = run_start(user=alice, agent_slug="counter", text="Count", channel="test")
    return ToolCall.objects.create(run=run, call_id="call-1", tool_slug="count")


def test_progress_is_shown_and_the_result_joins_the_answer(alice, script, worker) -> None:
    published(tools=[SLOW])
    script([tool_call("slow_report", {"topic": "tea", "seconds": 0.6})], says("Here it is."))
    run = ask(alice, "A report, please")
    chunks = follow(run)
    assert finish(run).status == "completed"
    assert [wire["data"]["percent"] for _, wire in chunks if wire["type"] == "data-tool-progress"][-1] == 100
    result = next(wire for _, wire in chunks if wire["type"] == "tool-result")
    assert result["payload"]["result"]["report"].startswith("Report on tea")
    assert len(worker.sent) == 1


def test_a_message_delivered_three_times_has_one_effect(alice, script, worker, counting) -> None:
    worker.deliveries = 3
    published(tools=[counted()])
    script([tool_call("count", {"steps": 3})], says("Counted."))
    assert finish(ask(alice)).status == "completed"
    assert len(counting) == 1


def test_a_failing_tool_is_the_models_business(alice, script, worker, counting) -> None:
    published(tools=[counted()])
    script([tool_call("count", {"fail": True})], says("Sorry."))
    run = ask(alice)
    error = next(wire for _, wire in follow(run) if wire["type"] == "tool-error")
    assert error["payload"]["error"] == "It did not work."
    assert finish(run).text == "Sorry."


def test_a_queued_call_of_a_stopped_run_never_starts(alice, script, counting, monkeypatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr(run_tool_call, "apply_async", lambda *, args, **_: sent.append(args[0]))
    published(tools=[counted()])
    script([tool_call("count", {})])
    run = ask(alice)
    _wait_until(lambda: bool(sent))
    run_stop(user=alice, run_id=run.pk)
    assert finish(run).status == "cancelled"
    assert ToolCall.objects.get(run=run).status == "cancelled"
    assert run_tool_call(sent[0]) == "nothing to do"
    assert counting == []


def test_a_running_call_of_a_stopped_run_stops_at_its_next_step(alice, script, worker, counting) -> None:
    published(tools=[counted()])
    script([tool_call("count", {"steps": 100})])
    run = ask(alice)
    _wait_until(lambda: bool(counting))
    run_stop(user=alice, run_id=run.pk)
    finish(run)
    _wait_until(lambda: ToolCall.objects.get(run=run).status == "cancelled")


def test_the_row_is_taken_once(queued) -> None:
    assert call_take(call_id=queued.pk, owner="one") is not None
    assert call_take(call_id=queued.pk, owner="two") is None
    assert call_finish(call_id=queued.pk, owner="one", result=1)
    assert call_take(call_id=queued.pk, owner="two") is None


def test_a_result_that_comes_twice_or_after_stop_is_dropped(queued) -> None:
    call_take(call_id=queued.pk, owner="one")
    assert not call_finish(call_id=queued.pk, owner="somebody else", result=2)
    assert call_finish(call_id=queued.pk, owner="one", result=1)
    assert not call_finish(call_id=queued.pk, owner="one", result=3)
    queued.refresh_from_db()
    assert queued.result == 1


def test_a_lost_workers_call_is_not_run_again(queued, counting) -> None:
    call_take(call_id=queued.pk, owner="one")
    ToolCall.objects.filter(pk=queued.pk).update(lease_until=timezone.now() - timezone.timedelta(seconds=1))
    assert run_tool_call(str(queued.pk)) == "nothing to do"
    queued.refresh_from_db()
    assert queued.status == "failed"
    assert "not run again" in queued.error
    assert counting == []


def test_a_lost_call_that_is_safe_to_repeat_is_taken_over(alice, counting, script) -> None:
    published("counter", tools=[counted(is_idempotent=True)])
    run = run_start(user=alice, agent_slug="counter", text="Count", channel="test")
    call = ToolCall.objects.create(run=run, call_id="call-1", tool_slug="count")
    call_take(call_id=call.pk, owner="one")
    ToolCall.objects.filter(pk=call.pk).update(lease_until=timezone.now() - timezone.timedelta(seconds=1))
    assert run_tool_call(str(call.pk)) == "done"
    assert not call_keep(call_id=call.pk, owner="one")
    assert counting == [f"{run.pk}:call-1"]


def test_the_waiting_side_notices_a_lost_worker(alice, script, counting, monkeypatch) -> None:
    def take_and_die(*, args: Any, **_: Any) -> None:
        call_take(call_id=args[0], owner="dead")
        ToolCall.objects.filter(pk=args[0]).update(lease_until=timezone.now())

    monkeypatch.setattr(run_tool_call, "apply_async", take_and_die)
    published(tools=[counted()])
    script([tool_call("count", {})], says("It is lost."))
    assert finish(ask(alice)).text == "It is lost."
    assert ToolCall.objects.get().status == "failed"


def test_without_a_broker_the_model_is_told(alice, script, counting, monkeypatch) -> None:
    def refuse(**_: Any) -> None:
        raise ConnectionError("no broker")

    monkeypatch.setattr(run_tool_call, "apply_async", refuse)
    published(tools=[counted()])
    script([tool_call("count", {})], says("Later, then."))
    run = ask(alice)
    error = next(wire for _, wire in follow(run) if wire["type"] == "tool-error")
    assert error["payload"]["error"] == "The queue cannot be reached; try again later."
    assert finish(run).status == "completed"
    assert Run.objects.get().text == "Later, then."


def test_a_lost_call_goes_back_into_the_queue_three_times_at_most(
    alice, counting, script, monkeypatch
) -> None:
    sent: list[str] = []
    monkeypatch.setattr(run_tool_call, "apply_async", lambda *, args, **_: sent.append(args[0]))
    published("counter", tools=[counted(is_idempotent=True)])
    run = run_start(user=alice, agent_slug="counter", text="Count", channel="test")
    call = ToolCall.objects.create(run=run, call_id="call-1", tool_slug="count")
    for _ in range(4):
        call_take(call_id=call.pk, owner="dies")
        ToolCall.objects.filter(pk=call.pk).update(lease_until=timezone.now())
        lost_call_settle(call_id=call.pk)
    call.refresh_from_db()
    assert (len(sent), call.status) == (2, "failed")


def test_a_lost_call_that_nobody_waits_for_is_ended(queued) -> None:
    call_take(call_id=queued.pk, owner="dead")
    ToolCall.objects.filter(pk=queued.pk).update(lease_until=timezone.now() - timezone.timedelta(minutes=5))
    assert reap_expired() == 0
    Run.objects.filter(pk=queued.run_id).update(status="cancelled")
    assert reap_expired() == 1
    queued.refresh_from_db()
    assert queued.status == "failed"


def _wait_until(condition: Any) -> None:
    end = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
