"""Live means published: nothing goes live by saving, and an old version never changes."""

from __future__ import annotations

import pytest
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, transaction

from accounts.roles import AGENT_EDITOR
from agents.actions import (
    agent_clone,
    agent_export,
    agent_import,
    agent_import_preview,
    agent_publish,
    agent_restore,
)
from agents.models import Agent, AgentVersion, ChainEntry
from agents.providers.scripted import says
from agents.snapshot import agent_snapshot, snapshot_diff
from audit.models import Change
from processors.engine.errors import ConfigError
from processors.models import Processor
from processors.services import processor_save
from tests.agents.conftest import ask, finish, forbids, guardrail, published

pytestmark = pytest.mark.django_db(transaction=True)


def system_text(script) -> str:
    return script.models[-1].requests[0].prompt[0]["content"]


def test_people_get_the_published_version_until_the_next_one(alice, script) -> None:
    agent = published(instructions="Be kind.")
    script(says("Yes."))
    Agent.objects.filter(pk=agent.pk).update(instructions="Be rude.")
    finish(ask(alice))
    assert system_text(script) == "Be kind."
    agent_publish(actor=None, agent=agent, note="Ruder")
    run = finish(ask(alice))
    assert system_text(script) == "Be rude."
    assert run.version is not None
    assert run.version.number == 2


def test_a_running_answer_keeps_the_version_it_began_with(alice, script) -> None:
    agent = published(instructions="Be kind.")
    script(says("A long and friendly answer."), cut=3, pace=0.02)
    run = ask(alice)
    agent_publish(actor=None, agent=agent, note="Again")
    finish(run)
    assert run.version.number == 1


def test_a_changed_guardrail_is_live_only_with_the_next_version(alice, script) -> None:
    words = forbids("persimmon")
    agent = published(chain={"output": [words]})
    processor_save(actor=None, processor=words, data={"options": {"words": ["bread"], "strategy": "block"}})
    script(says("Bread and butter."))
    assert finish(ask(alice)).status == "completed"
    agent_publish(actor=None, agent=agent, note="")
    assert finish(ask(alice)).status == "blocked"


def test_the_database_refuses_to_change_a_version(agent) -> None:
    version = AgentVersion.objects.get(agent=agent)
    with pytest.raises(DatabaseError, match="cannot be changed"), transaction.atomic():
        AgentVersion.objects.filter(pk=version.pk).update(snapshot={})


def test_publishing_is_a_permission_and_is_recorded(alice, charlie, agent) -> None:
    with pytest.raises(PermissionDenied):
        agent_publish(actor=alice, agent=agent, note="Mine")
    agent_publish(actor=charlie, agent=agent, note="Ours")
    change = Change.objects.filter(action="published").first()
    assert (change.actor_label, change.note) == ("charlie", "Version 2. Ours")
    assert change.before["slug"] == change.after["slug"] == "helper"


def test_an_agent_editor_publishes(alice, agent) -> None:
    from django.contrib.auth.models import Group

    alice.groups.add(Group.objects.get(name=AGENT_EDITOR))
    assert agent_publish(actor=alice, agent=agent, note="").number == 2


def test_a_guardrail_that_cannot_run_stops_the_publish(agent) -> None:
    broken = Processor.objects.create(slug="gone", name="Gone", kind="left-the-house")
    ChainEntry.objects.create(agent=agent, stage="input", processor=broken)
    with pytest.raises(ConfigError, match=r"“Gone” cannot run.*is not installed"):
        agent_publish(actor=None, agent=agent, note="")


def test_two_editors_at_once_are_told(agent) -> None:
    with pytest.raises(ConfigError, match="Somebody changed this agent"):
        agent_publish(actor=None, agent=agent, note="", expected_revision=99)


def test_an_old_version_is_restored_into_the_draft_only(agent, charlie) -> None:
    words = forbids("persimmon")
    ChainEntry.objects.create(agent=agent, stage="output", processor=words)
    Agent.objects.filter(pk=agent.pk).update(instructions="New.")
    agent_publish(actor=None, agent=agent, note="")
    first = AgentVersion.objects.get(agent=agent, number=1)
    draft = agent_restore(actor=charlie, agent=agent, version=first)
    assert agent_snapshot(draft) == first.snapshot
    assert draft.published.number == 2
    assert Change.objects.filter(action="restored").exists()


def test_a_secret_is_in_no_snapshot(agent, charlie) -> None:
    from agents.credentials import credential_save
    from agents.models import ProviderCredential

    credential = credential_save(
        actor=charlie,
        credential=ProviderCredential(slug="main", name="Main", provider="openai"),
        secret="sk-very-secret",
    )
    Agent.objects.filter(pk=agent.pk).update(credential=credential)
    text = agent_export(actor=charlie, agent=Agent.objects.get(pk=agent.pk))
    assert "credential: main" in text
    assert "very-secret" not in text


