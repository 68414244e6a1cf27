"""What is stored, shown and recorded is what the chains let through, on every road the same."""

from __future__ import annotations

import json

import pytest

from agents.models import ChainEntry, Run
from agents.providers.scripted import says, tool_call
from audit.models import ProcessorHour, TrailHead, Violation
from audit.verify import trail_verify
from memory.models import Message, Thread
from memory.selectors import messages_of
from tests.agents.conftest import ask, finish, follow, forbids, guardrail, published, text_of

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "persimmon"
MAIL = "alice.ash@example.org"


def everything_stored() -> str:
    """All that the database holds of conversations, runs and the audit, as one text."""
    models = (Message, Thread, Run, Violation)
    return json.dumps([list(model.objects.values()) for model in models], default=str)


def test_a_refused_message_is_withheld_and_the_model_never_asked(alice, script) -> None:
    published(chain={"input": [forbids(SECRET, public_message="We do not talk about fruit.")]})
    script(says("Never said."))
    run = ask(alice, f"Tell me about the {SECRET}, please")
    chunks = follow(run)
    finish(run)
    assert run.status == "blocked"
    assert script.models[0].requests == []
    user, notice = messages_of(run.thread)
    assert (user.status, user.withheld, user.parts) == ("blocked", True, [])
    assert notice.parts[0]["reason"] == "We do not talk about fruit."
    assert SECRET not in everything_stored() + json.dumps(chunks)
    assert Thread.objects.get(pk=run.thread_id).title == ""


def test_people_read_the_public_message_and_auditors_the_reason(alice, script) -> None:
    published(chain={"output": [forbids(SECRET, public_message="Let us change the subject.")]})
    script(says(f"A {SECRET} is sweet."))
    run = ask(alice)
    trip = next(wire for _, wire in follow(run) if wire["type"] == "tripwire")
    finish(run)
    row = Violation.objects.get()
    assert trip["payload"]["reason"] == run.tripwire["reason"] == "Let us change the subject."
    assert row.message != "Let us change the subject."


def test_there_is_exactly_one_row_and_it_says_who_what_and_where(alice, script) -> None:
    agent = published(chain={"output": [forbids(SECRET, severity="high")]})
    script(says(f"A ripe {SECRET}."))
    run = finish(ask(alice, channel="websocket"))
    row = Violation.objects.get()
    assert (row.outcome, row.action, row.severity, row.kind, row.processor_id) == (
        "violation",
        "block",
        "high",
        "block-list",
        "forbidden",
    )
    assert (row.run_id, row.thread_id, row.agent_slug, row.agent_version) == (
        run.pk,
        run.thread_id,
        agent.slug,
        1,
    )
    assert (row.user_id, row.user_label, row.channel, row.hook) == (
        alice.pk,
        "alice",
        "websocket",
        "process_output_stream",
    )
    assert row.matches
    assert row.digest
    assert SECRET not in json.dumps(Violation.objects.values().get(), default=str)
    assert trail_verify() is None
    assert TrailHead.objects.get().rows == 1


def test_a_redacted_message_is_stored_redacted(alice, script) -> None:
    published(chain={"input": [guardrail("pii-detector", "personal-data")]})
    script(says("Noted."))
    run = finish(ask(alice, f"Write to {MAIL}, please"))
    assert run.status == "completed"
    assert MAIL not in everything_stored()
    assert MAIL not in str(script.models[0].requests[0].prompt)
    assert "please" in messages_of(run.thread)[0].parts[0]["text"]
    assert MAIL not in Thread.objects.get(pk=run.thread_id).title


def test_a_redacted_answer_is_stored_as_it_was_shown(alice, script) -> None:
    published(chain={"output": [guardrail("pii-detector", "personal-data")]})
    script(says(f"Her address is {MAIL}, I think."), cut=3)
    run = ask(alice)
    shown = text_of(follow(run))
    finish(run)
    assert MAIL not in shown + everything_stored()
    assert shown == run.text == messages_of(run.thread)[1].parts[0]["text"]


