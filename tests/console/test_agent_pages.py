"""From draft to live and back, through the pages that an editor sees."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from agents.models import Agent
from audit.models import Change
from processors.models import Processor
from tests.console.conftest import agent_data

pytestmark = pytest.mark.django_db


def url(name: str, agent: Agent, *more: object) -> str:
    return reverse(f"admin:agents_agent_{name}", args=[agent.pk, *more])


def publish(client: Client, agent: Agent, note: str = "First version") -> None:
    agent.refresh_from_db()
    response = client.post(url("publish", agent), {"note": note, "expected_revision": agent.revision})
    assert response.status_code == 302, response.content.decode()
    agent.refresh_from_db()


def test_saving_changes_the_draft_only(alice, signed_in, agent) -> None:
    client = signed_in(alice)
    publish(client, agent)
    response = client.post(url("change", agent), agent_data(agent, instructions="Help politely."))
    assert response.status_code == 302
    agent.refresh_from_db()
    assert agent.instructions == "Help politely."
    assert agent.published.snapshot["instructions"] == "Help."


def test_the_banner_says_what_publishing_would_change(alice, signed_in, agent) -> None:
    client = signed_in(alice)
    assert "Nobody can use this agent yet" in client.get(url("change", agent)).content.decode()
    publish(client, agent)
    assert "This draft is what people get: version 1" in client.get(url("change", agent)).content.decode()
    client.post(url("change", agent), agent_data(agent, instructions="Help politely."))
    page = client.get(url("change", agent)).content.decode()
    assert "This draft differs from what people get (version 1)" in page
    assert "nstructions" in page


def test_publishing_asks_for_a_note(alice, signed_in, agent) -> None:
    response = signed_in(alice).post(url("publish", agent), {"note": "", "expected_revision": agent.revision})
    assert response.status_code == 200
    assert "note" in response.context["form"].errors
    agent.refresh_from_db()
    assert agent.published is None


def test_publishing_a_draft_that_somebody_changed_meanwhile_is_refused(alice, signed_in, agent) -> None:
    client = signed_in(alice)
    seen = agent.revision
    client.post(url("change", agent), agent_data(agent, name="Other"))
    response = client.post(url("publish", agent), {"note": "x", "expected_revision": seen})
    assert response.status_code == 200
    agent.refresh_from_db()
    assert agent.published is None


def test_a_broken_guardrail_stops_the_publish(alice, signed_in, agent) -> None:
    broken = Processor.objects.create(slug="old", name="Old guard", kind="gone")
    agent.chain.create(stage="input", processor=broken)
    response = signed_in(alice).post(
        url("publish", agent), {"note": "x", "expected_revision": agent.revision}
    )
    assert "Guardrails are broken: Old guard" in response.content.decode()


def test_an_old_version_goes_back_into_the_draft(alice, signed_in, agent) -> None:
    client = signed_in(alice)
    publish(client, agent)
    client.post(url("change", agent), agent_data(agent, instructions="Be rude."))
    publish(client, agent, "Oops")
    client.post(url("version", agent, 1))
    agent.refresh_from_db()
    assert agent.instructions == "Help."
    assert agent.published.number == 2


def test_a_second_editor_with_an_old_page_is_told_and_nothing_is_lost(alice, signed_in, agent) -> None:
    client = signed_in(alice)
    old_page = agent_data(agent, name="Second")
    client.post(url("change", agent), agent_data(agent, name="First"))
    response = client.post(url("change", agent), old_page)
    assert "Somebody else saved this agent" in response.content.decode()
    agent.refresh_from_db()
    assert agent.name == "First"


def test_the_short_name_stays(alice, signed_in, agent) -> None:
    signed_in(alice).post(url("change", agent), agent_data(agent, slug="other"))
    agent.refresh_from_db()
    assert agent.slug == "helper"


def test_chains_are_saved_in_the_order_on_the_screen(alice, signed_in, agent, stranger_kind) -> None:
    first, second = (
        Processor.objects.create(slug=slug, name=slug, kind="stranger") for slug in ("one", "two")
    )
    rows = {"chain_input-TOTAL_FORMS": 2, "chain_input-0-processor": second.pk, "chain_input-0-enabled": "on", "chain_input-0-position": 0,
            "chain_input-1-processor": first.pk, "chain_input-1-enabled": "on", "chain_input-1-position": 0}  # fmt: skip
    response = signed_in(alice).post(url("change", agent), agent_data(agent, **rows))
    assert response.status_code == 302, response.context["errors"]
    assert [(entry.stage, entry.processor.slug) for entry in agent.chain.all()] == [
        ("input", "two"),
        ("input", "one"),
    ]
    a, b = agent.chain.all()
    agent.refresh_from_db()
    moved = {"chain_input-TOTAL_FORMS": 2, "chain_input-INITIAL_FORMS": 2, "chain_input-0-id": a.pk, "chain_input-0-processor": second.pk,
             "chain_input-0-enabled": "on", "chain_input-0-position": 1, "chain_input-1-id": b.pk, "chain_input-1-processor": first.pk,
             "chain_input-1-enabled": "on", "chain_input-1-position": 0}  # fmt: skip
    signed_in(alice).post(url("change", agent), agent_data(agent, **moved))
    assert [entry.processor.slug for entry in agent.chain.all()] == ["one", "two"]


def test_what_will_really_run_names_the_guardrails_of_every_agent(
    alice, signed_in, agent, stranger_kind
) -> None:
    Processor.objects.create(slug="house", name="House rule", kind="stranger", mandatory="input")
    own = Processor.objects.create(slug="own", name="Own rule", kind="stranger")
    agent.chain.create(stage="input", processor=own)
    chains = signed_in(alice).get(url("change", agent)).context["chains"]
    assert [(link.processor.name, link.mandatory) for link in chains[0].links] == [
        ("House rule", True),
        ("Own rule", False),
    ]


def test_a_change_is_recorded_with_before_and_after(alice, signed_in, agent) -> None:
    client = signed_in(alice)
    client.post(url("change", agent), agent_data(agent, instructions="Help politely."))
    change = Change.objects.get(object_type="agent")
    page = client.get(reverse("admin:audit_change_change", args=[change.pk])).content.decode()
    assert "nstructions" in page


def test_a_copy_has_its_own_short_name_and_is_not_live(alice, signed_in, agent) -> None:
    client = signed_in(alice)
    publish(client, agent)
    client.post(url("clone", agent), {"name": "Twin", "slug": "twin"})
    assert Agent.objects.get(slug="twin").published is None
    response = client.post(url("clone", agent), {"name": "Twin", "slug": "twin"})
    assert "already" in response.content.decode()


def test_what_is_exported_can_be_imported_after_a_look_at_the_difference(alice, signed_in, agent) -> None:
    client = signed_in(alice)
    text = client.get(url("export", agent)).content.decode()
    client.post(url("change", agent), agent_data(agent, instructions="Something else."))
    page = reverse("admin:agents_agent_import")
    preview = client.post(page, {"text": text})
    assert "What the import would do" in preview.content.decode()
    agent.refresh_from_db()
    assert agent.instructions == "Something else."
    client.post(page, {"text": text, "confirm": "1"})
    agent.refresh_from_db()
    assert agent.instructions == "Help."


def test_a_file_that_is_no_agent_is_refused_with_a_sentence(alice, signed_in) -> None:
    response = signed_in(alice).post(reverse("admin:agents_agent_import"), {"text": "just: [words"})
    assert response.status_code == 200
    assert response.context["form"].errors


@pytest.mark.parametrize("key", ["support", "hr", "children", "code", "research"])
def test_a_template_makes_a_draft(alice, signed_in, key) -> None:
    signed_in(alice).post(reverse("admin:agents_agent_start"), {"template": key})
    assert Agent.objects.get(slug=key).published is None


def test_a_model_needs_a_provider(alice, signed_in, agent) -> None:
    response = signed_in(alice).post(url("change", agent), agent_data(agent, model="smollm2"))
    assert "with a slash between them" in str(response.context["adminform"].form.errors["model"])
