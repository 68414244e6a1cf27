"""One reply in the making: blocks, parts, and the message they become.

The message is built from chunks as the output chain passed them, so what is stored is what was delivered. Text is
collected in lists and joined when its block ends.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from processors.engine.chunks import DATA_PREFIX, Chunk
from processors.engine.hooks import StepResult, ToolCallInfo, Usage
from processors.engine.message_list import MessageList
from processors.engine.messages import Message, MessageContent, Part

BLOCKS = {"text-delta": "text", "reasoning-delta": "reasoning"}


class Blocks:
    """Adds the block starts and ends that model clients leave out."""

    def __init__(self, step: int) -> None:
        self.step, self.count = step, 0
        self.kind: str | None = None
        self.given: str | None = None
        self.id = ""

    def around(self, chunk: Chunk) -> Sequence[Chunk]:
        """The chunk with what must precede it; a delta gets its block's id. An empty delta is left out."""
        kind = BLOCKS.get(chunk.type)
        if kind is None:
            return (*self.close(), chunk)
        payload = chunk.payload or {}
        text, given = payload.get("text"), payload.get("id")
        if not text:
            return ()
        if self.kind == kind and given == self.given:
            return (Chunk(chunk.type, {"id": self.id, "text": text}),)
        before = self.close()
        self.kind, self.given = kind, given
        self.id = f"{kind}-{self.step}-{self.count}"
        self.count += 1
        return (
            *before,
            Chunk(f"{kind}-start", {"id": self.id}),
            Chunk(chunk.type, {"id": self.id, "text": text}),
        )

    def close(self) -> list[Chunk]:
        """End the open block, if any."""
        if self.kind is None:
            return []
        kind, self.kind, self.given = self.kind, None, None
        return [Chunk(f"{kind}-end", {"id": self.id})]


class RefusedCall(str):
    """Why a guardrail refused a call, in words for the model: the `refused` of its tool-call chunk. The tool does not run."""

    __slots__ = ()


class Reply:
    """What one attempt of a step has said so far, after the output chain."""

    def __init__(self, message_list: MessageList, run_id: str, *, keep_chunks: bool) -> None:
        self.list, self.run_id, self.keep_chunks = message_list, run_id, keep_chunks
        self.id = str(uuid.uuid4())
        self.message: Message | None = None
        self.texts: list[str] = []
        self.reasonings: list[str] = []
        self.chunks: list[dict[str, Any]] = []
        self.calls: list[ToolCallInfo] = []
        self.sources: list[dict[str, Any]] = []
        self.files: list[dict[str, Any]] = []
        self.open: tuple[str, str, Part, list[str]] | None = None
        self.finish_reason: str | None = None
        self.usage = Usage()
        self.provider_metadata: dict[str, Any] | None = None
        self.warnings: list[Any] = []
        self.request: Any = None
        self.raw_response: Any = None
        self.invalid: dict[str, str] = {}

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def part(self, part: Part) -> None:
        """Append a part to the reply's message, which joins the list with its first part."""
        if self.message is None:
            self.message = Message("assistant", MessageContent([]), self.id)
            self.list.add(self.message, "response")
        self.message.content.parts.append(part)

    def take(self, chunk: Chunk) -> int:
        """Note a chunk that the output chain has passed. Returns how many characters of text it brings."""
        kind = chunk.type
        if self.keep_chunks and not kind.startswith(DATA_PREFIX):
            self.chunks.append({"type": kind, "payload": chunk.payload})
        block = BLOCKS.get(kind)
        if block is not None:
            payload = chunk.payload or {}
            text = payload.get("text", "")
            current = self.open
            if current is None or current[0] != block or current[1] != payload.get("id", ""):
                self.end_block()
                part: Part = {"type": block, "text": ""}
                self.open = current = (block, payload.get("id", ""), part, [])
                self.part(part)
            current[3].append(text)
            (self.texts if block == "text" else self.reasonings).append(text)
            return len(text)
        if kind.startswith(DATA_PREFIX):
            if not chunk.transient:
                self.part({"type": kind, "data": chunk.data})
        else:
            self._take_other(kind, chunk.payload or {})
        return 0

    def _take_other(self, kind: str, payload: dict[str, Any]) -> None:
        if kind in ("text-end", "reasoning-end"):
            self.end_block()
        elif kind == "tool-call":
            call = ToolCallInfo(
                payload["toolCallId"],
                payload["toolName"],
                payload.get("args"),
                bool(payload.get("providerExecuted")),
            )
            self.calls.append(call)
            if payload.get("refused") is not None:
                self.invalid[call.tool_call_id] = RefusedCall(payload["refused"])
            part: Part = {"type": "tool-invocation", "toolInvocation": {
                "state": "call", "toolCallId": call.tool_call_id, "toolName": call.tool_name, "args": call.args,
            }}  # fmt: skip
            if call.provider_executed:
                part["providerExecuted"] = True
            self.end_block()
            self.part(part)
        elif kind in ("source", "file"):
            self.end_block()
            (self.sources if kind == "source" else self.files).append(payload)
            self.part({"type": kind, **payload})

    def end_block(self) -> None:
        """Join the open block's text into its part."""
        if self.open is not None:
            self.open[2]["text"] = "".join(self.open[3])
            self.open = None

    def note_finish(self, payload: dict[str, Any]) -> None:
        """What the provider said at the end."""
        given = payload.get("finishReason") or (payload.get("stepResult") or {}).get("reason")
        self.finish_reason = given or None
        self.usage = Usage.from_wire(payload.get("usage"))
        self.provider_metadata = payload.get("providerMetadata")
        self.warnings = list(payload.get("warnings") or [])
        self.request, self.raw_response = payload.get("request"), payload.get("response")

    def withdraw(self) -> None:
        """Take the attempt out of the list."""
        self.open = None
        if self.message is not None:
            self.list.remove_by_ids([self.message.id])
            self.message = None

    def recorded(self, step: StepResult) -> list[dict[str, Any]]:
        """The step's chunks as the output chain passed them, so that they can be kept and replayed."""
        finish = {"finishReason": step.finish_reason, "usage": self.usage.to_wire()}
        return [*self.chunks, {"type": "finish", "payload": finish}] if self.keep_chunks else []

    def read_back(self, step: StepResult) -> None:
        """The step says and calls what the message says after the hooks have edited it: that is what is run and stored."""
        current = self.list.get(self.message.id) if self.message is not None else None
        parts = current.content.parts if current is not None else []
        if current is not None:
            self.message = current
        step.text = current.text if current is not None else ""
        step.reasoning = "".join(part.get("text", "") for part in parts if part.get("type") == "reasoning")
        step.tool_calls = [
            ToolCallInfo(
                call["toolCallId"], call["toolName"], call.get("args"), bool(part.get("providerExecuted"))
            )
            for part in parts
            if part.get("type") == "tool-invocation" and (call := part["toolInvocation"])
        ]
