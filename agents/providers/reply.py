"""From the events of an OpenAI-style stream to our chunks. One `Reply` per call; both clients use it.

Only the first choice is read. Tool calls are whole at the end, whatever the service left out: ids, indexes, names
repeated or late, arguments as an object.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from agents.providers.failures import broken, reported
from processors.engine.chunks import Chunk, reasoning_delta, text_delta

FINISH_REASONS: Final = {
    "stop": "stop", "eos": "stop", "end_turn": "stop", "stop_sequence": "stop",
    "length": "length", "max_tokens": "length", "model_length": "length",
    "tool_calls": "tool-calls", "tool_use": "tool-calls", "function_call": "tool-calls",
    "content_filter": "content-filter", "safety": "content-filter", "refusal": "content-filter",
    "error": "error",
}  # fmt: skip
MOST_CALLS: Final = 128
"""Tool calls in one reply. A service that sends more has lost its way."""


@dataclass(slots=True)
class _Call:
    """A tool call as far as it has come. `early`: arguments that came before the name."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    early: list[str] = field(default_factory=list)


class Reply:
    """Collects what a reply's end needs, and turns each event into chunks at once."""

    __slots__ = (
        "_by_index",
        "_calls",
        "_model",
        "_response_id",
        "_secret",
        "ended",
        "finish_reason",
        "usage",
    )

    def __init__(self, *, secret: str = "") -> None:
        self.finish_reason: str | None = None
        self.usage: dict[str, int] | None = None
        self.ended = False
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._response_id = self._model = ""
        self._secret = secret

    def read(self, data: bytes) -> Sequence[Chunk]:
        """The chunks of one event. Raises ModelAPIError for an event that is an error, or no JSON object."""
        if self.ended:
            return ()
        if data == b"[DONE]":
            self.ended = True
            return ()
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            raise broken("The model's service sent an event that is no JSON.", "malformed_stream") from None
        if not isinstance(event, dict):
            raise broken("The model's service sent an event of the wrong shape.", "malformed_stream")
        return self.event(event)

    def event(self, event: dict[str, Any]) -> Sequence[Chunk]:
        """The chunks of one parsed event."""
        if event.get("error"):
            raise reported(event["error"], secret=self._secret)
        if usage := event.get("usage"):
            self._read_usage(usage)
        if not self._response_id:
            self._response_id, self._model = str(event.get("id") or ""), str(event.get("model") or "")
        choices = event.get("choices")
        if not choices:
            return ()
        try:
            choice = choices[0] if len(choices) == 1 else min(choices, key=lambda one: one.get("index") or 0)
            if choice.get("index"):
                return ()
            if reason := choice.get("finish_reason"):
                self.finish_reason = str(reason)
            delta = choice.get("delta") or choice.get("message")
            if not delta:
                return ()
            if len(delta) <= 2 and (text := delta.get("content")) and type(text) is str:
                extra = len(delta) - 1 - ("role" in delta)
                if not extra:
                    return (text_delta(text),)
            return self._delta(delta)
        except (AttributeError, KeyError, TypeError, IndexError):
            raise broken(
                "The model's service sent an event of the wrong shape.", "malformed_stream"
            ) from None

    def _delta(self, delta: dict[str, Any]) -> list[Chunk]:
        """The chunks of a delta that is more than text."""
        chunks: list[Chunk] = []
        # Some services send the same thought under both names.
        if thought := delta.get("reasoning_content") or delta.get("reasoning"):
            chunks.append(reasoning_delta(str(thought)))
        content = delta.get("content")
        if isinstance(content, str):
            if content:
                chunks.append(text_delta(content))
        elif content:
            chunks.extend(_content_parts(content))
        if refusal := delta.get("refusal"):
            chunks.append(text_delta(str(refusal)))
        for note in delta.get("annotations") or ():
            if citation := note.get("url_citation"):
                source = {"url": str(citation["url"]), "title": str(citation.get("title") or "")}
                chunks.append(Chunk("source", source))
        for call in delta.get("tool_calls") or ():
            chunks.extend(self._tool_delta(call))
        return chunks

    def _tool_delta(self, delta: dict[str, Any]) -> list[Chunk]:
        function = delta.get("function") or {}
        call = self._call_of(delta.get("index"), str(delta.get("id") or ""), bool(function.get("name")))
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments)
        chunks: list[Chunk] = []
        if not call.name and function.get("name"):
            call.name = str(function["name"])
            start = {"toolCallId": call.id, "toolName": call.name}
            chunks.append(Chunk("tool-call-input-streaming-start", start))
            arguments = "".join(call.early) + (arguments or "")
            call.early.clear()
        if not arguments:
            return chunks
        if not call.name:
            call.early.append(arguments)
            return chunks
        call.arguments.append(arguments)
        chunks.append(Chunk("tool-call-delta", {"toolCallId": call.id, "argsTextDelta": arguments}))
        return chunks

    def _call_of(self, index: Any, call_id: str, named: bool) -> _Call:
        """The call that a delta belongs to: by index, else by id, else the last one.

        A new id under a known index is a new call: some services number all parallel calls 0.
        """
        call: _Call | None
        if isinstance(index, int):
            call = self._by_index.get(index)
            if call is not None and call_id and call.id != call_id and call.name and named:
                call = None
        elif call_id:
            call = next((one for one in self._calls if one.id == call_id), None)
        else:
            call = None if named or not self._calls else self._calls[-1]
        if call is None:
            if len(self._calls) >= MOST_CALLS:
                raise broken("The model's service sent too many tool calls.", "malformed_stream")
            call = _Call(call_id or f"call_{uuid.uuid4().hex[:24]}")
            self._calls.append(call)
            if isinstance(index, int):
                self._by_index[index] = call
        return call

    def end(self, warnings: list[dict[str, Any]]) -> list[Chunk]:
        """The whole tool calls and `finish`. Raises ModelAPIError if the service stopped in the middle."""
        if self.finish_reason is None and not self.ended:
            raise broken("The model's service closed the connection too early.", "disconnected")
        chunks = [_whole(call) for call in self._calls]
        reason = FINISH_REASONS.get((self.finish_reason or "stop").lower(), "other")
        if chunks and reason == "stop":
            reason = "tool-calls"
        if self.usage is None:
            warnings = [*warnings, {"type": "other", "message": "The service did not report its usage."}]
        payload: dict[str, Any] = {
            "finishReason": reason,
            "usage": self.usage or {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0},
            "response": {"id": self._response_id, "modelId": self._model},
        }
        if warnings:
            payload["warnings"] = warnings
        chunks.append(Chunk("finish", payload))
        return chunks

    def _read_usage(self, usage: Any) -> None:
        if not isinstance(usage, dict):
            return
        read, written = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
        self.usage = {
            "inputTokens": read,
            "outputTokens": written,
            "totalTokens": _count(usage, "total_tokens") or read + written,
        }
        for ours, group, theirs in (
            ("cachedInputTokens", "prompt_tokens_details", "cached_tokens"),
            ("reasoningTokens", "completion_tokens_details", "reasoning_tokens"),
        ):
            details = usage.get(group)
            if isinstance(details, dict) and (count := _count(details, theirs)):
                self.usage[ours] = count


