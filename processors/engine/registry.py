"""The kinds of processors that an admin can choose from.

A kind is registered explicitly; nothing is registered by being imported. The console draws its form from the JSON Schema
of `options`. Third-party packages register theirs from an entry point of the group `gatehouse.processors`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from processors.engine.errors import ConfigError
from processors.engine.hooks import Stage
from processors.engine.ports import BuildContext
from processors.engine.processor import Processor


class Options(BaseModel):
    """Base of every processor's options: unknown keys are refused, every field has a title and a help text."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class ProcessorKind:
    """What the platform must know to offer a processor.

    slug: stable id of the kind, such as "pii-detector". stages: the chains it can stand in.
    factory: (instance id, options, context) → processor. redacts: it rewrites content, so it may not fail open.
    group: heading in the console's list, such as "Personal data".
    """

    slug: str
    title: str
    description: str
    options: type[Options]
    factory: Callable[[str, Any, BuildContext], Processor]
    stages: frozenset[Stage]
    redacts: bool = False
    group: str = "General"


class Registry:
    """Kinds by slug. Raises ConfigError for a duplicate or unknown slug."""

    def __init__(self) -> None:
        self._kinds: dict[str, ProcessorKind] = {}

    def register(self, kind: ProcessorKind) -> None:
        if kind.slug in self._kinds:
            raise ConfigError(f"The processor kind {kind.slug!r} is registered twice; rename one of them.")
        self._kinds[kind.slug] = kind

    def get(self, slug: str) -> ProcessorKind:
        try:
            return self._kinds[slug]
        except KeyError:
            raise ConfigError(
                f"The processor kind {slug!r} is not installed; install its package or choose another kind."
            ) from None

    def __contains__(self, slug: object) -> bool:
        return slug in self._kinds

    def __iter__(self) -> Iterator[ProcessorKind]:
        return iter(sorted(self._kinds.values(), key=lambda kind: (kind.group, kind.title)))

    def build(self, slug: str, id: str, options: dict[str, Any], context: BuildContext) -> Processor:
        """Build a processor from stored options. Raises ConfigError, pydantic.ValidationError."""
        kind = self.get(slug)
        return kind.factory(id, kind.options.model_validate(options), context)


registry = Registry()
"""The installation's kinds; filled by the processors app when it is ready."""
