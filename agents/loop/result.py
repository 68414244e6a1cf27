"""How a run ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from processors.engine.hooks import StepResult, ToolCallInfo, ToolResultInfo, Usage
from processors.engine.messages import Message
from processors.engine.tripwire import Tripwire

Status: TypeAlias = Literal["completed", "blocked", "failed", "cancelled", "waiting"]


@dataclass(slots=True)
class RunResult:
    """The outcome of one run, the same for `generate()` and `stream()`.

    text: the text of all accepted steps. usage: every attempt, refused ones included (they were paid for).
    messages: the run's own messages as stored. stats: per processor {"id", "index", "evaluated", "passed",
    "violations", "errors", "seconds"}. snapshot: what `resume` needs when the run waits for approval.
    """

    run_id: str
    status: Status = "cancelled"
    """Until the run has ended: a run that nobody began to read has been cancelled."""
    text: str = ""
    reasoning_text: str = ""
    steps: list[StepResult] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    finish_reason: str = ""
    tripwire: Tripwire | None = None
    error: Exception | None = None
    object: Any = None
    messages: list[Message] = field(default_factory=list)
    stats: list[dict[str, Any]] = field(default_factory=list)
    snapshot: dict[str, Any] | None = None

    @property
    def tool_calls(self) -> list[ToolCallInfo]:
        return [call for step in self.steps for call in step.tool_calls]

    @property
    def tool_results(self) -> list[ToolResultInfo]:
        return [result for step in self.steps for result in step.tool_results]
