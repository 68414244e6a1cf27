"""alice runs the house, bob edits agents, charlie reads the audit, dora chats; and a kind of guardrail from a stranger's package."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from pydantic import BaseModel, Field, SecretStr, model_validator

from accounts.models import User
from agents.models import Agent
from processors.engine.processor import Processor as EngineProcessor
from processors.engine.registry import Options, ProcessorKind, registry
from processors.models import Processor


class Rule(BaseModel):
    name: str = Field(min_length=1, title="Name")
    pattern: str = Field(min_length=1, title="Pattern", json_schema_extra={"format": "regex"})


class StrangerOptions(Options):
    """One setting of every type that a form must be able to draw."""

    words: list[str] = Field(
        default=["darn"], min_length=1, title="Words", description="Never let these through."
    )
    strategy: Literal["redact", "block"] = Field(default="redact", title="What to do")
    types: list[Literal["email", "phone"]] = Field(default=["email"], title="What to look for")
    threshold: float = Field(default=0.6, ge=0, le=1, title="Threshold")
    limit: int | None = Field(default=None, ge=1, title="Limit")
    whole: bool = Field(default=True, title="Whole words only")
    pattern: str | None = Field(
        default=None, title="Also this pattern", json_schema_extra={"format": "regex"}
    )
    rules: list[Rule] = Field(default=[], title="Rules")
    scores: dict[str, float] = Field(default={}, title="Scores")
    secret: SecretStr | None = Field(default=None, title="Key of the service")

    @model_validator(mode="after")
    def _agree(self) -> StrangerOptions:
        if self.strategy == "block" and self.limit is not None:
            raise ValueError("“Limit” only makes sense with “redact”: empty it or choose redact.")
        return self


class Shout(EngineProcessor):
    """Puts every word of a person's message into capitals."""

    def process_input(self, args: Any) -> Any:
        for message in args.messages:
            message.set_text(message.text.upper())
        return args.messages


@pytest.fixture
def stranger_kind() -> Iterator[ProcessorKind]:
    """A kind that a third-party package registered."""
    kind = ProcessorKind(
        "stranger", "A stranger's guardrail", "Does what its package says.", StrangerOptions,
        lambda id, options, context: Shout(id), frozenset({"input", "output"}), False, "From elsewhere",
    )  # fmt: skip
    registry.register(kind)
    yield kind
    del registry._kinds["stranger"]


@pytest.fixture
def redacting_kind() -> Iterator[ProcessorKind]:
    kind = ProcessorKind(
        "rewriter", "A rewriter", "Changes texts.", StrangerOptions,
        lambda id, options, context: Shout(id), frozenset({"input"}), True, "From elsewhere",
    )  # fmt: skip
    registry.register(kind)
    yield kind
    del registry._kinds["rewriter"]


@pytest.fixture
def alice(db: None) -> User:
    return User.objects.create_superuser("alice", "alice@example.org", "wonderland")


def person(name: str, *permissions: str) -> User:
    """Somebody who may sign in to the console and has these permissions."""
    user = User.objects.create_user(name, password="looking-glass", is_staff=True)
    for permission in permissions:
        app, _, codename = permission.partition(".")
        user.user_permissions.add(Permission.objects.get(content_type__app_label=app, codename=codename))
    return User.objects.get(pk=user.pk)


@pytest.fixture
def bob(db: None) -> User:
    return person("bob", "agents.view_agent", "agents.change_agent", "agents.view_chainentry", "agents.add_chainentry",
                  "agents.change_chainentry", "agents.delete_chainentry", "processors.view_processor")  # fmt: skip


@pytest.fixture
def charlie(db: None) -> User:
    return person(
        "charlie", "audit.view_violation", "audit.add_review", "audit.view_change", "agents.view_run"
    )


@pytest.fixture
def signed_in() -> Callable[[User], Client]:
    def sign_in(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return sign_in


@pytest.fixture
def guardrail(db: None, stranger_kind: ProcessorKind) -> Processor:
    return Processor.objects.create(
        slug="no-swearing", name="No swearing", kind="stranger", options={"words": ["darn"]}
    )


@pytest.fixture
def agent(db: None) -> Agent:
    return Agent.objects.create(slug="helper", name="Helper", model="scripted/practice", instructions="Help.")


def guardrail_data(**changes: Any) -> dict[str, Any]:
    """What a browser sends for the stranger's guardrail."""
    return {
        "name": "No swearing", "slug": "no-swearing", "severity": "medium", "public_message": "", "mandatory": "",
        "on_error": "block", "note": "", "option-words": "darn\nheck", "option-strategy": "redact",
        "option-types": ["email"], "option-threshold": "0.8", "option-limit": "", "option-whole": "on",
        "option-pattern": "", "option-secret": "", "examples-TOTAL_FORMS": 0, "examples-INITIAL_FORMS": 0, **changes,
    }  # fmt: skip


def agent_data(agent: Agent, **changes: Any) -> dict[str, Any]:
    """What a browser sends for an agent without chains and tools."""
    formsets = {
        f"{prefix}-{part}": value
        for prefix in ("chain_input", "chain_output", "chain_error", "agent_tools")
        for part, value in (
            ("TOTAL_FORMS", 0),
            ("INITIAL_FORMS", 0),
            ("MIN_NUM_FORMS", 0),
            ("MAX_NUM_FORMS", 1000),
        )
    }
    return {
        "name": agent.name, "description": "", "instructions": agent.instructions, "is_active": "on",
        "expected_revision": agent.revision, "model": agent.model, "credential": "", "fallbacks": "", "temperature": "",
        "max_output_tokens": "", "access": "everyone", "when_busy": "queue", "history_messages": "20", "max_steps": "5",
        "max_total_tokens": "", "max_seconds": "300", "max_processor_retries": "", **formsets, **changes,
    }  # fmt: skip
