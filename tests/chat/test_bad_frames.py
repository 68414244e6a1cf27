"""What does not belong on the socket gets a typed error; what belongs to somebody else does not exist."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.models import User
from agents.bridge import in_database
from agents.models import Run
from agents.providers.scripted import Pause, says
from chat.frames import BURST, longest_frame
from tests.agents.conftest import Scripts, published

pytestmark = pytest.mark.django_db(transaction=True)
SEND = {"type": "message.send", "agent": "helper", "text": "Hi"}
BAD: list[tuple[str, dict[str, Any], str]] = [
    ("no type", {}, "bad_frame"),
    ("a type that is no text", {"type": 5}, "bad_frame"),
    ("an unknown type", {"type": "message.shout"}, "unknown_type"),
    ("an unknown agent", {**SEND, "agent": "nobody"}, "unknown_agent"),
    ("an agent that is no text", {**SEND, "agent": {"a": 1}}, "unknown_agent"),
    ("an unknown thread", {**SEND, "threadId": "11111111-1111-4111-8111-111111111111"}, "unknown_thread"),
    ("a thread that is no id", {**SEND, "threadId": ["x"]}, "unknown_thread"),
    ("no text", {**SEND, "text": None}, "bad_request"),
    ("an empty text", {**SEND, "text": " \n"}, "empty"),
    ("a text that is too long", {**SEND, "text": "a" * 100_001}, "too_long"),
    ("an id that is no text", {**SEND, "clientMessageId": 7}, "bad_request"),
    ("a run that is not there", {"type": "run.resume", "runId": "x"}, "unknown_run"),
    ("a run that is no id", {"type": "run.stop", "runId": {"x": 1}}, "unknown_run"),
    ("a number that is none", {"type": "run.resume", "runId": "x", "after": "3"}, "bad_frame"),
    ("a number below zero", {"type": "run.resume", "runId": "x", "after": -1}, "bad_frame"),
    ("a decision that is none", {"type": "tool.decide", "runId": "x", "approved": "yes"}, "bad_frame"),
]


@pytest.mark.parametrize(
    ("frame", "code"), [(frame, code) for _, frame, code in BAD], ids=[name for name, _, _ in BAD]
)
async def test_it_answers_with_a_code_and_lives_on(
    alice: User, script: Scripts, tab: Any, frame: dict[str, Any], code: str
) -> None:
    await in_database(published)
    socket = await tab(alice)
    await socket.send(**frame)
    answer = await socket.next()
    assert (answer["type"], answer["code"]) == ("error", code) and answer["message"].endswith(".")
    await socket.send(type="ping")
    assert await socket.next() == {"type": "pong"}
    assert await in_database(Run.objects.count) == 0


async def test_it_survives_what_is_no_frame_at_all(alice: User, tab: Any) -> None:
    socket = await tab(alice)
    await socket.connection.send(b"\x00\x01")
    assert (await socket.next())["code"] == "bad_frame"
    for text, code in (
        ("{", "bad_frame"),
        ("[1]", "bad_frame"),
        ("[" * 100_000, "bad_frame"),
        ("a" * 1_000_000, "too_long"),
    ):
        await socket.connection.send(text)
        assert (await socket.next())["code"] == code
    assert longest_frame() < 1_000_000
    await socket.send(type="ping")
    assert await socket.next() == {"type": "pong"}


async def test_a_flood_is_cut_off_with_a_reason(alice: User, tab: Any) -> None:
    socket = await tab(alice)
    for _ in range(BURST + 30):
        await socket.send(type="ping")
    frames = await socket.until("error")
    assert (frames[-1]["code"], frames[-1]["retryable"]) == ("rate_limited", True)
    assert await socket.closing_code() == 4429


async def test_bob_can_neither_read_nor_stop_nor_decide_alices_run(
    alice: User, bob: User, script: Scripts, tab: Any
) -> None:
    script([*says("For Alice. "), Pause(20)])
    await in_database(published)
    hers, his = await tab(alice), await tab(bob)
    await hers.send(**SEND)
    started = await hers.next()
    run_id, thread_id = started["runId"], started["threadId"]
    for frame in (
        {"type": "run.resume", "runId": run_id},
        {"type": "run.stop", "runId": run_id},
        {"type": "tool.decide", "runId": run_id, "toolCallId": "call-1", "approved": True},
    ):
        await his.send(**frame)
        answer = await his.next()
        assert (answer["code"], answer["runId"]) == ("unknown_run", run_id)
    await his.send(**{**SEND, "threadId": thread_id, "clientMessageId": "b-1"})
    refusal = await his.next()
    assert (refusal["code"], refusal["clientMessageId"]) == ("unknown_thread", "b-1")
    await hers.send(type="run.stop", runId=run_id)
    await hers.until("run.ended")
    assert "For Alice" not in "".join(his.received)
