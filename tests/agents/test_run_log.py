"""Every reader gets each chunk once and in order, wherever it reads from and however often it goes away."""

from __future__ import annotations

import asyncio
import json
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Any

import pytest

from agents import run_log
from agents.live_log import LiveLog, live_logs
from agents.providers.scripted import Pause, says
from agents.redis_link import redis_client
from agents.run_log import key_of, read
from agents.runner import runner
from tests.agents.conftest import Numbered, ask, finish, follow, forbids, published, text_of

pytestmark = pytest.mark.django_db(transaction=True)
STORY = "The quick brown fox jumps over the lazy dog, and the dog does not mind at all. " * 4


def from_elsewhere(run: Any, after: int = 0) -> Numbered:
    """Read as another process would: what this one has in memory is not there."""
    hidden = live_logs.pop(str(run.pk), None)
    try:
        return follow(run, after)
    finally:
        if hidden is not None:
            live_logs[str(run.pk)] = hidden


def test_chunks_are_numbered_from_one_and_end_with_the_status(alice, agent, script) -> None:
    script(says("Hello, Alice."), cut=3)
    chunks = follow(ask(alice))
    assert [number for number, _ in chunks] == list(range(1, len(chunks) + 1))
    assert chunks[-1][1]["type"] == "run-end"
    assert chunks[-1][1]["status"] == "completed"
    assert text_of(chunks) == "Hello, Alice."


def test_a_thousand_disconnects_lose_and_repeat_nothing(alice, agent, script) -> None:
    script(says(STORY), cut=1, pace=0.001)
    run = ask(alice)
    dice = random.Random(7)

    async def restless() -> Numbered:
        seen: Numbered = []
        breaks = 0
        while not seen or seen[-1][1]["type"] != "run-end":
            patience = dice.randint(0, 2) if breaks < 1000 else 10_000
            async with aclosing(read(run.pk, after=seen[-1][0] if seen else 0)) as chunks:
                async for item in chunks:
                    seen.append(item)
                    patience -= 1
                    if patience < 0:
                        break
            breaks += 1
        return seen

    seen = asyncio.run(asyncio.wait_for(restless(), 30))
    assert [number for number, _ in seen] == list(range(1, len(seen) + 1))
    assert text_of(seen) == STORY


def test_two_readers_and_one_in_another_process_see_the_same(alice, agent, script) -> None:
    script(says(STORY), cut=5, pace=0.001)
    run = ask(alice)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(follow, [run, run])
    assert first == second == from_elsewhere(run)


def test_another_process_follows_a_run_that_goes_on(alice, agent, script) -> None:
    script(says(STORY), cut=3, pace=0.004)
    run = ask(alice)
    follow(run, limit=5)
    assert text_of(from_elsewhere(run)) == STORY


def test_a_reader_that_comes_late_gets_everything(alice, agent, script) -> None:
    script(says("All of it."))
    run = finish(ask(alice))
    live_logs.clear()
    assert text_of(follow(run)) == "All of it."
    assert [wire["type"] for _, wire in follow(run, after=4)][-1] == "run-end"


def test_when_the_log_is_gone_the_stored_answer_is_given(alice, script) -> None:
    published(chain={"output": [forbids("persimmon", slug="fruit")]})
    script(says("All of it."))
    run = finish(ask(alice))
    live_logs.clear()
    redis_client().delete(key_of(run.pk))
    chunks = follow(run, after=3)
    assert chunks[0] == (4, {"type": "log-reset", "runId": str(run.pk)})
    assert text_of(chunks) == "All of it."
    assert chunks[-1][1] == {"type": "run-end", "runId": str(run.pk), "status": "completed"}


def test_without_redis_the_run_goes_on_and_is_seen_to_its_end(alice, agent, script, settings) -> None:
    runner().close()  # the next one finds no Redis from the start
    settings.REDIS_URL = "unix:///nowhere/redis.sock"
    try:
        script(says("Still here."))
        run = ask(alice)
        assert text_of(follow(run)) == "Still here."
        assert finish(run).status == "completed"
        assert text_of(from_elsewhere(run)) == "Still here."
    finally:
        runner().close()


def test_a_gap_in_the_stream_is_not_read_over(alice, agent, script) -> None:
    script(says("Whole again."))
    run = finish(ask(alice))
    live_logs.clear()
    client = redis_client()
    client.delete(key_of(run.pk))
    client.xadd(
        key_of(run.pk),
        {"n": 7, "c": json.dumps([{"type": "text-delta", "payload": {"text": "half"}}])},
        id="7-0",
    )
    assert text_of(follow(run)) == "Whole again."


def test_the_stream_expires(alice, agent, script) -> None:
    script(says("Soon gone."))
    run = finish(ask(alice))
    assert 0 < int(redis_client().ttl(key_of(run.pk))) <= 3600  # type: ignore[arg-type]


def test_refused_text_is_in_no_log(alice, script) -> None:
    published(chain={"output": [forbids("persimmon")]})
    script(says("I like a ripe persimmon best."), cut=4)
    run = ask(alice)
    chunks = follow(run)
    assert "pers" not in json.dumps(chunks)
    stream: Any = redis_client().xrange(key_of(run.pk))
    assert b"pers" not in b"".join(fields[b"c"] for _, fields in stream)


def test_a_reader_that_falls_behind_memory_reads_the_rest_from_redis(
    alice, agent, script, monkeypatch
) -> None:
    monkeypatch.setattr("agents.live_log.WINDOW", 16)
    script(says(STORY), cut=2)
    run = ask(alice)
    finish(run)
    assert not live_logs[str(run.pk)].reaches(0)
    assert text_of(follow(run)) == STORY


def test_a_closed_log_without_an_end_marker_does_not_hold_its_readers(alice, agent, script) -> None:
    script([Pause(0.01), *says("Stored.")])
    run = finish(ask(alice))
    broken = LiveLog(0)
    broken.append({"type": "start"})
    broken.close()
    live_logs[str(run.pk)] = broken
    redis_client().delete(key_of(run.pk))
    assert text_of(follow(run)) == "Stored."
    assert follow(run)[-1][1]["type"] == run_log.END


def test_a_reader_that_has_seen_everything_is_told_so_again(alice, agent, script) -> None:
    script(says("That is all."))
    run = ask(alice)
    last = follow(run)[-1]
    finish(run)
    assert follow(run, after=last[0]) == [last]
    assert from_elsewhere(run, after=last[0]) == [last]
