"""A tool that a processor brings along, shaped like the tools of an agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import jsonschema

from processors.engine.ports import ToolSpec


@dataclass(slots=True)
class MetaTool:
    """name, description, parameters (a JSON Schema object): what the model is told. execute: (args, context) → value."""

    name: str
    description: str
    parameters: dict[str, Any]
    execute: Callable[[Any, Any], Awaitable[Any]]
    requires_approval: bool = False
    timeout: float | None = 10.0

    def spec(self) -> ToolSpec:
        """What the model is told."""
        return ToolSpec(self.name, self.description, self.parameters)

    def needs_approval(self, args: Any) -> bool:
        return False

    def complaint(self, args: Any) -> str | None:
        """What is wrong with arguments, in words for the model; None when they fit."""
        try:
            jsonschema.validate(args, self.parameters)
        except jsonschema.ValidationError as error:
            return f"Invalid arguments for {self.name}: {error.message}"
        return None