def test_a_tool_result_is_stored_as_the_chain_left_it(alice, script) -> None:
    tools = [{"slug": "order_lookup", "kind": "order-lookup"}]
    published(chain={"output": [guardrail("pii-detector", "personal-data")]}, tools=tools)
    script([tool_call("order_lookup", {"number": "1001"})], says("Found it."))
    run = finish(ask(alice, "Where is my order?"))
    assert MAIL not in everything_stored() + str(script.models[0].requests[1].prompt)
    row = Violation.objects.get()
    assert (row.hook, row.tool_name, row.tool_call_id) == ("process_tool_result", "order_lookup", "call-1")
    assert run.text == "Found it."


def test_blocked_messages_are_never_sent_to_a_model_again(alice, script) -> None:
    published(chain={"output": [forbids(SECRET)]})
    script(lambda request: says(f"A {SECRET}." if "fruit" in str(request.prompt[-1]) else "Bread."))
    run = finish(ask(alice, "A fruit?"))
    finish(ask(alice, "A loaf?", thread_id=run.thread_id))
    assert "fruit" not in str(script.models[-1].requests[0].prompt)


def test_a_guardrail_of_every_agent_counts_from_the_next_run_without_publishing(alice, script) -> None:
    published()
    script(says(f"A {SECRET}."))
    assert finish(ask(alice)).status == "completed"
    forbids(SECRET, slug="house-rule", mandatory="output")
    run = finish(ask(alice))
    assert run.status == "blocked"
    assert [one["slug"] for one in run.mandatory["output"]] == ["house-rule"]


def test_a_guardrail_that_fails_stops_the_answer_or_is_recorded_as_not_scanned(
    alice, script, breaking_kind
) -> None:
    agent = published(chain={"output": [guardrail(breaking_kind, "fragile")]})
    script(says("Unchecked."))
    run = finish(ask(alice))
    assert (run.status, run.text) == ("failed", "")
    assert Violation.objects.get().outcome == "error"
    ChainEntry.objects.filter(agent=agent).delete()
    published("lenient", chain={"output": [guardrail(breaking_kind, "lenient", on_error="allow")]})
    run = finish(ask(alice, agent="lenient"))
    assert (run.status, run.text) == ("completed", "Unchecked.")
    assert Violation.objects.filter(outcome="not_scanned").exists()


def test_if_the_audit_cannot_be_written_nothing_is_delivered(alice, script, locked_trail) -> None:
    published(chain={"output": [guardrail("pii-detector", "personal-data")]})
    script(says(f"Write to {MAIL} today."))
    run = ask(alice)
    chunks = follow(run)
    finish(run)
    assert run.status == "failed"
    assert "today" not in text_of(chunks)
    assert Violation.objects.count() == 0


def test_rates_have_a_true_denominator(alice, script) -> None:
    published(chain={"output": [forbids(SECRET)]})
    script(says("Bread."))
    finish(ask(alice))
    script(says(f"A {SECRET}."))
    finish(ask(alice))
    row = ProcessorHour.objects.get(processor_id="forbidden", agent_slug="helper")
    assert row.violations == 1
    assert row.evaluated > row.violations
    assert Run.objects.exclude(stats=[]).count() == 2


def test_a_transient_chunk_is_shown_and_stored_nowhere(alice, script) -> None:
    published(tools=[{"slug": "slow_report", "kind": "slow-report"}])
    script([tool_call("slow_report", {"seconds": 0.05, "topic": "whales"})], says("Done."))
    run = ask(alice)
    chunks = follow(run)
    finish(run)
    progress = [wire for _, wire in chunks if wire["type"] == "data-tool-progress"]
    assert progress[-1]["data"]["percent"] == 100
    assert "part 1 of" in progress[-1]["data"]["message"]
    assert "part 1 of" not in everything_stored()
