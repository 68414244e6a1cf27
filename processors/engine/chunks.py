"""The pieces of a run's stream (contract section 7).

A `Chunk` is what a model client yields, what `process_output_stream` receives and what a client gets. On every
wire it keeps the founding page's shape and camelCase: `{"type", "runId", "from", "payload"}`, or `data` instead of
`payload` for `data-*` chunks. Payload dictionaries are in the wire's camelCase already, so that sending a chunk costs
one dictionary.

What the loop puts into payloads:
    start                {"agentId"}
    step-start           {"stepNumber", "messageId"}: the id of the assistant message that the step will be
    text-start, -end     {"id"}; text-delta {"id", "text"}; the same for reasoning
    tool-call            {"toolCallId", "toolName", "args", "providerExecuted"?}
    tool-call-approval   {"toolCallId", "toolName", "args"}: the run waits for a person
    tool-result          {"toolCallId", "toolName", "args", "result", "providerExecuted"?}
    tool-error           {"toolCallId", "toolName", "args", "error", "denied"?}
    step-retry           {"stepNumber", "messageId", "reason"}: what this step has shown so far is withdrawn
    step-finish          {"stepNumber", "reason", "finishReason", "usage"}
    object-result        {"object"}: the validated object of a structured answer
The last chunk of a run is one of:
    finish               {"reason", "finishReason", "usage"}: completed, or waiting ("suspended")
    tripwire             {"reason", "retry", "processorId", "metadata"?}: blocked
    error                {"error": {"name", "message", "code", "retryable"}}: failed
    abort                {"reason"}: cancelled
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

TEXT_DELTA: Final = "text-delta"
REASONING_DELTA: Final = "reasoning-delta"
DATA_PREFIX: Final = "data-"

CHUNK_TYPES: Final[frozenset[str]] = frozenset({
    "start", "step-start", "text-start", "text-delta", "text-end",
    "reasoning-start", "reasoning-delta", "reasoning-end", "source", "file",
    "tool-call-input-streaming-start", "tool-call-delta", "tool-call",
    "tool-call-approval", "tool-call-suspended", "tool-result", "tool-error", "tool-output",
    "step-finish", "step-retry", "finish", "error", "abort", "tripwire", "object", "object-result",
})  # fmt: skip

UNSEEN_BY_PROCESSORS: Final[frozenset[str]] = frozenset({"start", "tripwire", "error"})
"""`process_output_stream` never receives these (contract section 3)."""


@dataclass(slots=True)
class Chunk:
    """One piece of a stream.

    type: one of `CHUNK_TYPES`, or `data-<name>`.
    payload: the chunk's values in the wire's camelCase; None for `data-*` chunks.
    data: the value of a `data-*` chunk, any JSON value.
    transient: a `data-*` chunk that is streamed and never stored.
    extra: further keys that the author of a `data-*` chunk gave it; they travel unchanged.
    """

    type: str
    payload: dict[str, Any] | None = None
    run_id: str = ""
    from_: str = "AGENT"
    data: Any = None
    id: str | None = None
    transient: bool = False
    metadata: dict[str, Any] | None = None
    extra: dict[str, Any] | None = None

    @property
    def is_data(self) -> bool:
        return self.type.startswith(DATA_PREFIX)

    @property
    def text(self) -> str:
        """The text of a delta, empty for every other chunk."""
        return (self.payload or {}).get("text", "") if self.type in (TEXT_DELTA, REASONING_DELTA) else ""

    def with_text(self, text: str) -> Chunk:
        """A copy of this delta that carries `text`; the original stays as it is."""
        return Chunk(self.type, {**(self.payload or {}), "text": text}, self.run_id, self.from_,
                     id=self.id, metadata=self.metadata)  # fmt: skip

    def replace(self, **changes: Any) -> Chunk:
        """A copy with some attributes replaced."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return Chunk(**{**values, **changes})

    def to_wire(self) -> dict[str, Any]:
        """The JSON object that clients receive."""
        wire: dict[str, Any] = {"type": self.type, "runId": self.run_id, "from": self.from_}
        if self.type.startswith(DATA_PREFIX):
            wire["data"] = self.data
            if self.id is not None:
                wire["id"] = self.id
            if self.transient:
                wire["transient"] = True
            if self.extra:
                wire.update({k: v for k, v in self.extra.items() if k not in wire})
        elif self.payload is not None:
            wire["payload"] = self.payload
        if self.metadata is not None:
            wire["metadata"] = self.metadata
        return wire

    @classmethod
    def from_wire(cls, wire: dict[str, Any]) -> Chunk:
        """Read a chunk back from its wire form. Raises KeyError without a type."""
        known = {"type", "runId", "from", "payload", "data", "id", "transient", "metadata"}
        extra = {k: v for k, v in wire.items() if k not in known}
        return cls(
            wire["type"], wire.get("payload"), wire.get("runId", ""), wire.get("from", "AGENT"),
            wire.get("data"), wire.get("id"), bool(wire.get("transient", False)), wire.get("metadata"), extra or None,
        )  # fmt: skip


def text_delta(text: str, *, block: str = "txt-0") -> Chunk:
    """A text delta as a model client yields it. `block` names the text block it belongs to."""
    return Chunk(TEXT_DELTA, {"id": block, "text": text})


def reasoning_delta(text: str, *, block: str = "rsn-0") -> Chunk:
    """A reasoning delta as a model client yields it."""
    return Chunk(REASONING_DELTA, {"id": block, "text": text})
