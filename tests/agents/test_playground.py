"""The playground runs the draft as it is on the screen, and leaves nothing behind but the run."""

from __future__ import annotations

import pytest

from agents.models import Agent
from agents.providers.scripted import says
from agents.services.runs import RunRefused, draft_run_start, run_launch
from agents.snapshot import agent_snapshot
from memory.models import Message, Thread
from processors.engine.messages import assistant_message, user_message
from tests.agents.conftest import finish, follow, forbids, published, text_of

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_draft_answers_and_the_live_version_does_not(charlie, script) -> None:
    agent = published(instructions="Live.")
    Agent.objects.filter(pk=agent.pk).update(instructions="Draft.")
    script(says("From the draft."))
    snapshot = agent_snapshot(Agent.objects.get(pk=agent.pk))
    run = draft_run_start(
        user=charlie, snapshot=snapshot, text="Who?", history=[user_message("Hi"), assistant_message("Hello")]
    )
    run_launch(run)
    assert text_of(follow(run)) == "From the draft."
    run = finish(run)
    assert (run.version, run.thread, run.channel, run.text) == (None, None, "playground", "From the draft.")
    prompt = script.models[0].requests[0].prompt
    assert prompt[0]["content"] == "Draft."
    assert [message["role"] for message in prompt] == ["system", "user", "assistant", "user"]
    assert (Thread.objects.count(), Message.objects.count()) == (0, 0)


def test_guardrails_of_the_draft_and_of_every_agent_run(charlie, script) -> None:
    agent = published()
    forbids("persimmon", slug="house", mandatory="input")
    script(says("Never."))
    run = draft_run_start(user=charlie, snapshot=agent_snapshot(agent), text="A persimmon")
    run_launch(run)
    assert finish(run).status == "blocked"


def test_only_people_who_edit_agents_may_try_drafts(alice, agent) -> None:
    with pytest.raises(RunRefused, match="may not try drafts"):
        draft_run_start(user=alice, snapshot=agent_snapshot(agent), text="Hello")
