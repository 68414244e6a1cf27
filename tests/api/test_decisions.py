"""Several tool calls that wait at once: the run goes on when the last one is decided, and not before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from accounts.models import User
from agents.models import ToolCall
from agents.providers.scripted import says, tool_call
from tests.agents.conftest import Scripts, published

pytestmark = pytest.mark.django_db(transaction=True)
Open = Callable[[User], httpx.Client]
REFUND = {"slug": "order_refund", "kind": "order-refund", "needs_approval": True}


def two_refunds(request: Any) -> Any:
    if request.prompt[-1]["role"] == "tool":
        return says("Both are decided.")
    return [
        tool_call("order_refund", {"number": number, "amount": 5}, f"call-{number}")
        for number in ("1001", "1002")
    ]


def test_every_waiting_call_needs_its_own_decision(charlie: User, script: Scripts, client: Open) -> None:
    script(two_refunds)
    published(tools=[REFUND])
    http = client(charlie)
    run = http.post("runs", json={"agent": "helper", "input": "Refund both", "wait": True}).json()
    assert [call["toolCallId"] for call in run["approvals"]] == ["call-1001", "call-1002"]
    first = http.post(f"runs/{run['id']}/decide", json={"toolCallId": "call-1001", "approved": True}).json()
    assert first["status"] == "waiting" and [call["toolCallId"] for call in first["approvals"]] == [
        "call-1002"
    ]
    declined = {"toolCallId": "call-1002", "approved": False, "reason": "paid already"}
    assert http.post(f"runs/{run['id']}/decide", json=declined).status_code == 200
    with http.stream("GET", f"runs/{run['id']}/stream") as answer:
        answer.read()
    assert http.get(f"runs/{run['id']}").json()["status"] == "completed"
    statuses = dict(ToolCall.objects.values_list("call_id", "status"))
    assert statuses == {"call-1001": "done", "call-1002": "declined"}


def test_stopping_a_run_that_waits_closes_its_calls(charlie: User, script: Scripts, client: Open) -> None:
    script(two_refunds)
    published(tools=[REFUND])
    http = client(charlie)
    run = http.post("runs", json={"agent": "helper", "input": "Refund both", "wait": True}).json()
    assert http.post(f"runs/{run['id']}/cancel").json()["status"] == "cancelled"
    assert set(ToolCall.objects.values_list("status", flat=True)) == {"cancelled"}
    late = http.post(f"runs/{run['id']}/decide", json={"toolCallId": "call-1001", "approved": True})
    assert late.json()["error"]["code"] == "not_waiting"
