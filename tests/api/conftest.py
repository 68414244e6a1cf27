"""alice asks with an API key, bob is a stranger to her, charlie reads the audit; everything behind a real server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from accounts.models import User
from accounts.services import api_key_create
from tests.agents.conftest import Scripts, alice, bob, charlie, script
from tests.living_database import living_database
from tests.living_server import living_server

__all__ = ["Scripts", "alice", "bob", "charlie", "living_database", "living_server", "script"]


def key_of(user: User) -> str:
    """A fresh API key of a person."""
    return api_key_create(owner=user, name="test")[1]


@pytest.fixture
def client(living_server: str) -> Iterator[Callable[[User], httpx.Client]]:
    """HTTP clients with a person's API key."""
    opened: list[httpx.Client] = []

    def open_client(user: User) -> httpx.Client:
        headers = {"Authorization": f"Bearer {key_of(user)}"}
        opened.append(
            httpx.Client(base_url=f"{living_server}/api/v1/", headers=headers, timeout=20, trust_env=False)
        )
        return opened[-1]

    yield open_client
    for one in opened:
        one.close()


Event = tuple[str, str, dict[str, Any]]


def events(lines: Iterator[str]) -> Iterator[Event]:
    """Server-sent events as (name, id, data)."""
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields:
            yield fields.get("event", "message"), fields.get("id", ""), json.loads(fields["data"])
            fields = {}


def text_of(found: list[Event]) -> str:
    """The text that events delivered."""
    return "".join(
        d["payload"]["text"] for name, _, d in found if name == "chunk" and d["type"] == "text-delta"
    )
