"""One road: the same conversation over every channel gives the same text, the same stored messages, the same audit."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from openai import OpenAI

from accounts.models import User
from agents.models import Run
from agents.providers.scripted import says
from audit.models import Violation
from memory.models import Message
from tests.agents.conftest import Scripts, forbids, guardrail, published
from tests.api.conftest import events, key_of, text_of
from tests.chat.conftest import Socket, said, session_of, socket_for

pytestmark = pytest.mark.django_db(transaction=True)
Open = Callable[[User], httpx.Client]
Said = tuple[str, str]
"""What a client got: its text, and why it was stopped."""


def over_rest(server: str, user: User, text: str) -> Said:
    asked = {"agent": "helper", "input": text, "wait": True}
    headers = {"Authorization": f"Bearer {key_of(user)}"}
    run = httpx.post(f"{server}/api/v1/runs", json=asked, headers=headers, trust_env=False, timeout=20).json()
    return run["text"], (run["tripwire"] or {}).get("reason", "")


def over_events(server: str, user: User, text: str) -> Said:
    headers = {"Authorization": f"Bearer {key_of(user)}", "Accept": "text/event-stream"}
    asked = {"agent": "helper", "input": text}
    with httpx.stream(
        "POST", f"{server}/api/v1/runs", json=asked, headers=headers, trust_env=False, timeout=20
    ) as answer:
        found = list(events(answer.iter_lines()))
    reason = next((data["payload"]["reason"] for _, _, data in found if data.get("type") == "tripwire"), "")
    return text_of(found), reason


def over_the_socket(server: str, user: User, text: str) -> Said:
    session = session_of(user)

    async def talk() -> list[dict[str, Any]]:
        async with socket_for(server, session) as connection:
            return await Socket(connection).answer(text)

    frames = asyncio.run(talk())
    chunks = [frame["chunk"] for frame in frames if frame["type"] == "chunk"]
    return said(frames), next((one["payload"]["reason"] for one in chunks if one["type"] == "tripwire"), "")


def over_openai(server: str, user: User, text: str) -> Said:
    with OpenAI(base_url=f"{server}/v1", api_key=key_of(user), max_retries=0) as client:
        made = client.chat.completions.create(model="helper", messages=[{"role": "user", "content": text}])
    return made.choices[0].message.content or "", made.choices[0].message.refusal or ""


def over_openai_streamed(server: str, user: User, text: str) -> Said:
    with OpenAI(base_url=f"{server}/v1", api_key=key_of(user), max_retries=0) as client:
        stream = client.chat.completions.create(
            model="helper", messages=[{"role": "user", "content": text}], stream=True
        )
        deltas = [chunk.choices[0].delta for chunk in stream if chunk.choices]
    return "".join(one.content or "" for one in deltas), "".join(one.refusal or "" for one in deltas)


ROADS = {
    "websocket": over_the_socket, "rest": over_rest, "sse": over_events, "openai": over_openai,
    "openai streamed": over_openai_streamed,
}  # fmt: skip
SAME = ("outcome", "action", "severity", "processor_id", "kind", "rule", "type", "hook", "where", "step_number", "message",
        "agent_slug", "agent_version", "user_label", "excerpt", "matches", "digest")  # fmt: skip


def kept(run: Run) -> list[tuple[str, Any, str]]:
    """What is stored of a run's conversation."""
    rows = Message.objects.filter(thread=run.thread).order_by("position")
    return [(row.role, json.dumps(row.parts, sort_keys=True), row.status) for row in rows]


def recorded(run: Run) -> list[dict[str, Any]]:
    """What the audit says of a run, without what must differ."""
    return list(Violation.objects.filter(run_id=run.pk).order_by("sequence").values(*SAME))


def walk(server: str, user: User, text: str) -> dict[str, tuple[Said, list[Any], list[Any]]]:
    """The same message over every road: what was said, kept and recorded on each."""
    found = {}
    for name, road in ROADS.items():
        answer = road(server, user, text)
        run = Run.objects.latest("created_at")
        assert run.channel == name.split()[0]
        assert {*Violation.objects.filter(run_id=run.pk).values_list("channel", flat=True)} <= {run.channel}
        found[name] = (answer, kept(run), recorded(run))
    return found


def test_a_redacted_conversation_is_the_same_on_every_road(
    alice: User, script: Scripts, living_server: str
) -> None:
    script(says("Write to pat@example.org today."), cut=3)
    personal = guardrail(
        "pii-detector", "personal", options={"strategy": "redact", "redaction_method": "placeholder"}
    )
    published(chain={"input": [personal], "output": [personal]})
    found = walk(living_server, alice, "I am alice@example.org")
    (answer, stored, rows) = found["rest"]
    assert answer == ("Write to [EMAIL] today.", "")
    assert "example.org" not in str(stored) and len(rows) == 2
    assert all(one == found["rest"] for one in found.values())


def test_a_blocked_message_is_the_same_on_every_road(
    alice: User, script: Scripts, living_server: str
) -> None:
    script(says("Never asked."))
    published(chain={"input": [forbids("persimmon", public_message="No fruit.")]})
    found = walk(living_server, alice, "A persimmon, please")
    (answer, stored, rows) = found["rest"]
    assert answer == ("", "No fruit.")
    assert "persimmon" not in str(stored) and [row["hook"] for row in rows] == ["process_input"]
    assert all(one == found["rest"] for one in found.values())
    assert not script.models or all(not model.requests for model in script.models)


def test_a_blocked_answer_shows_no_character_of_it_on_any_road(
    alice: User, script: Scripts, living_server: str
) -> None:
    script(says("Take a persimmon with you."), cut=4)
    published(chain={"output": [forbids("persimmon", public_message="No fruit.")]})
    found = walk(living_server, alice, "What shall I take?")
    for (text, reason), stored, rows in found.values():
        assert reason == "No fruit." and "Take a ".startswith(text)
        assert "persimmon" not in str(stored) and len(rows) == 1
        assert (stored, rows) == found["rest"][1:]
