"""Pages stay fast however much there is: the number of queries does not grow, and nothing counts a large table."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from agents.models import Agent, Run
from audit.models import Violation
from memory.models import Message, Thread
from processors.models import Processor

pytestmark = pytest.mark.django_db


def many(count: int, owner, agent: Agent) -> None:
    """More of everything that lists show."""
    for number in range(count):
        thread = Thread.objects.create(owner=owner, agent_slug=agent.slug, title=f"Talk {number}")
        Message.objects.create(thread=thread, position=0, role="user", parts=[{"type": "text", "text": "Hi"}])
        run = Run.objects.create(agent=agent, thread=thread, owner=owner, channel="rest")
        Violation.objects.create(at=timezone.now(), outcome="violation", action="warn", processor_id="pii", message="x",
                                 hook="process_input", run_id=run.pk, agent_slug=agent.slug)  # fmt: skip
        guardrail = Processor.objects.create(
            slug=f"g{owner.pk}-{agent.pk}-{Processor.objects.count()}", name="G", kind="stranger"
        )
        other = Agent.objects.create(slug=f"a{Agent.objects.count()}", name="A", model="a/b")
        other.chain.create(stage="input", processor=guardrail)


def queries(client, url: str) -> list[str]:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        response = client.get(url)
    assert response.status_code == 200
    return [query["sql"] for query in captured.captured_queries]


@pytest.mark.parametrize(
    "area",
    [
        "agents_agent",
        "processors_processor",
        "memory_thread",
        "agents_run",
        "audit_violation",
        "audit_change",
        "accounts_user",
    ],
)
def test_a_list_asks_as_often_for_many_rows_as_for_few(alice, signed_in, agent, stranger_kind, area) -> None:
    client, url = signed_in(alice), reverse(f"admin:{area}_changelist")
    many(2, alice, agent)
    few = queries(client, url)
    many(6, alice, agent)
    assert len(queries(client, url)) == len(few)
    assert len(few) <= 8


@pytest.mark.parametrize("area", ["audit_violation", "agents_run", "memory_thread", "audit_change"])
def test_the_long_lists_never_count_all_rows(alice, signed_in, agent, stranger_kind, area) -> None:
    many(2, alice, agent)
    assert not [
        sql for sql in queries(signed_in(alice), reverse(f"admin:{area}_changelist")) if "COUNT(*)" in sql
    ]


def test_home_asks_as_often_for_much_as_for_little(alice, signed_in, agent, stranger_kind) -> None:
    client = signed_in(alice)
    many(2, alice, agent)
    few = queries(client, "/admin/")
    many(6, alice, agent)
    assert len(queries(client, "/admin/")) == len(few) <= 20


def test_an_agents_page_asks_as_often_for_long_chains_as_for_short(
    alice, signed_in, agent, stranger_kind
) -> None:
    client, url = signed_in(alice), reverse("admin:agents_agent_change", args=[agent.pk])
    for number in range(2):
        agent.chain.create(
            stage="input",
            position=number,
            processor=Processor.objects.create(slug=f"s{number}", name="S", kind="stranger"),
        )
    few = queries(client, url)
    for number in range(2, 10):
        agent.chain.create(
            stage="input",
            position=number,
            processor=Processor.objects.create(slug=f"s{number}", name="S", kind="stranger"),
        )
    assert len(queries(client, url)) == len(few)