def test_differences_read_like_sentences(agent) -> None:
    one, two = forbids("persimmon", slug="fruit"), guardrail("pii-detector", "personal-data")
    old = {**agent_snapshot(agent), "chains": {"input": [_item(one), _item(two)], "output": [], "error": []}}
    changed = {**_item(two), "options": {"strategy": "block"}}
    new = {
        **old,
        "instructions": "Be brief.",
        "temperature": 0.8,
        "chains": {"input": [changed, _item(one)], "output": [_item(one)], "error": []},
    }
    assert snapshot_diff(old, new) == [
        "Instructions is set to Be brief.", "Temperature is set to 0.8.", "Personal data: strategy is set to block.",
        "Personal data moved before Fruit (on what people write).", "Fruit now runs on what the agent answers.",
    ]  # fmt: skip
    assert snapshot_diff(new, new) == []


def _item(processor: Processor) -> dict:
    from processors.snapshot import processor_snapshot

    return processor_snapshot(processor)


def test_what_was_exported_is_imported_as_it_was(charlie) -> None:
    pattern = guardrail(
        "regex-filter",
        "codes",
        options={"rules": [{"name": "code", "pattern": " AB-[0-9]{4}", "replacement": "[CODE]"}]},
    )
    agent = published(
        instructions="Two lines,\n  one indented.\nÜmläuts and “quotes”: yes.",
        chain={"input": [pattern]},
        tools=[{"slug": "clock", "kind": "clock"}],
    )
    before, text = agent_snapshot(agent), agent_export(actor=charlie, agent=agent)
    agent.chain.all().delete()
    Agent.objects.filter(pk=agent.pk).update(instructions="Gone.")
    assert agent_import_preview(actor=charlie, text=text)
    agent_import(actor=charlie, text=text)
    assert agent_snapshot(Agent.objects.get(pk=agent.pk)) == before
    assert "Two lines," in text


def test_an_import_makes_what_is_missing_and_leaves_alone_what_is_there(charlie) -> None:
    words = forbids("persimmon")
    agent = published(chain={"input": [words]})
    text = agent_export(actor=charlie, agent=agent).replace("slug: helper", "slug: twin", 1)
    processor_save(actor=None, processor=words, data={"options": {"words": ["bread"]}})
    assert any("stays as it is" in sentence for sentence in agent_import_preview(actor=charlie, text=text))
    twin = agent_import(actor=charlie, text=text)
    assert twin.published is None
    assert Processor.objects.get(slug="forbidden").options == {"words": ["bread"]}


@pytest.mark.parametrize(
    ("text", "words"),
    [("just: [words", "no readable YAML"), ("- a\n- b", "no exported agent"), ("slug: a\nmodel: b/c\nsecret: x", "do not have"),
     ("slug: a b\nmodel: b/c", "short name"), ("slug: a\nmodel: b/c\nmax_steps: 900", "does not fit"), ("a: &x 1\nb: *x", "aliases"),
     ("!!python/object/apply:os.system ['true']", "no readable YAML"), ("slug: a\nmodel: b/c\nchains: {input: [{slug: x, kind: nope}]}", "not installed")],
)  # fmt: skip
def test_a_file_that_is_no_agent_is_refused_with_a_sentence(charlie, text, words) -> None:
    with pytest.raises(ConfigError, match=words):
        agent_import(actor=charlie, text=text)
    assert Agent.objects.count() == 0


def test_a_clone_is_a_draft_of_its_own(charlie) -> None:
    agent = published(chain={"input": [forbids("persimmon")]}, tools=[{"slug": "clock", "kind": "clock"}])
    copy = agent_clone(actor=charlie, agent=agent, slug="twin", name="Twin")
    assert copy.published is None
    assert {**agent_snapshot(copy), "slug": "helper", "name": "Helper"} == agent_snapshot(agent)
    with pytest.raises(ConfigError, match="already"):
        agent_clone(actor=charlie, agent=agent, slug="twin", name="Twin")


def test_who_may_chat_is_decided_by_the_published_version(alice, script) -> None:
    from accounts.policies import can

    agent = published(access="groups")
    assert not can(alice, "agent.chat", agent)
    Agent.objects.filter(pk=agent.pk).update(access="everyone")
    assert not can(alice, "agent.chat", Agent.objects.get(pk=agent.pk))
    agent_publish(actor=None, agent=agent, note="")
    assert can(alice, "agent.chat", Agent.objects.get(pk=agent.pk))
