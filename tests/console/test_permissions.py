"""Who may open and do what, page by page."""

from __future__ import annotations

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.models import ApiKey
from agents.models import Run
from audit.models import Review, Violation
from memory.models import Thread
from tests.console.conftest import agent_data, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def violation(agent, alice) -> Violation:
    thread = Thread.objects.create(owner=alice, agent_slug=agent.slug, title="A secret talk")
    run = Run.objects.create(agent=agent, thread=thread, owner=alice, channel="websocket")
    return Violation.objects.create(
        at=timezone.now(), outcome="violation", action="redact", processor_id="pii", message="E-mail address",
        hook="process_input", run_id=run.pk, thread_id=thread.pk, agent_slug=agent.slug, excerpt="p•••",
    )  # fmt: skip


LISTS = ("agents_agent", "processors_processor", "agents_tool", "memory_thread", "agents_run", "audit_violation", "audit_change",
         "accounts_user", "auth_group", "accounts_apikey", "agents_providercredential")  # fmt: skip


@pytest.mark.parametrize("area", LISTS)
def test_the_owner_of_the_house_sees_every_list(alice, signed_in, area) -> None:
    assert signed_in(alice).get(reverse(f"admin:{area}_changelist")).status_code == 200


@pytest.mark.parametrize("area", LISTS)
def test_somebody_without_rights_sees_none(signed_in, db, area) -> None:
    assert signed_in(person("dora")).get(reverse(f"admin:{area}_changelist")).status_code == 403


@pytest.mark.parametrize(("area", "status"), [("agents_agent", 200), ("processors_processor", 200), ("audit_violation", 403), ("memory_thread", 403), ("accounts_user", 403)])  # fmt: skip
def test_an_agent_editor_sees_agents_and_no_conversations(bob, signed_in, area, status) -> None:
    assert signed_in(bob).get(reverse(f"admin:{area}_changelist")).status_code == status


def test_an_agent_editor_saves_but_does_not_publish(bob, signed_in, agent) -> None:
    client = signed_in(bob)
    response = client.post(
        reverse("admin:agents_agent_change", args=[agent.pk]), agent_data(agent, name="Renamed")
    )
    assert response.status_code == 302
    assert client.get(reverse("admin:agents_agent_publish", args=[agent.pk])).status_code == 403
    assert (
        client.post(
            reverse("admin:agents_agent_publish", args=[agent.pk]), {"note": "x", "expected_revision": 2}
        ).status_code
        == 403
    )


def test_an_agent_editor_cannot_change_a_guardrail(bob, signed_in, guardrail) -> None:
    response = signed_in(bob).post(
        reverse("admin:processors_processor_change", args=[guardrail.pk]), {"name": "Weak"}
    )
    assert response.status_code == 403


def test_an_auditor_reads_and_reviews_but_changes_nothing(charlie, signed_in, violation, agent) -> None:
    client = signed_in(charlie)
    page = reverse("admin:audit_violation_change", args=[violation.pk])
    assert "p•••" in client.get(page).content.decode()
    client.post(page, {"verdict": "false_alarm", "note": "A sample address"})
    assert Review.objects.get(violation_id=violation.pk).reviewer == charlie
    assert client.get(reverse("admin:agents_agent_change", args=[agent.pk])).status_code == 403


def test_nobody_changes_or_deletes_a_violation(alice, signed_in, violation) -> None:
    client = signed_in(alice)
    client.post(
        reverse("admin:audit_violation_change", args=[violation.pk]),
        {"verdict": "right", "message": "Nothing happened"},
    )
    assert Violation.objects.get(pk=violation.pk).message == "E-mail address"
    assert (
        client.post(reverse("admin:audit_violation_delete", args=[violation.pk]), {"post": "yes"}).status_code
        == 403
    )
    assert client.get("/admin/audit/violation/add/").status_code == 403


def test_a_run_hides_its_violations_from_those_who_may_not_see_them(signed_in, violation) -> None:
    operator = person("olga", "agents.view_run")
    page = (
        signed_in(operator).get(reverse("admin:agents_run_change", args=[violation.run_id])).content.decode()
    )
    assert "E-mail address" not in page


def test_one_sees_and_revokes_only_ones_own_keys(alice, signed_in) -> None:
    theirs = ApiKey.objects.create(owner=alice, name="alice's", prefix="aaaa", digest="x")
    keeper = person("kim", "accounts.view_apikey", "accounts.add_apikey", "accounts.change_apikey")
    client = signed_in(keeper)
    assert client.get(reverse("admin:accounts_apikey_change", args=[theirs.pk])).status_code == 404
    assert client.post(reverse("admin:accounts_apikey_revoke", args=[theirs.pk])).status_code == 404
    theirs.refresh_from_db()
    assert theirs.revoked_at is None


def test_a_key_is_shown_once(alice, signed_in) -> None:
    client = signed_in(alice)
    made = client.post(
        "/admin/accounts/apikey/add/", {"name": "help centre", "owner": "alice", "lifetime": "30"}
    )
    secret = made.context["secret"]
    assert secret in made.content.decode()
    assert "no-store" in made.headers["Cache-Control"]
    key = ApiKey.objects.get(name="help centre")
    assert key.expires_at is not None
    assert secret not in client.get(reverse("admin:accounts_apikey_change", args=[key.pk])).content.decode()


def test_nobody_raises_people_above_their_own_rights(signed_in, db) -> None:
    helper = person("hank", "accounts.view_user", "accounts.change_user")
    client = signed_in(helper)
    client.post(
        reverse("admin:accounts_user_change", args=[helper.pk]),
        {"username": "hank", "is_superuser": "on", "is_staff": "on"},
    )
    helper.refresh_from_db()
    assert not helper.is_superuser


def test_a_helper_cannot_touch_a_superuser(alice, signed_in) -> None:
    helper = person("hank", "accounts.view_user", "accounts.change_user")
    response = signed_in(helper).post(
        reverse("admin:accounts_user_change", args=[alice.pk]), {"username": "mallory"}
    )
    assert response.status_code == 403


def test_home_shows_only_what_one_may_open(bob, charlie, signed_in, violation) -> None:
    editor = signed_in(bob).get("/admin/").content.decode()
    auditor = signed_in(charlie).get("/admin/").content.decode()
    assert "Findings today" not in editor
    assert "Findings today" in auditor
    assert reverse("admin:memory_thread_changelist") not in auditor