def _count(values: dict[str, Any], name: str) -> int:
    value = values.get(name)
    return value if isinstance(value, int) and value > 0 else 0


def _content_parts(parts: list[dict[str, Any]]) -> list[Chunk]:
    """Content as a list of parts, as services with visible thinking send it."""
    chunks = []
    for part in parts:
        if part.get("type") == "text" and part.get("text"):
            chunks.append(text_delta(str(part["text"])))
        elif part.get("type") == "thinking":
            thinking = part.get("thinking") or ""
            text = (
                thinking if isinstance(thinking, str) else "".join(str(p.get("text", "")) for p in thinking)
            )
            if text:
                chunks.append(reasoning_delta(text))
    return chunks


def _whole(call: _Call) -> Chunk:
    """The finished call. Arguments that are no JSON object travel as they came, for the model to be told."""
    if not call.name:
        raise broken("The model's service sent a tool call without a name.", "malformed_stream")
    text = "".join(call.arguments)
    payload: dict[str, Any] = {"toolCallId": call.id, "toolName": call.name, "args": {}}
    if text.strip():
        try:
            args = json.loads(text)
        except (ValueError, RecursionError):
            args = None
        if isinstance(args, dict):
            payload["args"] = args
        else:
            payload["invalidArgs"] = text
    return Chunk("tool-call", payload)
