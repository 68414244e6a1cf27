"""A new installation has something to talk to, and keeps what its owner does with it."""

from __future__ import annotations

import json

import pytest
from django.core.management import call_command

from accounts.models import User
from agents.models import Agent, Run, Tool
from agents.services.demo import demo_make
from audit.models import Violation
from memory.models import Message
from processors.models import Processor
from processors.services import processor_delete
from tests.agents.conftest import ask, finish, follow, text_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def demo(settings) -> User:
    settings.GATEHOUSE_PRACTICE_PACE = 0.0005
    demo_make(admin_password="correct horse")
    return User.objects.get(username="alice")


def test_making_it_again_makes_nothing(demo) -> None:
    assert demo_make(admin_password="correct horse") == []
    assert User.objects.get(is_superuser=True).check_password("correct horse")
    assert all(agent.published is not None for agent in Agent.objects.all())


def test_what_the_owner_changed_or_deleted_stays_so(demo) -> None:
    Agent.objects.filter(slug="practice").update(name="Mine")
    for entry in Processor.objects.get(slug="forbidden-words").entries.all():
        entry.delete()
    processor_delete(actor=None, processor=Processor.objects.get(slug="forbidden-words"))
    demo_make(admin_password="correct horse")
    assert Agent.objects.get(slug="practice").name == "Mine"
    assert not Processor.objects.filter(slug="forbidden-words").exists()


def test_without_a_password_nobody_is_made() -> None:
    call_command("demo", stdout=open_nothing())
    assert User.objects.count() == 0
    assert Agent.objects.filter(slug="practice").exists()


def open_nothing():
    import io

    return io.StringIO()


def test_a_provider_key_gives_a_third_agent(monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
    demo_make(admin_password=None)
    assert Agent.objects.get(slug="pro").model.startswith("openai/")


@pytest.mark.parametrize(
    ("said", "answer"),
    [("calculate 12 * (3 + 4)", "The result is 84."), ("What is 7 - 9?", "The result is -2."), ("hello", "Hello! Say “help”"), ("help", "I am the practice agent."),
     ("think about tea", "I have thought about tea"), ("look up order 4711", "did not work: There is no order 4711")],
)  # fmt: skip
def test_the_practice_agent_understands(demo, said, answer) -> None:
    assert answer in finish(ask(demo, said, "practice")).text


def test_it_shows_every_guardrail_without_a_models_luck(demo) -> None:
    order = ask(demo, "look up order 1001", "practice")
    seen = text_of(follow(order))
    finish(order)
    assert "Garden shears" in seen
    assert finish(ask(demo, "say the word bananas", "practice")).status == "blocked"
    told = finish(ask(demo, "repeat: write to carol@example.org", "practice"))
    stored = json.dumps(list(Message.objects.values()) + list(Run.objects.values()), default=str)
    for secret in ("alice.ash@example.org", "202-555-0143", "carol@example.org"):
        assert secret not in seen + told.text + stored
    assert Violation.objects.filter(processor_id="personal-data").exists()


def test_every_tool_of_the_demo_is_of_a_known_kind(demo) -> None:
    from agents.tools import tool_kind

    for tool in Tool.objects.all():
        assert tool_kind(tool.kind).parameters["type"] == "object"
