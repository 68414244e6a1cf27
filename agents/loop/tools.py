"""Tools as the loop runs them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import jsonschema

from processors.engine.errors import ConfigError
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
    _validator: Any = field(default=None, init=False, repr=False, compare=False)

    def spec(self) -> ToolSpec:
        """What the model is told."""
        return ToolSpec(self.name, self.description, self.parameters)

    def needs_approval(self, args: Any) -> bool:
        """Whether a person must agree. A function that fails asks for it."""
        if not callable(self.requires_approval):
            return self.requires_approval
        try:
            return bool(self.requires_approval(args))
        except Exception:
            return True

    def complaint(self, args: Any) -> str | None:
        """What is wrong with arguments, in words for the model; None when they fit the schema.

        Raises ConfigError if `parameters` is no JSON Schema.
        """
        if self._validator is None:
            kind = jsonschema.validators.validator_for(self.parameters)
            try:
                kind.check_schema(self.parameters)
            except jsonschema.SchemaError as error:
                raise ConfigError(
                    f"The parameters of tool {self.name!r} are no JSON Schema: {error.message}"
                ) from error
            self._validator = kind(self.parameters)
        wrong = jsonschema.exceptions.best_match(self._validator.iter_errors(args))
        if wrong is None:
            return None
        place = ".".join(map(str, wrong.absolute_path)) or "arguments"
        return f"Invalid arguments for {self.name}: {place}: {wrong.message}"


@dataclass(slots=True, frozen=True)
class ApprovalDecision:
    """What a person decided about a call that waits. args: the arguments to use instead, checked again."""

    approved: bool
    reason: str | None = None
    args: Any = None
