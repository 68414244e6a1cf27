"""Kinds of tools. A kind is registered explicitly; packages may add theirs with `tool_register` from an app's `ready()`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from processors.engine.errors import ConfigError, GatehouseError


class JobStopped(GatehouseError):
    """The person stopped the answer, or the tool's time is up. Raised by `Job.checkpoint`; let it pass through."""

    code = "tool_stopped"


class Job(Protocol):
    """One call of a tool, as its function sees it.

    call_id: the same for every delivery of this call; give it to other services as their idempotency key.
    """

    call_id: str

    def progress(self, percent: float, message: str = "") -> None:
        """Tell the person how far it is (0 to 100). It is shown and never stored. Checks `checkpoint` too."""
        ...

    def checkpoint(self) -> None:
        """Raises JobStopped when the work is no longer wanted. Call it between side effects."""
        ...


@dataclass(frozen=True, slots=True)
class ToolKind:
    """What the platform must know to offer a tool.

    parameters: a JSON Schema object for the arguments. run: (arguments, the tool's options, job) → any JSON value; a plain function
    that may block. Raise ToolFailed with a sentence for the model.
    """

    slug: str
    title: Any
    description: str
    parameters: dict[str, Any]
    run: Callable[[dict[str, Any], dict[str, Any], Job], Any] = field(compare=False)


_kinds: dict[str, ToolKind] = {}


def tool_register(kind: ToolKind) -> None:
    """Offer a kind. Raises ConfigError for a duplicate."""
    if kind.slug in _kinds:
        raise ConfigError(f"The tool kind {kind.slug!r} is registered twice; rename one of them.")
    _kinds[kind.slug] = kind


def tool_kind(slug: str) -> ToolKind:
    """A kind by its slug. Raises ConfigError."""
    _fill()
    try:
        return _kinds[slug]
    except KeyError:
        raise ConfigError(
            f"The tool kind {slug!r} is not installed. Install its package or take the tool away."
        ) from None


def tool_kinds() -> list[ToolKind]:
    """All kinds, by title."""
    _fill()
    return sorted(_kinds.values(), key=lambda kind: str(kind.title))


def _fill() -> None:
    if "calculator" not in _kinds:
        from agents.tools import builtin

        for kind in builtin.KINDS:
            tool_register(kind)
