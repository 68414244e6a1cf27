"""Tools as the loop runs them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import jsonschema

from processors.engine.hooks import RequestContext, StreamWriter
from processors.engine.ports import AbortSignal, ToolSpec


@dataclass(slots=True)
class ToolContext:
    """What a running tool may use."""

    run_id: str
    tool_call_id: str
    request_context: RequestContext
    abort_signal: AbortSignal
    writer: StreamWriter


Execute: TypeAlias = Callable[[Any, ToolContext], Awaitable[Any] | Any]


@dataclass(slots=True)
class Tool:
    """A tool. parameters: a JSON Schema object. execute: None when the client runs it (the run ends with the call).

    requires_approval: True, or a function of the arguments. timeout: seconds, None for no limit.
    """

    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=lambda: {"type": "object"})
    execute: Execute | None = None
    requires_approval: bool | Callable[[Any], bool] = False
    timeout: float | None = None

    def spec(self) -> ToolSpec:
        """What the model is told."""
        return ToolSpec(self.name, self.description, self.parameters)

    def needs_approval(self, args: Any) -> bool:
        return self.requires_approval(args) if callable(self.requires_approval) else self.requires_approval

    def complaint(self, args: Any) -> str | None:
        """What is wrong with arguments, in words for the model; None when they fit the schema."""
        try:
            jsonschema.validate(args, self.parameters)
        except jsonschema.ValidationError as error:
            place = ".".join(map(str, error.absolute_path)) or "arguments"
            return f"Invalid arguments for {self.name}: {place}: {error.message}"
        return None


@dataclass(slots=True, frozen=True)
class ApprovalDecision:
    """What a person decided about a call that waits. args: the arguments to use instead, checked again."""

    approved: bool
    reason: str | None = None
    args: Any = None
