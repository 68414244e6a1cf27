"""The REST API as an application sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client

from accounts.models import User
from accounts.services import api_key_create, api_key_revoke
from agents.models import Run
from agents.providers.scripted import Pause, says, tool_call
from processors.engine.errors import ModelAPIError
from tests.agents.conftest import Scripts, forbids, published
from tests.api.conftest import events, text_of

pytestmark = pytest.mark.django_db(transaction=True)
Open = Callable[[User], httpx.Client]
NOWHERE = "11111111-1111-4111-8111-111111111111"


def test_it_waits_for_an_answer(alice: User, script: Scripts, client: Open) -> None:
    script(says("Hello, Alice."))
    published()
    answer = client(alice).post("runs", json={"agent": "helper", "input": "Hi", "wait": True})
    run = answer.json()
    assert (answer.status_code, run["status"], run["text"], run["channel"]) == (
        200,
        "completed",
        "Hello, Alice.",
        "rest",
    )
    assert run["usage"]["totalTokens"] == 15 and run["finishReason"] == "stop"
    messages = client(alice).get(f"threads/{run['threadId']}/messages").json()
    assert [(m["role"], m["parts"]) for m in messages["results"]] == [
        ("user", [{"type": "text", "text": "Hi"}]), ("assistant", [{"type": "text", "text": "Hello, Alice."}]),
    ]  # fmt: skip
    assert messages["activeRun"] is None


def test_it_answers_at_once_and_is_followed_later(alice: User, script: Scripts, client: Open) -> None:
    script(says("In pieces, please."), cut=3)
    published()
    http = client(alice)
    begun = http.post("runs", json={"agent": "helper", "input": "Hi"})
    assert (begun.status_code, begun.json()["status"]) == (202, "queued")
    with http.stream("GET", f"runs/{begun.json()['id']}/stream") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        found = list(events(answer.iter_lines()))
    assert text_of(found) == "In pieces, please."
    assert [int(number) for _, number, _ in found] == list(range(1, len(found) + 1))
    assert (found[-1][0], found[-1][2]["status"]) == ("end", "completed")
    with http.stream(
        "GET", f"runs/{begun.json()['id']}/stream", headers={"Last-Event-ID": found[3][1]}
    ) as answer:
        assert list(events(answer.iter_lines())) == found[4:]


def test_it_streams_the_answer_to_the_question_itself(alice: User, script: Scripts, client: Open) -> None:
    script(says("Right here."), cut=2)
    published()
    asked = {"agent": "helper", "input": "Hi"}
    with client(alice).stream("POST", "runs", json=asked, headers={"Accept": "text/event-stream"}) as answer:
        found = list(events(answer.iter_lines()))
    assert found[0][0] == "run" and found[0][2]["status"] == "queued"
    assert text_of(found) == "Right here."
    assert Run.objects.get().channel == "sse"


def test_a_blocked_answer_is_an_answer(alice: User, script: Scripts, client: Open) -> None:
    script(says("A persimmon."))
    published(chain={"output": [forbids("persimmon", public_message="No fruit.")]})
    answer = client(alice).post("runs", json={"agent": "helper", "input": "Hi", "wait": True})
    run = answer.json()
    assert (answer.status_code, run["status"], run["text"]) == (200, "blocked", "")
    assert run["tripwire"]["reason"] == "No fruit." and "persimmon" not in answer.text


def test_a_failed_answer_says_why(alice: User, script: Scripts, client: Open) -> None:
    script([ModelAPIError("The provider is busy.", status=503, retryable=True)])
    published()
    answer = client(alice).post("runs", json={"agent": "helper", "input": "Hi", "wait": True})
    body = answer.json()
    assert (answer.status_code, body["error"]["code"], body["error"]["retryable"]) == (502, "model_api", True)
    assert body["run"]["status"] == "failed"


def test_a_repeated_key_does_nothing_twice(alice: User, script: Scripts, client: Open) -> None:
    script(says("Once."))
    published()
    http, asked = client(alice), {"agent": "helper", "input": "Hi", "wait": True}
    first, second = (
        http.post("runs", json=asked, headers={"Idempotency-Key": "order-7"}).json() for _ in range(2)
    )
    assert first == second and Run.objects.count() == 1


def test_a_run_can_be_stopped(alice: User, script: Scripts, client: Open) -> None:
    script([Pause(30), *says("Never.")])
    published()
    http = client(alice)
    run = http.post("runs", json={"agent": "helper", "input": "Hi"}).json()
    assert http.post(f"runs/{run['id']}/cancel").status_code == 200
    with http.stream("GET", f"runs/{run['id']}/stream") as answer:
        assert list(events(answer.iter_lines()))[-1][2]["status"] == "cancelled"


def test_a_tool_call_is_decided(charlie: User, script: Scripts, client: Open) -> None:
    def lines(request: Any) -> Any:
        done = request.prompt[-1]["role"] == "tool"
        return (
            says("Refunded.")
            if done
            else [tool_call("order_refund", {"number": "1001", "amount": 5}, "call-1")]
        )

    script(lines)
    published(tools=[{"slug": "order_refund", "kind": "order-refund", "needs_approval": True}])
    http = client(charlie)
    waiting = http.post("runs", json={"agent": "helper", "input": "Refund", "wait": True})
    assert (waiting.status_code, waiting.json()["status"]) == (202, "waiting")
    call = waiting.json()["approvals"][0]
    assert call == {
        "toolCallId": "call-1",
        "toolName": "order_refund",
        "args": {"number": "1001", "amount": 5},
    }
    decided = http.post(
        f"runs/{waiting.json()['id']}/decide", json={"toolCallId": "call-1", "approved": True}
    )
    assert decided.status_code == 200
    with http.stream("GET", f"runs/{waiting.json()['id']}/stream") as answer:
        found = list(events(answer.iter_lines()))
    assert text_of(found) == "Refunded." and found[-1][2]["status"] == "completed"
    again = http.post(f"runs/{waiting.json()['id']}/decide", json={"toolCallId": "call-1", "approved": True})
    assert (again.status_code, again.json()["error"]["code"]) == (409, "not_waiting")


def test_a_conversation_is_begun_renamed_and_deleted(alice: User, script: Scripts, client: Open) -> None:
    script(says("Hello."))
    published()
    http = client(alice)
    thread = http.post("threads", json={"agent": "helper"}).json()
    http.post("runs", json={"agent": "helper", "input": "Hi", "threadId": thread["id"], "wait": True})
    assert http.patch(f"threads/{thread['id']}", json={"title": " Tea  time "}).json()["title"] == "Tea time"
    assert http.patch(f"threads/{thread['id']}", json={"title": "  "}).status_code == 400
    assert [row["title"] for row in http.get("threads").json()["results"]] == ["Tea time"]
    assert http.delete(f"threads/{thread['id']}").status_code == 204
    assert http.get(f"threads/{thread['id']}").json()["error"]["code"] == "not_found"


def test_conversations_come_in_pages(alice: User, script: Scripts, client: Open) -> None:
    published()
    http = client(alice)
    made = [http.post("threads", json={"agent": "helper", "title": f"{n}"}).json()["id"] for n in range(5)]
    first = http.get("threads?limit=3").json()
    second = http.get(first["next"]).json()
    assert [row["id"] for row in first["results"] + second["results"]] == made[::-1]
    assert second["next"] is None


def test_bob_finds_nothing_of_alices(alice: User, bob: User, script: Scripts, client: Open) -> None:
    script(says("For Alice."))
    published()
    run = client(alice).post("runs", json={"agent": "helper", "input": "Hi", "wait": True}).json()
    http = client(bob)
    for method, path, body in (
        ("GET", f"threads/{run['threadId']}", None),
        ("PATCH", f"threads/{run['threadId']}", {"title": "mine"}),
        ("DELETE", f"threads/{run['threadId']}", None),
        ("GET", f"threads/{run['threadId']}/messages", None),
        ("GET", f"runs/{run['id']}", None),
        ("GET", f"runs/{run['id']}/stream", None),
        ("POST", f"runs/{run['id']}/cancel", None),
        ("POST", f"runs/{run['id']}/decide", {"toolCallId": "x", "approved": True}),
        ("POST", "runs", {"agent": "helper", "input": "Hi", "threadId": run["threadId"]}),
    ):
        answer = http.request(method, path, json=body)
        assert answer.status_code == 404 and "For Alice" not in answer.text, path
    assert http.get("threads").json()["results"] == []


def test_an_auditor_reads_violations_and_others_do_not(
    alice: User, charlie: User, script: Scripts, client: Open
) -> None:
    script(says("A persimmon."))
    published(chain={"output": [forbids("persimmon")]})
    run = client(alice).post("runs", json={"agent": "helper", "input": "Hi", "wait": True}).json()
    http = client(charlie)
    rows = http.get(
        "violations", params={"run": run["id"], "agent": "helper", "outcome": "violation"}
    ).json()["results"]
    assert [(row["processorId"], row["channel"], row["userLabel"]) for row in rows] == [
        ("forbidden", "rest", "alice")
    ]
    assert http.get("violations", params={"agent": "another"}).json()["results"] == []
    lines = http.get("violations.csv", params={"run": run["id"]}).text.splitlines()
    assert lines[0].startswith("sequence,at,outcome") and len(lines) == 2
    for path in ("violations", "violations.csv"):
        assert client(alice).get(path).json()["error"]["code"] == "forbidden"
    unknown = http.get("violations", params={"colour": "red"})
    assert (unknown.status_code, "colour" in unknown.json()["error"]["message"]) == (400, True)
    assert http.get("violations", params={"run": "x"}).status_code == 400


def test_me_says_who_asks(alice: User, client: Open) -> None:
    alice.groups.add(Group.objects.get(name="chat_user"))
    alice.user_permissions.add(Permission.objects.get(codename="approve_tool"))
    me = client(alice).get("me").json()
    assert (me["name"], me["roles"], me["can"]) == ("alice", ["chat_user"], ["tool.approve"])


@pytest.mark.parametrize(
    ("asked", "status", "code"),
    [
        ({}, 400, "bad_request"),
        ({"agent": "helper"}, 400, "bad_request"),
        ({"agent": "helper", "input": " "}, 400, "empty"),
        ({"agent": "nobody", "input": "Hi"}, 404, "unknown_agent"),
        ({"agent": "draft", "input": "Hi"}, 409, "not_published"),
        ({"agent": "helper", "input": "Hi", "threadId": NOWHERE}, 404, "unknown_thread"),
        ({"agent": "helper", "input": "Hi", "threadId": "x"}, 400, "bad_request"),
        ({"agent": "helper", "input": "a" * 100_001}, 413, "too_long"),
    ],
)
def test_a_question_that_cannot_be_asked_gets_a_code(
    alice: User, script: Scripts, client: Open, asked: dict[str, Any], status: int, code: str
) -> None:
    published()
    published("draft", is_active=False)
    answer = client(alice).post("runs", json=asked)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert Run.objects.count() == 0


def test_bad_requests_are_json_errors(alice: User, client: Open) -> None:
    http = client(alice)
    broken = http.post("runs", content=b"{", headers={"Content-Type": "application/json"})
    assert (broken.status_code, broken.json()["error"]["code"]) == (400, "bad_request")
    form = http.post("runs", data={"agent": "helper"})
    assert (form.status_code, form.json()["error"]["code"]) == (415, "unsupported_media_type")
    assert http.delete("runs").json()["error"]["code"] == "method_not_allowed"
    assert http.get(f"runs/{NOWHERE}/stream?after=x").status_code in (400, 404)


def test_keys_that_are_wrong_revoked_or_missing_open_nothing(alice: User, living_server: str) -> None:
    key, secret = api_key_create(owner=alice, name="test")
    api_key_revoke(actor=alice, key=key)
    for headers in (
        {},
        {"Authorization": "Bearer gh_nope"},
        {"Authorization": f"Bearer {secret}"},
        {"Authorization": "Basic eDp5"},
    ):
        answer = httpx.get(f"{living_server}/api/v1/me", headers=headers, trust_env=False)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "not_authenticated")
        assert answer.headers["www-authenticate"] == "Bearer"


def test_a_session_needs_the_csrf_token(alice: User, script: Scripts) -> None:
    published()
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(alice)
    assert browser.get("/api/v1/me").status_code == 200
    refused = browser.post("/api/v1/threads", {"agent": "helper"}, "application/json")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")


def test_too_many_requests_are_told_when_to_come_back(alice: User, client: Open, settings: Any) -> None:
    settings.GATEHOUSE_API_RATE_PER_MINUTE = 3
    answers = [
        client(alice).get("me").status_code for _ in range(4)
    ]  # four keys of one person: each counts for itself
    assert answers == [200] * 4
    http = client(alice)
    answers = [http.get("me") for _ in range(5)]
    late = [answer for answer in answers if answer.status_code == 429]
    assert late and late[0].json()["error"] == {
        **late[0].json()["error"],
        "code": "rate_limited",
        "retryable": True,
    }
    assert 0 < int(late[0].headers["retry-after"]) <= 60


def test_more_waiting_requests_than_database_connections_are_served(
    alice: User, script: Scripts, client: Open
) -> None:
    script([Pause(0.5), *says("Done.")])
    published()
    http = client(alice)
    begun = [http.post("runs", json={"agent": "helper", "input": "Hi"}).json()["id"] for _ in range(12)]
    streams = [http.build_request("GET", f"runs/{run}/stream") for run in begun]
    opened = [http.send(request, stream=True) for request in streams]
    assert http.get("me").status_code == 200
    assert {text_of(list(events(answer.iter_lines()))) for answer in opened} == {"Done."}


def test_the_description_of_the_api_is_complete(alice: User) -> None:
    browser = Client()
    browser.force_login(alice)
    schema = browser.get("/api/schema/", HTTP_ACCEPT="application/json").json()
    paths = schema["paths"]
    assert {
        "/api/v1/runs",
        "/api/v1/runs/{id}/stream",
        "/api/v1/violations.csv",
        "/api/v1/threads/{id}/messages",
    } <= set(paths)
    assert set(schema["components"]["securitySchemes"]) >= {"apiKey"}
    page = browser.get("/api/docs/")
    assert page.status_code == 200 and b"cdn" not in page.content
