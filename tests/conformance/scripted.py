"""The scripted parts of a case: models, tools, memory, and the audit sink that listens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from agents.loop.tools import Tool, ToolContext
from processors.engine.chunks import Chunk
from processors.engine.errors import ModelAPIError
from processors.engine.messages import Message, MessageContent
from processors.engine.ports import AbortSignal, AuditEntry, ModelRequest, Turn

USAGE = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}


def usage_wire(usage: dict[str, int]) -> dict[str, int]:
    return {"inputTokens": usage["input_tokens"], "outputTokens": usage["output_tokens"],
            "totalTokens": usage["total_tokens"]}  # fmt: skip


def api_error(value: dict[str, Any]) -> ModelAPIError:
    return ModelAPIError(
        value.get("message", ""), status=value.get("status"), retryable=value.get("retryable", False)
    )


def wire_chunk(value: dict[str, Any], block: int) -> Chunk:
    """A scripted chunk as a client would yield it."""
    kind = value["type"]
    if kind in ("text-delta", "reasoning-delta"):
        return Chunk(kind, {"id": f"b{block}", "text": value["text"]})
    payload = {"toolCallId": value["tool_call_id"], "toolName": value["tool_name"]}
    if kind == "tool-call":
        payload["args"] = value["args"]
        if value.get("provider_executed"):
            payload["providerExecuted"] = True
        return Chunk(kind, payload)
    return Chunk(kind, {**payload, "result": value["result"]})


class Script:
    """The ordered calls that all main models of a case share."""

    def __init__(self, calls: list[dict[str, Any]]) -> None:
        self.calls, self.at = calls, 0
        self.log: list[dict[str, Any]] = []
        self.exhausted = False
        self.open = 0

    def next(self) -> dict[str, Any]:
        if self.at >= len(self.calls):
            self.exhausted = True
            raise AssertionError("a model call beyond the end of the script")
        self.at += 1
        return self.calls[self.at - 1]


class ScriptedModel:
    """A main model of the case."""

    def __init__(self, id: str, script: Script) -> None:
        self.id, self.script = id, script

    async def stream(
        self, request: ModelRequest, *, signal: AbortSignal | None = None
    ) -> AsyncIterator[Chunk]:
        entry = {"model": self.id, "request": request, "fails": False}
        self.script.log.append(entry)
        call = self.script.next()
        if "error" in call:
            entry["fails"] = True
            raise api_error(call["error"])
        self.script.open += 1
        try:
            finish: dict[str, Any] = {}
            called, block = False, 0
            for value in call["chunks"]:
                kind = value["type"]
                if kind in ("error", "break"):
                    entry["fails"] = True
                    raise api_error(value)
                if kind == "finish":
                    finish = value
                    continue
                called = called or (kind == "tool-call" and not value.get("provider_executed"))
                block += bool(value.get("new_block"))
                yield wire_chunk(value, block)
            reason = finish.get("finish_reason") or ("tool-calls" if called else "stop")
            payload: dict[str, Any] = {
                "finishReason": reason,
                "usage": usage_wire(finish.get("usage", USAGE)),
            }
            if "provider_metadata" in finish:
                payload["providerMetadata"] = finish["provider_metadata"]
            if call.get("warnings"):
                payload["warnings"] = call["warnings"]
            yield Chunk("finish", payload)
        finally:
            self.script.open -= 1


class AuxModel:
    """The private model of a built-in; a call beyond the end repeats the last entry."""

    def __init__(self, id: str, calls: list[dict[str, Any]]) -> None:
        self.id, self.calls, self.at = id, calls, 0

    async def stream(
        self, request: ModelRequest, *, signal: AbortSignal | None = None
    ) -> AsyncIterator[Chunk]:
        call = self.calls[min(self.at, len(self.calls) - 1)]
        self.at += 1
        if "error" in call:
            raise api_error(call["error"])
        for value in call["chunks"]:
            if value["type"] != "finish":
                yield wire_chunk(value, 0)
        yield Chunk("finish", {"finishReason": "stop", "usage": usage_wire(USAGE)})


class ListeningAudit:
    """The audit sink of a case."""

    def __init__(self) -> None:
        self.entries: list[AuditEntry] = []

    async def record(self, entry: AuditEntry) -> None:
        self.entries.append(entry)

    @property
    def violations(self) -> list[AuditEntry]:
        return [entry for entry in self.entries if entry.outcome == "violation"]


class CaseMemory:
    """The thread of a case, kept over its requests."""

    def __init__(self, seed: list[dict[str, Any]], last: int) -> None:
        self.rows = [message_of(value, f"seed-{n}") for n, value in enumerate(seed, 1)]
        self.last, self.saved = last, 0

    async def load(self) -> list[Message]:
        return [row.copy() for row in self.rows][-self.last :] if self.last else []

    async def save(self, turn: Turn) -> None:
        self.saved += 1
        known = {row.id: at for at, row in enumerate(self.rows)}
        for message in turn.messages:
            if message.id in known:
                self.rows[known[message.id]] = message.copy()
            else:
                self.rows.append(message.copy())


def message_of(value: dict[str, Any], id: str | None = None) -> Message:
    """A message as a case writes it."""
    parts: list[dict[str, Any]] = []
    if "text" in value:
        parts.append({"type": "text", "text": value["text"]})
    for part in value.get("parts", []):
        if part["type"] == "text":
            parts.append(dict(part))
            continue
        invocation = {"state": part["state"], "toolCallId": part["tool_call_id"], "toolName": part["tool_name"],
                      "args": part["args"]}  # fmt: skip
        if "result" in part:
            invocation["result"] = part["result"]
        parts.append({"type": "tool-invocation", "toolInvocation": invocation})
    content = MessageContent(parts, legacy=value.get("legacy_content"))
    known = value.get("id") or id
    return Message(value["role"], content, known) if known else Message(value["role"], content)


def tool_of(value: dict[str, Any], runs: list[dict[str, Any]]) -> Tool:
    """A scripted tool that logs its runs."""

    async def execute(args: Any, context: ToolContext) -> Any:
        runs.append({"tool_name": value["name"], "args": args})
        for action in value.get("do", []):
            if action["op"] == "return":
                return action["value"]
            if action["op"] == "echo":
                return args
            if action["op"] == "throw":
                raise RuntimeError(action["message"])
            await context.writer.custom(dict(action["chunk"]))
        return None

    return Tool(value["name"], parameters=value.get("parameters") or {"type": "object"},
                execute=None if value.get("client_side") else execute)  # fmt: skip
