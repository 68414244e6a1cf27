"""A tool call that needs a person waits durably, and runs exactly as it was approved."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.utils import timezone

from accounts.models import User
from agents.models import Run, ToolCall
from agents.providers.scripted import says, tool_call
from agents.runner import runner
from agents.runner.reaper import runs_reap
from agents.services.runs import RunRefused, run_decide, run_stop
from audit.models import Change
from memory.selectors import messages_of
from tests.agents.conftest import Scripts, ask, finish, follow, published, text_of

pytestmark = pytest.mark.django_db(transaction=True)
REFUND = {"slug": "order_refund", "kind": "order-refund", "needs_approval": True}


@pytest.fixture
def approver(alice: User) -> User:
    alice.user_permissions.add(
        Permission.objects.get(codename="approve_tool", content_type__app_label="agents")
    )
    return User.objects.get(pk=alice.pk)


@pytest.fixture
def waiting(alice: User, script: Scripts) -> Run:
    """A run that waits for a refund to be approved."""
    published(tools=[REFUND])

    def answer(request):
        last = request.prompt[-1]
        if last["role"] != "tool":
            return [
                *says("One moment. "),
                tool_call("order_refund", {"number": "1001", "amount": 20.0}, "call-7"),
            ]
        part = last["content"][0]
        return says(
            f"Declined: {part['result']}"
            if part.get("isError")
            else f"Refunded {part['result']['refunded']}."
        )

    script(answer)
    run = ask(alice, "Refund order 1001")
    follow(run)
    runner().wait_idle(5)
    run.refresh_from_db()
    return run


def test_the_run_waits_and_says_for_what(waiting) -> None:
    assert waiting.status == "waiting"
    call = ToolCall.objects.get(run=waiting)
    assert (call.status, call.tool_slug, call.args) == (
        "approval",
        "order_refund",
        {"number": "1001", "amount": 20},
    )
    chunks = follow(waiting)
    assert "tool-call-approval" in [wire["type"] for _, wire in chunks]
    assert chunks[-1][1]["status"] == "waiting"


def test_an_approved_call_runs_and_the_answer_goes_on_with_numbers_that_continue(waiting, approver) -> None:
    before = follow(waiting)
    run_decide(user=approver, run_id=waiting.pk, tool_call_id="call-7", approved=True, reason="It is fine")
    after = follow(waiting, after=before[-1][0])
    run = finish(waiting)
    assert run.status == "completed"
    assert after[0][0] == before[-1][0] + 1
    assert text_of(after) == "Refunded 20."
    assert ToolCall.objects.get(run=run).status == "done"
    whole = follow(run)
    assert [number for number, _ in whole] == [
        number for number in range(1, after[-1][0] + 1) if number != before[-1][0]
    ]


def test_a_declined_call_never_runs_and_the_model_is_told_why(waiting, approver) -> None:
    run_decide(user=approver, run_id=waiting.pk, tool_call_id="call-7", approved=False, reason="Too much")
    run = finish(waiting)
    assert "Too much" in run.text
    assert ToolCall.objects.get(run=run).status == "declined"
    states = [
        part["toolInvocation"]["state"]
        for row in messages_of(run.thread)
        for part in row.parts
        if part["type"] == "tool-invocation"
    ]
    assert states == ["denied"]


def test_edited_arguments_are_checked_used_and_kept_before_and_after(waiting, approver) -> None:
    with pytest.raises(RunRefused, match="do not fit"):
        run_decide(
            user=approver,
            run_id=waiting.pk,
            tool_call_id="call-7",
            approved=True,
            args={"number": "1001", "amount": -5},
        )
    run_decide(
        user=approver,
        run_id=waiting.pk,
        tool_call_id="call-7",
        approved=True,
        args={"number": "1001", "amount": 5},
    )
    assert finish(waiting).text.endswith("Refunded 5.")
    change = Change.objects.get(action="approved")
    assert (change.before["args"]["amount"], change.after["args"]["amount"], change.actor_label) == (
        20,
        5,
        "alice",
    )


def test_who_may_approve_is_a_permission(waiting, alice, bob, charlie) -> None:
    with pytest.raises(RunRefused, match="may not decide"):
        run_decide(user=alice, run_id=waiting.pk, tool_call_id="call-7", approved=True)
    bob.user_permissions.add(
        Permission.objects.get(codename="approve_tool", content_type__app_label="agents")
    )
    with pytest.raises(RunRefused, match="no such run"):
        run_decide(user=User.objects.get(pk=bob.pk), run_id=waiting.pk, tool_call_id="call-7", approved=True)
    run_decide(user=charlie, run_id=waiting.pk, tool_call_id="call-7", approved=True)
    assert finish(waiting).status == "completed"


def test_a_second_decision_and_an_unknown_call_are_refused(waiting, approver) -> None:
    with pytest.raises(RunRefused, match="no such tool call"):
        run_decide(user=approver, run_id=waiting.pk, tool_call_id="call-8", approved=True)
    run_decide(user=approver, run_id=waiting.pk, tool_call_id="call-7", approved=True)
    with pytest.raises(RunRefused) as refusal:
        run_decide(user=approver, run_id=waiting.pk, tool_call_id="call-7", approved=False)
    assert refusal.value.code in {"not_waiting", "already_decided"}
    finish(waiting)


def test_a_waiting_run_can_be_stopped_and_its_call_is_closed(waiting, alice) -> None:
    assert run_stop(user=alice, run_id=waiting.pk).status == "cancelled"
    assert ToolCall.objects.get(run=waiting).status == "cancelled"
    states = [
        part["toolInvocation"]["state"]
        for row in messages_of(waiting.thread)
        for part in row.parts
        if part["type"] == "tool-invocation"
    ]
    assert states == ["error"]


def test_a_call_that_nobody_decides_ends_the_run(waiting) -> None:
    Run.objects.filter(pk=waiting.pk).update(started_at=timezone.now() - timezone.timedelta(days=2))
    assert runs_reap() == [waiting.pk]
    waiting.refresh_from_db()
    assert (waiting.status, waiting.error["message"]) == (
        "interrupted",
        "Nobody decided about a tool call in time.",
    )


def test_the_next_message_waits_for_the_decision(waiting, approver) -> None:
    second = ask(approver, "And now?", thread_id=waiting.thread_id)
    runner().wait_idle(2)
    second.refresh_from_db()
    assert second.status == "queued"
    run_decide(user=approver, run_id=waiting.pk, tool_call_id="call-7", approved=True)
    assert finish(second).status == "waiting"
    run_stop(user=approver, run_id=second.pk)
