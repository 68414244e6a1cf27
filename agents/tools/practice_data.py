"""The practice shop: invented orders whose personal data let guardrails show what they do. Nothing here is real."""

from __future__ import annotations

import time
from typing import Any, Final

from agents.tools.kinds import Job
from processors.engine.errors import ToolFailed

ORDERS: Final[dict[str, dict[str, Any]]] = {
    "1001": {"item": "Garden shears", "status": "on its way", "customer": "Alice Ash", "email": "alice.ash@example.org", "phone": "+1 202-555-0143"},
    "1002": {"item": "Tea kettle", "status": "delivered", "customer": "Bob Birch", "email": "bob.birch@example.net", "phone": "+1 202-555-0178"},
    "1003": {"item": "Reading lamp", "status": "waiting for payment", "customer": "Charlie Cedar", "email": "charlie@example.com", "phone": "+1 202-555-0199"},
}  # fmt: skip


def look_up_order(args: dict[str, Any], options: dict[str, Any], job: Job) -> dict[str, Any]:
    """{"number"} → the order with the customer's address and phone number. Raises ToolFailed."""
    number = str(args["number"])
    if number not in ORDERS:
        raise ToolFailed(f"There is no order {number}. The practice shop knows {', '.join(ORDERS)}.")
    return {"number": number, **ORDERS[number]}


def refund_order(args: dict[str, Any], options: dict[str, Any], job: Job) -> dict[str, Any]:
    """{"number", "amount"} → a receipt. Meant for agents whose refunds a person must approve."""
    number = str(args["number"])
    if number not in ORDERS:
        raise ToolFailed(f"There is no order {number}. The practice shop knows {', '.join(ORDERS)}.")
    job.checkpoint()
    return {"number": number, "refunded": args["amount"], "receipt": f"R-{job.call_id[-6:]}"}


def write_report(args: dict[str, Any], options: dict[str, Any], job: Job) -> dict[str, Any]:
    """{"topic"?, "seconds"?} → {"report"}. Works for some seconds and tells how far it is."""
    topic, seconds = str(args.get("topic") or "sales"), float(args.get("seconds", options.get("seconds", 6)))
    steps = max(1, min(20, int(seconds * 4)))
    for step in range(1, steps + 1):
        job.checkpoint()
        time.sleep(seconds / steps)
        job.progress(step / steps * 100, f"Reading {topic}, part {step} of {steps}")
    return {"report": f"Report on {topic}: 3 orders, 1 delivered. Questions go to reports@example.org."}
