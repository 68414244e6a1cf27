"""Conversations belong to their owner and hold only what was screened."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied

from accounts.models import User
from memory.models import Message, Thread
from memory.selectors import history, messages_of, thread_get, threads_of
from memory.services import (
    calls_closed,
    thread_create,
    thread_delete,
    thread_rename,
    title_of,
    turn_store,
    user_message_store,
)
from processors.engine.messages import Message as EngineMessage
from processors.engine.messages import MessageContent, assistant_message, user_message
from processors.engine.ports import Turn

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice() -> User:
    return User.objects.create_user("alice")


@pytest.fixture
def bob() -> User:
    return User.objects.create_user("bob")


@pytest.fixture
def thread(alice: User) -> Thread:
    return thread_create(owner=alice, agent_slug="helper")


def turn(run_id: uuid.UUID, *messages: EngineMessage, status: Any = "completed") -> Turn:
    return Turn(str(run_id), status, list(messages), {}, "stop")


def exchange(thread: Thread, question: str, answer: str, status: Any = "completed") -> uuid.UUID:
    """One finished run."""
    run_id, asked = uuid.uuid4(), user_message(question)
    user_message_store(thread=thread, message=asked, run_id=run_id)
    turn_store(
        thread=thread,
        turn=turn(run_id, asked, assistant_message(answer), status=status),
        input_message_id=asked.id,
    )
    return run_id


def texts(thread: Thread) -> list[str]:
    return ["".join(part.get("text", "") for part in row.parts) for row in messages_of(thread)]


def test_a_strangers_conversation_does_not_exist(thread, bob) -> None:
    for wrong in (thread.pk, uuid.uuid4(), "no id", "'; drop table"):
        with pytest.raises(Thread.DoesNotExist):
            thread_get(bob, wrong)
    assert list(threads_of(bob)) == []


def test_only_the_owner_renames_and_deletes(thread, alice) -> None:
    admin = User.objects.create_superuser("charlie")
    assert thread_get(admin, thread.pk) == thread
    for change in (
        lambda: thread_rename(actor=admin, thread=thread, title="Mine"),
        lambda: thread_delete(actor=admin, thread=thread),
    ):
        with pytest.raises(PermissionDenied):
            change()
    assert thread_rename(actor=alice, thread=thread, title="  My \n talk ").title == "My talk"
    with pytest.raises(ValueError, match="Write a title"):
        thread_rename(actor=alice, thread=thread, title=" \n ")
    thread_delete(actor=alice, thread=thread)
    assert Thread.objects.count() == 0


def test_messages_keep_the_order_of_their_runs_however_they_finish(thread) -> None:
    first, second = uuid.uuid4(), uuid.uuid4()
    one, two = user_message("one"), user_message("two")
    user_message_store(thread=thread, message=one, run_id=first)
    user_message_store(thread=thread, message=two, run_id=second)
    turn_store(
        thread=thread, turn=turn(second, two, assistant_message("answer two")), input_message_id=two.id
    )
    turn_store(thread=thread, turn=turn(first, one, assistant_message("answer one")), input_message_id=one.id)
    assert texts(thread) == ["one", "answer one", "two", "answer two"]
    assert [row.position for row in messages_of(thread)] == [0, 1, 1000, 1001]


def test_storing_a_turn_again_changes_its_rows_and_makes_none(thread) -> None:
    run_id, asked, answer = uuid.uuid4(), user_message("one"), assistant_message("draft")
    user_message_store(thread=thread, message=asked, run_id=run_id)
    turn_store(thread=thread, turn=turn(run_id, asked, answer, status="waiting"), input_message_id=asked.id)
    answer.set_text("final")
    turn_store(thread=thread, turn=turn(run_id, asked, answer), input_message_id=asked.id)
    assert texts(thread) == ["one", "final"]


def test_a_message_that_the_chain_took_out_is_withheld(thread) -> None:
    run_id, asked = uuid.uuid4(), user_message("forbidden")
    user_message_store(thread=thread, message=asked, run_id=run_id)
    turn_store(thread=thread, turn=turn(run_id, assistant_message("Hm.")), input_message_id=asked.id)
    row = Message.objects.get(pk=asked.id)
    assert (row.parts, row.withheld) == ([], True)


def test_rows_of_earlier_runs_never_change(thread) -> None:
    exchange(thread, "one", "answer one")
    remembered = history(thread, 10)
    remembered[0].set_text("rewritten by a processor")
    turn_store(thread=thread, turn=turn(uuid.uuid4(), *remembered, assistant_message("new")))
    assert texts(thread) == ["one", "answer one", "new"]


def test_a_message_whose_id_is_no_uuid_is_stored_once(thread) -> None:
    run_id = uuid.uuid4()
    made = assistant_message("made by a processor", id="note-1")
    for _ in range(2):
        turn_store(thread=thread, turn=turn(run_id, made))
    assert texts(thread) == ["made by a processor"]


def test_transient_parts_are_stored_nowhere(thread) -> None:
    parts = [{"type": "data-progress", "data": 1, "transient": True}, {"type": "data-note", "data": 2}]
    turn_store(thread=thread, turn=turn(uuid.uuid4(), EngineMessage("assistant", MessageContent(parts))))
    assert messages_of(thread)[0].parts == [{"type": "data-note", "data": 2}]


def test_history_leaves_out_what_no_model_may_see_again(thread) -> None:
    exchange(thread, "fine", "good")
    exchange(thread, "refused", "notice", status="blocked")
    exchange(thread, "broken", "error", status="failed")
    exchange(thread, "stopped", "half an ans", status="cancelled")
    assert [message.text for message in history(thread, 10)] == ["fine", "good", "stopped", "half an ans"]
    assert [message.text for message in history(thread, 3)] == ["stopped", "half an ans"]
    assert history(thread, 0) == []


def test_a_message_that_waits_for_its_chain_is_seen_by_its_owner_only(thread, alice) -> None:
    user_message_store(thread=thread, message=user_message("unscreened"), run_id=uuid.uuid4())
    admin = User.objects.create_superuser("charlie")
    assert len(messages_of(thread, reader=alice)) == 1
    assert messages_of(thread, reader=admin) == []


def test_messages_come_in_pages(thread) -> None:
    for number in range(3):
        exchange(thread, f"q{number}", f"a{number}")
    first = messages_of(thread, limit=2)
    assert [row.position for row in messages_of(thread, after=first[-1].position, limit=2)] == [1000, 1001]


def test_the_title_is_made_from_the_screened_text(thread, alice) -> None:
    run_id, asked = uuid.uuid4(), user_message("Write to alice@example.org about the parcel")
    user_message_store(thread=thread, message=asked, run_id=run_id)
    asked.set_text("Write to [EMAIL] about the parcel")
    turn_store(thread=thread, turn=turn(run_id, asked), input_message_id=asked.id)
    thread.refresh_from_db()
    assert thread.title == "Write to [EMAIL] about the parcel"
    assert title_of("word " * 40).endswith("word…")


def test_a_call_without_a_result_gets_one_that_says_why() -> None:
    call = {"type": "tool-invocation", "toolInvocation": {"state": "call", "toolCallId": "c"}}
    done = {"type": "tool-invocation", "toolInvocation": {"state": "result", "toolCallId": "d"}}
    closed = calls_closed([call, done, {"type": "text", "text": "x"}], "Stopped.")
    assert closed[0]["toolInvocation"] == {"state": "error", "toolCallId": "c", "errorText": "Stopped."}
    assert closed[1:] == [done, {"type": "text", "text": "x"}]
