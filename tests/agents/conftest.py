"""alice chats, bob is a stranger to her, charlie runs the house; agents answer from a script, over the real runner."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import aclosing
from typing import Any

import pytest
from django.db import connection

from accounts.models import User
from agents.actions import agent_publish
from agents.models import Agent, AgentTool, ChainEntry, Run, Tool
from agents.providers.catalog import register_script
from agents.providers.scripted import ScriptedModel
from agents.run_log import read
from agents.runner import runner
from agents.services.runs import run_launch, run_start
from processors.engine.processor import Processor as EngineProcessor
from processors.engine.registry import Options, ProcessorKind, registry
from processors.models import Processor
from processors.services import processor_save
from tests.living_database import living_database

Numbered = list[tuple[int, dict[str, Any]]]


__all__ = ["living_database"]


@pytest.fixture
def alice(db: None) -> User:
    return User.objects.create_user("alice")


@pytest.fixture
def bob(db: None) -> User:
    return User.objects.create_user("bob")


@pytest.fixture
def charlie(db: None) -> User:
    return User.objects.create_superuser("charlie")


class Scripts:
    """What `scripted/test` says, call after call, and what it was asked."""

    def __init__(self) -> None:
        self.script: Any = []
        self.options: dict[str, Any] = {}
        self.models: list[ScriptedModel] = []

    def __call__(self, *script: Any, **options: Any) -> None:
        self.script, self.options = list(script), options

    def make(self) -> ScriptedModel:
        script = self.script[0] if len(self.script) == 1 and callable(self.script[0]) else self.script
        model = ScriptedModel("scripted/test", script, **{"repeat_last": True, **self.options})
        self.models.append(model)
        return model


@pytest.fixture
def script(db: None) -> Scripts:
    scripts = Scripts()
    register_script("test", scripts.make)
    return scripts


def guardrail(kind: str, slug: str, **data: Any) -> Processor:
    """A saved guardrail."""
    return processor_save(
        actor=None,
        processor=None,
        data={"slug": slug, "kind": kind, "name": slug.replace("-", " ").capitalize(), **data},
    )


def forbids(*words: str, slug: str = "forbidden", **data: Any) -> Processor:
    """A block list that stops."""
    return guardrail("block-list", slug, options={"words": list(words), "strategy": "block"}, **data)


def published(
    slug: str = "helper",
    *,
    chain: dict[str, list[Processor]] | None = None,
    tools: list[dict[str, Any]] | None = None,
    **values: Any,
) -> Agent:
    """A live agent on the scripted model."""
    agent = Agent.objects.create(slug=slug, name=slug.capitalize(), model="scripted/test", **values)
    for stage, guardrails in (chain or {}).items():
        for position, one in enumerate(guardrails):
            ChainEntry.objects.create(agent=agent, stage=stage, processor=one, position=position)
    for position, data in enumerate(tools or []):
        tool, _ = Tool.objects.get_or_create(slug=data["slug"], defaults={"name": data["slug"], **data})
        AgentTool.objects.create(agent=agent, tool=tool, position=position)
    agent_publish(actor=None, agent=agent, note="")
    return agent


@pytest.fixture
def agent(script: Scripts) -> Agent:
    return published()


def ask(user: User, text: str = "Hello", agent: str = "helper", **more: Any) -> Run:
    """Begin a run and hand it to the runner."""
    run = run_start(user=user, agent_slug=agent, text=text, channel=more.pop("channel", "test"), **more)
    run_launch(run)
    return run


def follow(run: Run, after: int = 0, *, limit: int | None = None) -> Numbered:
    """Read a run's log, up to its end or up to `limit` chunks."""

    async def whole() -> Numbered:
        found: Numbered = []
        async with asyncio.timeout(20), aclosing(read(run.pk, after=after)) as chunks:
            async for item in chunks:
                found.append(item)
                if limit is not None and len(found) >= limit:
                    break
        return found

    return asyncio.run(whole())


def finish(run: Run) -> Run:
    """Wait for a run's end."""
    follow(run)
    assert runner().wait_idle(10)
    run.refresh_from_db()
    return run


def text_of(chunks: Numbered) -> str:
    return "".join(wire["payload"]["text"] for _, wire in chunks if wire["type"] == "text-delta")


def in_background(work: Callable[[], Any]) -> threading.Thread:
    """Start something in a thread."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


@pytest.fixture
def breaking_kind() -> Iterator[str]:
    """A kind of guardrail that raises whenever it looks."""

    class Breaks(EngineProcessor):
        def process_output_stream(self, args: Any) -> Any:
            raise RuntimeError("out of order")

    kind = ProcessorKind(
        "breaks", "Breaks", "Raises.", Options, lambda id, options, context: Breaks(id), frozenset({"output"})
    )
    registry.register(kind)
    yield kind.slug
    del registry._kinds[kind.slug]


@pytest.fixture
def locked_trail(db: None) -> Iterator[None]:
    """The audit's table refuses every new row."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TRIGGER locked BEFORE INSERT ON audit_violation FOR EACH ROW EXECUTE FUNCTION audit_refuse()"
        )
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER locked ON audit_violation")
