"""Joins several small text deltas into one, for clients and networks that don't like a frame per word."""

from __future__ import annotations

import time
from typing import Any, Final

from pydantic import Field

from processors.engine.chunks import REASONING_DELTA, TEXT_DELTA, Chunk
from processors.engine.hooks import ProcessOutputStreamArgs
from processors.engine.ports import BuildContext
from processors.engine.processor import Processor
from processors.engine.registry import Options, ProcessorKind, Registry

SLUG: Final = "batch-parts"


class BatchPartsOptions(Options):
    """How many deltas become one."""

    batch_size: int = Field(
        5, title="Deltas per batch", description="So many text deltas become one.", ge=1, le=1000
    )
    max_wait_time: float | None = Field(None, title="Longest wait", description="Milliseconds after which a batch goes out with the next delta although it is not full. Empty: no limit.", gt=0, le=60_000)  # fmt: skip
    emit_on_non_text: bool = Field(True, title="Keep the order", description="Send what is gathered before anything that is not text. Off: tool calls and data may overtake text of the same block.", json_schema_extra={"x-advanced": True})  # fmt: skip


class BatchParts(Processor):
    """Text is joined only within its block; a block's end always sends what is left."""

    def __init__(self, id: str, options: BatchPartsOptions) -> None:
        super().__init__(id)
        self._size, self._in_order = options.batch_size, options.emit_on_non_text
        self._wait = None if options.max_wait_time is None else options.max_wait_time / 1000

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk | list[Chunk] | None:
        part, state = args.part, args.state
        held: list[Chunk] = state.setdefault("held", [])
        if part.type in (TEXT_DELTA, REASONING_DELTA):
            released = _joined(held) if held and not _same_block(held[0], part) else None
            if not held:
                state["since"] = time.monotonic()
            held.append(part)
            if released is None:
                return _joined(held) if self._ready(held, state) else None
            state["since"] = time.monotonic()
            return [released, *([full] if len(held) >= self._size and (full := _joined(held)) else [])]
        if part.type == "step-start":
            held.clear()
            return part
        ends = part.type in ("text-end", "reasoning-end", "step-finish", "finish")
        if held and (self._in_order or ends):
            joined = _joined(held)
            return [joined, part] if joined is not None else part
        return part

    def _ready(self, held: list[Chunk], state: dict[str, Any]) -> bool:
        return len(held) >= self._size or (
            self._wait is not None and time.monotonic() - state["since"] >= self._wait
        )


def _same_block(one: Chunk, other: Chunk) -> bool:
    return one.type == other.type and (one.payload or {}).get("id") == (other.payload or {}).get("id")


def _joined(held: list[Chunk]) -> Chunk | None:
    """One delta with the text of all, and what their providers said beside it; None if they hold no text."""
    text = "".join(chunk.text for chunk in held)
    payload: dict[str, Any] = {}
    for chunk in held:
        payload |= chunk.payload or {}
    first = held[0]
    metadata = {key: value for chunk in held for key, value in (chunk.metadata or {}).items()} or None
    held.clear()
    return first.replace(payload={**payload, "text": text}, metadata=metadata) if text else None


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> BatchParts:
        return BatchParts(id, options)

    registry.register(ProcessorKind(
        slug=SLUG, title="Batch deltas", description="Joins several small pieces of a streamed answer into one.",
        options=BatchPartsOptions, factory=build, stages=frozenset({"output"}), group="Plumbing",
    ))  # fmt: skip
