"""The processor object and its place in a chain (contract section 2).

A processor is any object with an `id` and at least one hook; `Processor` is a convenient base class. It defines no hook
itself, so that a hook which a processor does not have costs nothing. Hooks may be plain or async functions and take one
argument, see hooks.py:

    class ShoutFilter(Processor):
        id = "shout-filter"

        def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk | None:
            if args.part.type == "text-delta" and args.part.text.isupper():
                args.report_violation("Shouting", {"type": "shout", "strategy": "filter"})
                return None
            return args.part
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from processors.engine.hooks import RequestContext
from processors.engine.tripwire import ProcessorViolation

OnViolation: TypeAlias = Callable[[ProcessorViolation], Awaitable[None] | None]
OnError: TypeAlias = Literal["block", "allow"]


class Processor:
    """Base class of processors. An instance holds configuration only; what belongs to a run lives in `args.state`."""

    id: str
    description: str = ""
    processor_index: int = -1
    """Position in the combined chain, set by the engine."""
    process_data_parts: bool = False
    """True: process_output_stream also receives `data-*` chunks."""
    on_violation: OnViolation | None = None
    _name: str | None = None

    def __init__(
        self, id: str | None = None, *, name: str | None = None, on_violation: OnViolation | None = None
    ) -> None:
        if id is not None:
            self.id = id
        if name is not None:
            self._name = name
        if on_violation is not None:
            self.on_violation = on_violation

    @property
    def name(self) -> str:
        """The display name; falls back to the id."""
        return self._name or self.id


@dataclass(slots=True)
class ChainEntry:
    """A processor's place in a chain and what the platform decided about it.

    on_error: what an exception does: `block` ends the run, `allow` passes the content on and records `not_scanned`.
    mandatory: it stays when a call replaces the agent's list, and stands outermost.
    group: entries next to each other with the same group name judge side by side (read-only guards).
    origin: travels into the audit unchanged (slug, kind, version … of the configured processor).
    """

    processor: Any
    on_error: OnError = "block"
    mandatory: bool = False
    group: str | None = None
    origin: Any = None


ProcessorList: TypeAlias = Sequence[Any]
"""Processors and ChainEntry objects, mixed as one likes."""
ProcessorSource: TypeAlias = ProcessorList | Callable[[RequestContext], ProcessorList]
"""A list, or a function of the request context that is called once per run."""


@dataclass(slots=True)
class ProcessorSet:
    """The three lists of an agent or a call. None: not given."""

    input: ProcessorSource | None = None
    output: ProcessorSource | None = None
    error: ProcessorSource | None = None
    mandatory_input: list[ChainEntry] = field(default_factory=list)
    mandatory_output: list[ChainEntry] = field(default_factory=list)
