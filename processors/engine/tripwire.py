"""The verdict that stops a run (contract section 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn, Protocol


class TripWire(Exception):
    """Raised by `abort`. A processor may also raise it itself; the engine then fills in its id.

    reason: shown to the client. retry: ask for the same step again. metadata: travels in the tripwire chunk.
    """

    def __init__(
        self, reason: str, *, retry: bool = False, metadata: Any = None, processor_id: str | None = None
    ) -> None:
        super().__init__(reason)
        self.reason, self.retry, self.metadata, self.processor_id = reason, retry, metadata, processor_id


@dataclass(slots=True, frozen=True)
class Tripwire:
    """How a blocked run ended, as its result reports it."""

    reason: str
    retry: bool
    metadata: Any
    processor_id: str


class Abort(Protocol):
    """`abort(reason, retry=…, metadata=…)`: raises TripWire, never returns."""

    def __call__(
        self, reason: str | None = None, *, retry: bool = False, metadata: Any = None
    ) -> NoReturn: ...


@dataclass(slots=True, frozen=True)
class ProcessorViolation:
    """A policy violation, whatever the processor's strategy (contract section 6).

    detail: processor-specific. The built-in processors use a dictionary with some of these keys, which the audit
    reads: `type`, `rule`, `strategy` (block, redact, warn, filter, retry, rewrite), `matches` (a list of
    {"type", "rule", "start", "end"}; offsets are characters), `excerpt` (masked, never the matched secret),
    `hash` (keyed), `score`, `where` (text, reasoning, tool-args, tool-result, input …).
    """

    processor_id: str
    message: str
    detail: Any = None
