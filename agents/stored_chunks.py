"""What a client would have seen of a run, made from its stored messages: for readers that come when the log is gone."""

from __future__ import annotations

from typing import Any

from agents.models import Run
from memory.models import Message

Wire = dict[str, Any]


def final_status(run_id: str) -> str | None:
    """How the run ended (or that it waits); None while it goes on. A run that does not exist is interrupted."""
    status = Run.objects.filter(pk=run_id).values_list("status", flat=True).first()
    if status is None:
        return "interrupted"
    return status if status in Run.FINAL or status == Run.Status.WAITING else None


def stored_chunks(run_id: str) -> list[Wire]:
    """The run's stored answer as chunks, without numbers and without an end marker."""
    run = Run.objects.filter(pk=run_id).first()
    if run is None:
        return []
    out: list[Wire] = [_chunk(run_id, "start", {"agentId": run.agent.slug})]
    if run.thread_id is None:
        out += _text(run_id, run.text, 0)
    for row in Message.objects.filter(run_id=run_id, role="assistant").order_by("position"):
        for number, part in enumerate(row.parts):
            out += _part(run_id, part, number)
    if run.tripwire:
        out.append(_chunk(run_id, "tripwire", run.tripwire))
    elif run.error:
        out.append(_chunk(run_id, "error", {"error": run.error}))
    out.append(_chunk(run_id, "finish", {"reason": run.finish_reason, "usage": run.usage}))
    return out


def _part(run_id: str, part: Wire, number: int) -> list[Wire]:
    kind = str(part.get("type", ""))
    if kind in ("text", "reasoning"):
        return _text(run_id, str(part.get("text", "")), number, kind)
    if kind == "tool-invocation":
        call = part["toolInvocation"]
        names = {name: call.get(name) for name in ("toolCallId", "toolName", "args")}
        out = [_chunk(run_id, "tool-call", names)]
        if call.get("state") == "result":
            out.append(_chunk(run_id, "tool-result", {**names, "result": call.get("result")}))
        elif call.get("state") in ("error", "denied"):
            out.append(_chunk(run_id, "tool-error", {**names, "error": call.get("errorText")}))
        return out
    if kind.startswith("data-"):
        return [{"type": kind, "runId": run_id, "from": "AGENT", "data": part.get("data")}]
    return []


def _text(run_id: str, text: str, number: int, kind: str = "text") -> list[Wire]:
    block = {"id": f"stored-{number}"}
    if not text:
        return []
    return [
        _chunk(run_id, f"{kind}-start", block),
        _chunk(run_id, f"{kind}-delta", {**block, "text": text}),
        _chunk(run_id, f"{kind}-end", block),
    ]


def _chunk(run_id: str, kind: str, payload: Wire) -> Wire:
    return {"type": kind, "runId": run_id, "from": "AGENT", "payload": payload}
