"""Stop works at any moment and from anywhere; what was shown is kept."""

from __future__ import annotations

import time

import pytest

from agents.models import Run
from agents.providers.scripted import Pause, says
from agents.runner import runner
from agents.services.runs import RunRefused, run_get, run_stop
from memory.selectors import messages_of
from tests.agents.conftest import ask, finish, follow, text_of

pytestmark = pytest.mark.django_db(transaction=True)


def wait_for(run: Run, status: str) -> None:
    end = time.monotonic() + 5
    while Run.objects.get(pk=run.pk).status != status:
        assert time.monotonic() < end, f"The run did not become {status}."
        time.sleep(0.01)


def test_stop_before_the_first_word_closes_the_provider_within_a_second(alice, agent, script) -> None:
    script([Pause(30), *says("Too late.")])
    run = ask(alice)
    wait_for(run, "running")
    begun = time.monotonic()
    run_stop(user=alice, run_id=run.pk)
    assert finish(run).status == "cancelled"
    assert time.monotonic() - begun < 1
    assert script.models[0].open_streams == 0
    assert [row.role for row in messages_of(run.thread)] == ["user"]


def test_what_was_shown_is_kept(alice, agent, script) -> None:
    script(says("One two three four five six seven eight nine ten."), cut=4, pace=0.02)
    run = ask(alice)
    shown = follow(run, limit=8)
    run_stop(user=alice, run_id=run.pk)
    rest = follow(run, after=8)
    assert finish(run).status == "cancelled"
    assert run.text == text_of(shown + rest)
    assert rest[-1][1]["status"] == "cancelled"
    assert [(row.role, row.status) for row in messages_of(run.thread)] == [
        ("user", "cancelled"),
        ("assistant", "cancelled"),
    ]


def test_a_request_from_another_process_is_seen(alice, agent, script) -> None:
    script([Pause(30)])
    run = ask(alice)
    wait_for(run, "running")
    begun = time.monotonic()
    Run.objects.filter(pk=run.pk).update(stop_requested_at=run.created_at)
    assert finish(run).status == "cancelled"
    assert time.monotonic() - begun < 1.5


def test_a_queued_run_never_starts_and_the_next_one_goes_on(alice, agent, script) -> None:
    script(lambda request: [Pause(0.2), *says("Yes.")])
    first = ask(alice, "one")
    second = ask(alice, "two", thread_id=first.thread_id)
    third = ask(alice, "three", thread_id=first.thread_id)
    assert run_stop(user=alice, run_id=second.pk).status == "cancelled"
    assert finish(third).status == "completed"
    assert len(script.models) == 2
    assert [(row.role, row.status) for row in messages_of(second.thread)] == [
        ("user", "completed"), ("assistant", "completed"), ("user", "cancelled"), ("user", "completed"), ("assistant", "completed"),
    ]  # fmt: skip


def test_stopping_twice_or_too_late_is_harmless(alice, agent, script) -> None:
    script(says("Done."))
    run = finish(ask(alice))
    assert run_stop(user=alice, run_id=run.pk).status == "completed"
    assert run_stop(user=alice, run_id=run.pk).status == "completed"


def test_the_thread_goes_on_after_a_stop(alice, agent, script) -> None:
    script([*says("Half an ans"), Pause(30)], says("A whole answer."))
    run = ask(alice)
    follow(run, limit=4)
    run_stop(user=alice, run_id=run.pk)
    finish(run)
    script(says("A whole answer."))
    assert finish(ask(alice, "Again", thread_id=run.thread_id)).text == "A whole answer."


def test_a_stranger_can_neither_read_nor_stop_a_run(alice, bob, charlie, agent, script) -> None:
    script([Pause(0.2), *says("Private.")])
    run = ask(alice)
    for action in (run_get, run_stop):
        with pytest.raises(RunRefused, match="no such run"):
            action(user=bob, run_id=run.pk)
    assert run_get(user=charlie, run_id=run.pk).pk == run.pk
    assert finish(run).status == "completed"


def test_a_process_that_goes_down_leaves_its_runs_readable(alice, agent, script) -> None:
    script(says("Some words and more of them."), cut=4, pace=0.05)
    run = ask(alice)
    shown = text_of(follow(run, limit=6))
    runner().close()
    run.refresh_from_db()
    assert run.status == "cancelled"
    assert run.text.startswith(shown.strip()[:4])
