"""A chain, built once per run: processors in their places, checked, with the hooks they really have."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from processors.engine.errors import ConfigError
from processors.engine.hooks import HOOKS_OF_STAGE, Hook, RequestContext, Stage
from processors.engine.processor import ChainEntry, ProcessorSource
from processors.engine.tripwire import ProcessorViolation, TripWire


@dataclass(slots=True)
class ProcessorStats:
    """What a processor did in one run. evaluated: hook calls (a whole stream counts as one)."""

    evaluated: int = 0
    violations: int = 0
    errors: int = 0
    seconds: float = 0.0

    @property
    def passed(self) -> int:
        return max(self.evaluated - self.violations - self.errors, 0)


@dataclass(slots=True, eq=False)
class Slot:
    """A processor's place in the combined chain of one run."""

    entry: ChainEntry
    stage: Stage
    index: int
    state: dict[str, Any]
    hooks: dict[str, Hook] = field(default_factory=dict)
    async_hooks: frozenset[str] = frozenset()
    stats: ProcessorStats = field(default_factory=ProcessorStats)
    last_seconds: float = 0.0
    pending: list[ProcessorViolation | TripWire] = field(default_factory=list)
    """What the running hook has reported, and its aborts: one that the hook swallows counts all the same."""

    @property
    def processor(self) -> Any:
        return self.entry.processor

    @property
    def id(self) -> str:
        return str(self.entry.processor.id)


def entries_of(source: ProcessorSource | None, context: RequestContext) -> list[ChainEntry]:
    """The entries of a list; a function is called once, with the request context."""
    if source is None:
        return []
    listed: Sequence[Any] = source(context) if callable(source) else source
    return [item if isinstance(item, ChainEntry) else _entry(item) for item in listed]


def _entry(processor: Any) -> ChainEntry:
    """A processor that stands in a list by itself says for itself what its failure means, and with whom it may judge."""
    allow = getattr(processor, "on_error", None) == "allow"
    return ChainEntry(
        processor, on_error="allow" if allow else "block", group=getattr(processor, "group", None)
    )


def build_slots(stages: dict[Stage, list[ChainEntry]]) -> list[Slot]:
    """The combined chain: input, output and error entries in list order.

    The same instance in two lists has one state; twice in one list it has two. Raises ConfigError for a processor without an id, or in a chain for
    which it has no hook.
    """
    slots: list[Slot] = []
    states: dict[tuple[int, int], dict[str, Any]] = {}
    places: dict[int, int] = {}
    for stage, entries in stages.items():
        times: dict[int, int] = {}
        for entry in entries:
            processor = entry.processor
            if not isinstance(getattr(processor, "id", None), str) or not processor.id:
                raise ConfigError(f"{type(processor).__name__} in the {stage} chain has no id; give it one.")
            found = {
                name: hook
                for name in HOOKS_OF_STAGE[stage]
                if callable(hook := getattr(processor, name, None))
            }
            if not found:
                raise ConfigError(
                    f"Processor {processor.id!r} has no hook for the {stage} chain; "
                    f"it needs one of {', '.join(HOOKS_OF_STAGE[stage])}."
                )
            if entry.on_error == "allow" and getattr(processor, "redacts", False):
                raise ConfigError(
                    f"Processor {processor.id!r} redacts, so it may not let content pass when it fails."
                )
            key, index = id(processor), len(slots)
            places.setdefault(key, index)
            processor.processor_index = places[key]
            asynchronous = frozenset(
                name for name, hook in found.items() if inspect.iscoroutinefunction(hook)
            )
            times[key] = times.get(key, 0) + 1
            state = states.setdefault((key, times[key]), {})
            slots.append(Slot(entry, stage, index, state, found, asynchronous))
    return slots


def groups_of(slots: Sequence[Slot]) -> list[list[Slot]]:
    """Neighbours with the same group name together, all others alone. Who holds a stream's text back stands alone there."""
    keyed = groupby(enumerate(slots), key=lambda item: _group_of(item[1]) or item[0])
    return [[slot for _, slot in items] for _, items in keyed]


def _group_of(slot: Slot) -> str | None:
    alone = slot.stage == "output" and getattr(slot.processor, "holds_back", False)
    return None if alone else slot.entry.group
