"""Runs whose process died reach an end, what was seen stays, and the thread goes on."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from agents.models import Run, ToolCall
from agents.providers.scripted import says
from agents.redis_link import redis_client
from agents.run_log import key_of
from agents.runner import runner
from agents.runner.claims import LeaseLost, run_claim, run_settle
from agents.runner.reaper import runs_left_behind, runs_reap
from agents.runner.shown import assemble
from agents.services.runs import run_start
from agents.tasks import reap_expired
from memory.selectors import messages_of
from processors.engine.ports import Turn
from tests.agents.conftest import ask, finish, follow, text_of

pytestmark = pytest.mark.django_db(transaction=True)


def lost(user: Any, *wires: dict[str, Any]) -> Run:
    """A run whose process died after it had shown these chunks."""
    run = run_start(user=user, agent_slug="helper", text="Hello", channel="test")
    assert run_claim(run_id=run.pk, owner="dead") is not None
    if wires:
        redis_client().xadd(key_of(run.pk), {"n": 1, "c": json.dumps(wires)}, id=f"{len(wires)}-0")
    Run.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    return run


def delta(text: str) -> dict[str, Any]:
    return {"type": "text-delta", "payload": {"id": "a", "text": text}}


CALL = {"type": "tool-call", "payload": {"toolCallId": "c", "toolName": "search", "args": {}}}


def test_what_was_seen_is_kept_and_the_open_call_is_closed(alice, agent, script) -> None:
    run = lost(alice, {"type": "start"}, {"type": "step-start"}, delta("Let me "), delta("see."), CALL)
    assert runs_reap() == [run.pk]
    run.refresh_from_db()
    assert (run.status, run.text) == ("interrupted", "Let me see.")
    user, answer = messages_of(run.thread)
    assert (user.status, answer.status) == ("failed", "failed")
    assert answer.parts[0] == {"type": "text", "text": "Let me see."}
    assert answer.parts[1]["toolInvocation"]["state"] == "error"
    script(says("Again."))
    assert finish(ask(alice, "Again?", thread_id=run.thread_id)).status == "completed"


def test_a_run_of_which_nothing_was_seen_begins_again(alice, agent, script) -> None:
    script(says("Here I am."))
    run = lost(alice, {"type": "start"}, {"type": "step-start"})
    assert reap_expired() == 1
    run.refresh_from_db()
    assert run.status == "queued"
    runner().launch(run.pk)
    assert finish(run).text == "Here I am."


def test_a_run_that_keeps_killing_its_process_ends(alice, agent) -> None:
    run = lost(alice)
    Run.objects.filter(pk=run.pk).update(started_at=timezone.now() - timedelta(minutes=5))
    runs_reap()
    run.refresh_from_db()
    assert run.status == "interrupted"


def test_a_run_with_a_tool_call_is_not_begun_again(alice, agent) -> None:
    run = lost(alice)
    ToolCall.objects.create(run=run, call_id="c", tool_slug="search", status="running")
    runs_reap()
    run.refresh_from_db()
    assert run.status == "interrupted"
    assert ToolCall.objects.get().stop_requested_at is not None


def test_withdrawn_and_refused_and_transient_things_are_not_kept() -> None:
    wires = [
        {"type": "step-start"}, delta("First."), {"type": "step-start"}, delta("Refused."), {"type": "step-retry", "payload": {}},
        {"type": "step-start"}, {"type": "data-progress", "data": 1, "transient": True}, {"type": "data-note", "data": 2}, delta("Second."),
        {"type": "step-start"}, delta("Bad."), {"type": "tripwire", "payload": {}},
    ]  # fmt: skip
    parts = assemble(wires).parts
    assert parts == [
        {"type": "text", "text": "First."},
        {"type": "data-note", "data": 2},
        {"type": "text", "text": "Second."},
    ]


def test_the_living_process_looks_after_the_dead_one(alice, agent, script) -> None:
    script(says("Better late."))
    run = lost(alice, {"type": "start"})
    Run.objects.filter(pk=run.pk).update(created_at=timezone.now() - timedelta(minutes=1))
    runner()
    end = time.monotonic() + 15
    while Run.objects.get(pk=run.pk).status != "completed":
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_queued_run_that_nobody_took_is_found(alice, agent) -> None:
    first = run_start(user=alice, agent_slug="helper", text="one", channel="test")
    second = run_start(user=alice, agent_slug="helper", text="two", thread_id=first.thread_id, channel="test")
    assert runs_left_behind() == []
    Run.objects.update(created_at=timezone.now() - timedelta(minutes=1))
    Run.objects.filter(pk=second.pk).update(created_at=timezone.now() - timedelta(seconds=30))
    assert runs_left_behind() == [first.pk]


def test_a_process_that_lost_its_lease_stores_nothing(alice, agent) -> None:
    run = lost(alice)
    Run.objects.filter(pk=run.pk).update(lease_owner="another")
    with pytest.raises(LeaseLost), transaction.atomic():
        run_settle(run_id=run.pk, owner="dead", turn=Turn(str(run.pk), "completed", [], {}, "stop"))


def test_a_run_that_is_taken_from_its_process_is_not_stored_twice(alice, agent, script) -> None:
    script(says("Some words that take a while."), cut=3, pace=0.05)
    run = ask(alice)
    shown = follow(run, limit=5)
    Run.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    time.sleep(0.05)
    runs_reap()
    runner().wait_idle(10)
    run.refresh_from_db()
    assert run.status == "interrupted"
    assert run.text.startswith(text_of(shown)[:3])
    assert len(messages_of(run.thread)) == 2
