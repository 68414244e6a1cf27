"""The process that answers is killed at any moment: nothing that was acknowledged is lost, and everything goes on."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import User
from agents.actions import agent_publish
from agents.models import Agent, AgentTool, ChainEntry, Run, Tool
from agents.redis_link import redis_client
from agents.runner import runner
from agents.runner.reaper import runs_left_behind, runs_reap
from agents.services.runs import run_launch, run_start
from audit.verify import trail_verify
from memory.models import Message
from processors.services import processor_save
from tests.faults.dying_process import SECRET, TRANSIENT, prepare

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.faults, pytest.mark.slow]
ROUNDS = int(os.environ.get("GATEHOUSE_FAULT_ROUNDS") or 12)


@pytest.fixture
def alice(db: None) -> User:
    prepare()
    redis_client().delete("faults")
    words = processor_save(actor=None, processor=None, data={"slug": "words", "kind": "block-list", "name": "Words", "options": {"words": [SECRET], "strategy": "block"}})  # fmt: skip
    agent = Agent.objects.create(slug="helper", name="Helper", model="scripted/test")
    ChainEntry.objects.create(agent=agent, stage="output", processor=words)
    for slug, kind in (("count", "counting"), ("slow_report", "slow-report")):
        AgentTool.objects.create(agent=agent, tool=Tool.objects.create(slug=slug, name=slug, kind=kind))
    agent_publish(actor=None, agent=agent, note="")
    return User.objects.create_user("alice")


@pytest.fixture
def die_after(alice: User) -> Iterator[Callable[[int], list[str]]]:
    """Let another process work for so many milliseconds, kill it, and return the runs that it had acknowledged."""
    database = connection.settings_dict
    env = {**os.environ, "DATABASE_URL": f"postgresql://postgres@/{database['NAME']}?host={quote(str(database['HOST']), safe='')}",
           "GATEHOUSE_MAX_ACTIVE_RUNS": "1000", "DJANGO_SETTINGS_MODULE": "config.settings", "PYTHONPATH": os.pathsep.join(sys.path)}  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.faults.dying_process"],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def once(milliseconds: int) -> list[str]:
        process.stdin.write(f"{milliseconds}\n")  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
        found: list[str] = json.loads(process.stdout.readline())  # type: ignore[union-attr]
        return found

    yield once
    process.stdin.close()
    process.wait(10)
    process.stdout.close()


def recover() -> None:
    """What the next process does, without waiting for leases to run out."""
    Run.objects.filter(status="running").update(lease_until=timezone.now() - timedelta(seconds=1))
    runs_reap()
    Run.objects.filter(status="queued").update(created_at=timezone.now() - timedelta(minutes=1))
    for run_id in runs_left_behind():
        runner().launch(run_id)
    assert runner().wait_idle(20)


def test_a_process_killed_at_any_moment_loses_and_leaks_nothing(alice, die_after) -> None:
    dice = random.Random(11)
    acknowledged: list[str] = []
    for _ in range(ROUNDS):
        acknowledged += die_after(dice.randint(0, 350))
        recover()
        assert not Run.objects.exclude(status__in=Run.FINAL).exists()
    runs = {str(run.pk): run for run in Run.objects.all()}
    assert set(acknowledged) <= set(runs)
    asked = {str(row.run_id): row for row in Message.objects.filter(role="user")}
    assert all(asked[run_id].parts or asked[run_id].withheld for run_id in acknowledged)
    everything = json.dumps(list(Message.objects.values()) + list(Run.objects.values()), default=str)
    assert SECRET not in everything
    assert TRANSIENT not in everything
    assert {run.status for run in runs.values()} >= {"completed", "interrupted"}
    effects: Any = redis_client().hgetall("faults")
    assert {int(count) for count in effects.values()} == {1}
    assert trail_verify() is None
    _every_thread_goes_on(alice, list(runs.values()))


def _every_thread_goes_on(alice: User, runs: list[Run]) -> None:
    """No stored call is without a result, and the next message on an interrupted thread is answered."""
    for row in Message.objects.all():
        assert all(part.get("toolInvocation", {}).get("state") != "call" for part in row.parts)
    broken = [run for run in runs if run.status == "interrupted"][:3]
    for run in broken:
        again = run_start(
            user=alice, agent_slug="helper", text="Message 1", thread_id=run.thread_id, channel="test"
        )
        run_launch(again)
        assert runner().wait_idle(10)
        again.refresh_from_db()
        assert again.status == "completed"
