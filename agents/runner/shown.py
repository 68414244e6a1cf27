"""What people had seen of a run whose process is gone, from its log in Redis: screened text, so it may be stored."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from redis import RedisError

from agents.redis_link import redis_client
from agents.run_log import key_of
from processors.engine.messages import Part

SILENT = frozenset({"start", "step-start", "error", "run-end", "log-reset"})
"""Chunks that show nothing and stand for no effect."""


@dataclass(slots=True)
class Shown:
    """parts: an assistant message's. untouched: nothing was shown and no tool was called, so nothing is lost by beginning again."""

    parts: list[Part] = field(default_factory=list)
    untouched: bool = True


def shown_of(run_id: UUID) -> Shown | None:
    """None if the log cannot be read, so that nothing is known."""
    try:
        entries: Any = redis_client().xrange(key_of(run_id))
    except RedisError:
        return None
    return assemble([wire for _, fields in entries for wire in json.loads(fields[b"c"])])


def assemble(wires: list[dict[str, Any]]) -> Shown:
    """The parts that a client's screen would hold. A withdrawn step leaves nothing, a refused reply neither."""
    shown, step_begins = Shown(), 0
    for wire in wires:
        kind, payload = wire["type"], wire.get("payload") or {}
        shown.untouched = shown.untouched and kind in SILENT
        if kind == "step-start":
            step_begins = len(shown.parts)
        elif kind in ("step-retry", "tripwire"):
            del shown.parts[step_begins:]
        elif kind in ("text-delta", "reasoning-delta"):
            _append(shown.parts, kind.removesuffix("-delta"), payload, step_begins)
        elif kind == "tool-call":
            names = {name: payload.get(name) for name in ("toolCallId", "toolName", "args")}
            shown.parts.append({"type": "tool-invocation", "toolInvocation": {"state": "call", **names}})
        elif kind in ("tool-result", "tool-error"):
            _settle(shown.parts, kind, payload)
        elif kind.startswith("data-") and not wire.get("transient"):
            shown.parts.append({"type": kind, "data": wire.get("data")})
    for part in shown.parts:
        part.pop("block", None)
    return shown


def _append(parts: list[Part], kind: str, payload: dict[str, Any], step_begins: int) -> None:
    block = payload.get("id")
    if len(parts) <= step_begins or parts[-1].get("type") != kind or parts[-1].get("block") != block:
        parts.append({"type": kind, "text": "", "block": block})
    parts[-1]["text"] += payload.get("text", "")


def _settle(parts: list[Part], kind: str, payload: dict[str, Any]) -> None:
    for part in parts:
        call = part.get("toolInvocation")
        if call is not None and call["toolCallId"] == payload.get("toolCallId"):
            ended = (
                {"state": "result", "result": payload.get("result")}
                if kind == "tool-result"
                else {"state": "error", "errorText": str(payload.get("error"))}
            )
            part["toolInvocation"] = {**call, **ended}
