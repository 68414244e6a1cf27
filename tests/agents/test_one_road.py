"""Every message and its run are stored before anything is asked of a model, once."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from agents.actions import agent_publish
from agents.models import Agent, Run
from agents.providers.scripted import Pause, says
from agents.services.runs import RunRefused, run_begin, run_start
from memory.models import Message, Thread
from memory.selectors import messages_of
from processors.engine.errors import ModelAPIError
from tests.agents.conftest import ask, finish, follow, published, text_of

pytestmark = pytest.mark.django_db(transaction=True)


def refused(**asked: Any) -> str:
    with pytest.raises(RunRefused) as refusal:
        run_start(**{"channel": "test", "agent_slug": "helper", "text": "Hello", **asked})
    assert str(refusal.value).endswith(".")
    return refusal.value.code


def test_a_message_is_answered_and_both_are_stored(alice, agent, script) -> None:
    script(says("Good morning, Alice."))
    run = finish(ask(alice, "Good morning"))
    assert run.status == "completed"
    assert run.text == "Good morning, Alice."
    assert [(row.role, row.parts) for row in messages_of(run.thread)] == [
        ("user", [{"type": "text", "text": "Good morning"}]),
        ("assistant", [{"type": "text", "text": "Good morning, Alice."}]),
    ]
    assert run.usage["totalTokens"] > 0


def test_what_was_written_is_stored_before_the_model_is_asked(alice, agent, script) -> None:
    seen: list[str] = []

    def answer(request: Any) -> Any:
        seen.append("asked")
        return says("Yes.")

    script(answer)
    run = run_start(user=alice, agent_slug="helper", text="Are you there?", channel="test")
    assert Message.objects.get(run_id=run.pk).parts == [{"type": "text", "text": "Are you there?"}]
    assert seen == []


def test_a_repeated_client_id_gives_the_first_run(alice, agent) -> None:
    first = run_start(user=alice, agent_slug="helper", text="Hello", client_message_id="m-1", channel="test")
    again = run_start(user=alice, agent_slug="helper", text="Hello", client_message_id="m-1", channel="test")
    assert again.pk == first.pk
    assert Message.objects.count() == 1


def test_the_same_id_sent_eight_times_at_once_makes_one_run(alice, agent) -> None:
    def start(_: int) -> Any:
        try:
            return run_start(
                user=alice, agent_slug="helper", text="Hello", idempotency_key="k", channel="test"
            ).pk
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(start, range(8)))) == 1
    assert (Run.objects.count(), Message.objects.count(), Thread.objects.count()) == (1, 1, 1)


def test_the_id_of_somebody_else_is_ones_own_id(alice, bob, agent) -> None:
    hers = run_start(user=alice, agent_slug="helper", text="Hello", client_message_id="m-1", channel="test")
    his = run_start(user=bob, agent_slug="helper", text="Hello", client_message_id="m-1", channel="test")
    assert hers.pk != his.pk


def test_a_run_survives_its_reader(alice, agent, script) -> None:
    script(says("One two three four five six."), cut=3, pace=0.01)
    run = ask(alice)
    follow(run, limit=4)
    assert finish(run).status == "completed"


def test_async_callers_begin_runs_too(alice, agent, script) -> None:
    script(says("Hi."))
    run = asyncio.run(run_begin(user=alice, agent_slug="helper", text="Hello", channel="test"))
    assert text_of(follow(run)) == "Hi."


def test_two_messages_on_one_thread_are_answered_one_after_the_other(alice, agent, script) -> None:
    script(lambda request: [Pause(0.05), *says(f"You said {request.prompt[-1]['content'][0]['text']}.")])
    first = ask(alice, "one")
    second = ask(alice, "two", thread_id=first.thread_id)
    third = ask(alice, "three", thread_id=first.thread_id)
    for run in (first, second, third):
        finish(run)
    texts = ["".join(part["text"] for part in row.parts) for row in messages_of(first.thread)]
    assert texts == ["one", "You said one.", "two", "You said two.", "three", "You said three."]


def test_the_second_run_remembers_the_first_and_not_the_third(alice, agent, script) -> None:
    script(lambda request: [Pause(0.05), *says("All right.")])
    first = ask(alice, "one")
    runs = [
        first,
        ask(alice, "two", thread_id=first.thread_id),
        ask(alice, "three", thread_id=first.thread_id),
    ]
    for run in runs:
        finish(run)
    prompts = [
        [part["text"] for message in model.requests[0].prompt for part in message["content"]]
        for model in script.models
    ]
    assert prompts == [
        ["one"],
        ["one", "All right.", "two"],
        ["one", "All right.", "two", "All right.", "three"],
    ]


def test_an_agent_may_refuse_a_second_message_meanwhile(alice, script) -> None:
    published(when_busy="reject")
    script([Pause(0.2), *says("Done.")])
    first = ask(alice)
    assert refused(user=alice, thread_id=first.thread_id) == "thread_busy"
    finish(first)
    finish(ask(alice, thread_id=first.thread_id))


def test_what_cannot_be_done_is_refused_with_a_code(alice, agent) -> None:
    assert refused(user=alice, agent_slug="nobody") == "unknown_agent"
    assert refused(user=alice, text="   ") == "empty"
    assert refused(user=alice, text="x" * 1_000_000) == "too_long"
    assert refused(user=alice, thread_id="no-uuid") == "unknown_thread"
    assert refused(user=alice, overrides={"input_processors": []}) == "bad_request"
    assert refused(user=alice, overrides={"model_settings": {"temperature": 9}}) == "bad_request"
    assert refused(user=alice, client_message_id="x" * 500) == "bad_request"
    assert refused(user=alice, parts=[{"type": "file", "url": "http://169.254.169.254/"}]) == "bad_request"
    assert Run.objects.count() == 0


def test_an_unpublished_agent_and_one_that_is_switched_off_answer_nobody(alice, agent) -> None:
    Agent.objects.create(slug="draft", name="Draft", model="scripted/test")
    assert refused(user=alice, agent_slug="draft") == "not_published"
    Agent.objects.filter(pk=agent.pk).update(is_active=False)
    assert refused(user=alice) == "not_published"


def test_a_flood_of_one_person_is_refused(alice, agent, script, settings) -> None:
    settings.GATEHOUSE_MAX_ACTIVE_RUNS = 5
    for number in range(5):
        run_start(user=alice, agent_slug="helper", text=f"Message {number}", channel="test")
    assert refused(user=alice) == "rate_limited"


def test_text_that_postgres_cannot_hold_is_cleaned(alice, agent, script) -> None:
    script(says("You\x00 too \ud83d."))
    run = finish(ask(alice, "nul\x00 and half \ud83d a pair"))
    assert run.status == "completed"
    assert messages_of(run.thread)[0].parts[0]["text"] == "nul and half ? a pair"
    assert "\x00" not in run.text


def test_a_caller_may_bring_earlier_messages_and_a_system_text(alice, agent, script) -> None:
    script(says("Fine."))
    history = [{"role": "user", "text": "I am Alice."}, {"role": "assistant", "text": "Hello."}]
    finish(
        ask(
            alice,
            "Who am I?",
            overrides={"history": history, "system": "Be brief.", "model_settings": {"temperature": 0}},
        )
    )
    request = script.models[0].requests[0]
    assert [message["role"] for message in request.prompt] == ["system", "user", "assistant", "user"]
    assert request.settings["temperature"] == 0


def test_a_failing_provider_leaves_the_message_and_an_error(alice, agent, script) -> None:
    script([ModelAPIError("Busy.", status=503, retryable=True)])
    run = finish(ask(alice, "Hello"))
    assert run.status == "failed"
    rows = messages_of(run.thread)
    assert [(row.role, row.status) for row in rows] == [("user", "failed"), ("assistant", "failed")]
    assert rows[1].parts[0]["type"] == "error"


def test_a_run_whose_chain_cannot_be_built_fails_and_says_so(alice, agent, script) -> None:
    Agent.objects.filter(pk=agent.pk).update(model="scripted/gone")
    agent.refresh_from_db()
    agent_publish(actor=None, agent=agent, note="")
    run = ask(alice)
    chunks = follow(run)
    finish(run)
    assert [wire["type"] for _, wire in chunks] == ["error", "run-end"]
    assert run.status == "failed"
    assert "no scripted model 'gone'" in run.error["message"]
    assert "scripted" not in chunks[0][1]["payload"]["error"]["message"]
