"""What a person sees over the WebSocket."""

from __future__ import annotations

import random
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from accounts.models import User
from agents.bridge import in_database
from agents.models import Run
from agents.providers.scripted import Pause, says, tool_call
from memory.models import Message
from tests.agents.conftest import Scripts, forbids, published
from tests.chat.conftest import Socket, end_session, said, session_of, socket_for

pytestmark = pytest.mark.django_db(transaction=True)


async def test_it_streams_an_answer_in_numbered_chunks(alice: User, script: Scripts, tab: Any) -> None:
    script(says("Hello, Alice. How are you?"), cut=4)
    await in_database(published)
    socket = await tab(alice)
    frames = await socket.answer("Hi", clientMessageId="m-1")
    assert (frames[0]["type"], frames[0]["clientMessageId"], frames[0]["agent"]) == (
        "run.started",
        "m-1",
        "helper",
    )
    assert said(frames) == "Hello, Alice. How are you?"
    assert [frame["seq"] for frame in frames[1:]] == list(range(1, len(frames)))
    assert frames[-1]["status"] == "completed"
    assert {frame["runId"] for frame in frames} == {frames[0]["runId"]}


async def test_the_message_is_stored_before_the_run_is_announced(
    alice: User, script: Scripts, tab: Any
) -> None:
    script(lambda request: [Pause(5), *says("late")])
    await in_database(published)
    socket = await tab(alice)
    await socket.send(type="message.send", agent="helper", text="Keep this", clientMessageId="m-1")
    started = await socket.next()
    row = await in_database(Message.objects.get, pk=started["messageId"])
    assert row.parts == [{"type": "text", "text": "Keep this"}]
    await socket.send(type="run.stop", runId=started["runId"])
    assert (await socket.until("run.ended"))[-1]["status"] == "cancelled"


async def test_a_blocked_word_is_in_no_frame(alice: User, script: Scripts, tab: Any) -> None:
    script(says("Take a persimmon with you, it is fine."), cut=3)
    await in_database(
        lambda: published(chain={"output": [forbids("persimmon", public_message="Not about fruit, please.")]})
    )
    socket = await tab(alice)
    frames = await socket.answer("What shall I take?")
    tripwire = next(f["chunk"] for f in frames if f["type"] == "chunk" and f["chunk"]["type"] == "tripwire")
    assert tripwire["payload"]["reason"] == "Not about fruit, please."
    assert "persimmon" not in said(frames) and "Take a ".startswith(said(frames)[:7])
    assert not any("persimmon" in text or "immon" in text for text in socket.received)
    assert frames[-1]["status"] == "blocked"


async def test_a_repeated_message_id_finds_the_first_run(alice: User, script: Scripts, tab: Any) -> None:
    script(says("Once."))
    await in_database(published)
    socket = await tab(alice)
    first = await socket.answer("Hi", clientMessageId="same")
    again = await socket.answer("Hi", clientMessageId="same")
    assert again[0]["runId"] == first[0]["runId"] and said(again) == "Once."
    assert await in_database(Run.objects.count) == 1


async def test_a_reader_that_drops_and_resumes_gets_every_chunk_once(
    alice: User, script: Scripts, tab: Any
) -> None:
    text = "".join(f"{n} " for n in range(400))
    script(says(text), cut=5, pace=0.0005)
    await in_database(published)
    choice = random.Random(7)
    socket = await tab(alice)
    await socket.send(type="message.send", agent="helper", text="Count")
    run_id, seen, numbers, pieces = (await socket.next())["runId"], 0, [], []
    ended = False
    while not ended:
        for _ in range(choice.randint(1, 60)):
            frame = await socket.next()
            numbers.append(frame["seq"])
            pieces.append(frame)
            if ended := frame["type"] == "run.ended":
                break
        seen = numbers[-1]
        if not ended:
            socket = await tab(alice)
            await socket.send(type="run.resume", runId=run_id, after=seen)
    assert numbers == list(range(1, len(numbers) + 1))
    assert said(pieces) == text


async def test_a_second_tab_hears_of_a_run_and_sees_the_same(alice: User, script: Scripts, tab: Any) -> None:
    script(says("For both tabs."), cut=2)
    await in_database(published)
    one, two = await tab(alice), await tab(alice)
    frames = await one.answer("Hi")
    told = await two.next()
    assert told == {"type": "thread.run", "threadId": frames[0]["threadId"], "runId": frames[0]["runId"]}
    await two.send(type="run.resume", runId=told["runId"], after=0)
    assert await two.until("run.ended") == frames[1:]


async def test_stop_works_from_another_tab(alice: User, script: Scripts, tab: Any) -> None:
    script([*says("Shown. "), Pause(30), *says("Never shown.")])
    await in_database(published)
    one, two = await tab(alice), await tab(alice)
    await one.send(type="message.send", agent="helper", text="Go")
    run_id = (await one.next())["runId"]
    while (await one.next()).get("chunk", {}).get("type") != "text-delta":
        pass
    await two.send(type="run.stop", runId=run_id)
    frames = await one.until("run.ended")
    assert frames[-1]["status"] == "cancelled"
    stored = await in_database(lambda: Message.objects.get(run_id=run_id, role="assistant"))
    assert stored.parts == [{"type": "text", "text": "Shown. "}] and stored.status == "cancelled"


def refunds(times: int) -> Any:
    """A model that asks for so many refunds, one after the other."""

    def lines(request: Any) -> Any:
        done = sum(1 for message in request.prompt if message["role"] == "tool")
        call = tool_call("order_refund", {"number": "1001", "amount": 5}, f"call-{done + 1}")
        return [call] if done < times else says("Refunded.")

    return lines


async def test_a_tool_waits_for_the_persons_decision_each_time(
    charlie: User, script: Scripts, tab: Any
) -> None:
    script(refunds(2))
    tools = [{"slug": "order_refund", "kind": "order-refund", "needs_approval": True}]
    await in_database(lambda: published(tools=tools))
    socket = await tab(charlie)
    frames = await socket.answer("Refund order 1001 twice")
    for call in ("call-1", "call-2"):
        assert frames[-1]["status"] == "waiting"
        assert "tool-call-approval" in [f["chunk"]["type"] for f in frames if f["type"] == "chunk"]
        end = frames[-1]["seq"]
        await socket.send(
            type="tool.decide", runId=frames[-1]["runId"], toolCallId=call, approved=True, reason="fine"
        )
        frames = await socket.until("run.ended")
        assert frames[0]["seq"] == end + 1
    assert said(frames) == "Refunded." and frames[-1]["status"] == "completed"


async def test_nobody_is_let_in_without_a_session(db: None, living_server: str) -> None:
    async with socket_for(living_server, None) as connection:
        socket = Socket(connection)
        assert (await socket.next())["code"] == "not_signed_in"
        assert await socket.closing_code() == 4401


async def test_a_foreign_page_is_not_let_in(alice: User, living_server: str) -> None:
    session = await in_database(session_of, alice)
    with pytest.raises(InvalidStatus, match="403"):
        async with socket_for(living_server, session, origin="https://evil.example"):
            pass


async def test_signing_out_ends_an_open_socket(alice: User, script: Scripts, tab: Any) -> None:
    await in_database(published)
    socket = await tab(alice)
    await in_database(end_session, alice)
    await socket.send(type="message.send", agent="helper", text="Hi")
    assert (await socket.next())["code"] == "not_signed_in"
    assert await socket.closing_code() == 4401
    assert await in_database(Run.objects.count) == 0
