"""The nine hooks: their names, the chains they belong to, and the arguments each receives (contract sections 1-3).

Every hook takes one object with the attributes named here. Attributes common to all hooks stand in `HookArgs`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from processors.engine.chunks import Chunk
from processors.engine.messages import Message, SystemMessage
from processors.engine.ports import AbortSignal, LanguageModel, Prompt, ToolChoice
from processors.engine.tripwire import Abort

if TYPE_CHECKING:
    from processors.engine.message_list import MessageList

Stage: TypeAlias = Literal["input", "output", "error"]

INPUT_HOOKS: Final = ("process_input", "process_input_step", "process_llm_request", "process_llm_response")
OUTPUT_HOOKS: Final = (
    "process_output_stream",
    "process_output_step",
    "process_tool_result",
    "process_output_result",
)
ERROR_HOOKS: Final = ("process_api_error",)
HOOKS_OF_STAGE: Final[dict[Stage, tuple[str, ...]]] = {
    "input": INPUT_HOOKS,
    "output": OUTPUT_HOOKS,
    "error": ERROR_HOOKS,
}
HOOKS: Final = (*INPUT_HOOKS, *OUTPUT_HOOKS, *ERROR_HOOKS)


class StreamWriter(Protocol):
    """Streams `data-*` chunks to the client. The call takes effect at once; awaiting it is optional."""

    def custom(self, chunk: Chunk | dict[str, Any], **options: Any) -> Awaitable[None]:
        """Emit a chunk whose type begins with `data-`. Raises ContractError for any other type."""
        ...


class ReportViolation(Protocol):
    """Report a violation without stopping the run. Recorded before the hook's result is used."""

    def __call__(self, message: str, detail: Any = None) -> None: ...


class RequestContext(dict[str, Any]):
    """Values of this request: thread_id, resource_id, user_id, channel, locale … Processors and tools may add some."""


@dataclass(slots=True)
class Usage:
    """Tokens of a step or a run."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens,
                     self.total_tokens + other.total_tokens)  # fmt: skip

    def to_wire(self) -> dict[str, int]:
        return {
            "inputTokens": self.input_tokens,
            "outputTokens": self.output_tokens,
            "totalTokens": self.total_tokens,
        }

    @classmethod
    def from_wire(cls, wire: dict[str, Any] | None) -> Usage:
        wire = wire or {}
        input_tokens, output_tokens = int(wire.get("inputTokens") or 0), int(wire.get("outputTokens") or 0)
        return cls(input_tokens, output_tokens, int(wire.get("totalTokens") or input_tokens + output_tokens))


@dataclass(slots=True)
class ToolCallInfo:
    """A call the model asked for."""

    tool_call_id: str
    tool_name: str
    args: Any
    provider_executed: bool = False


@dataclass(slots=True)
class ToolResultInfo:
    """A call's outcome as the chain passed it. `error`: the tool failed and `result` is its message."""

    tool_call_id: str
    tool_name: str
    args: Any
    result: Any
    provider_executed: bool = False
    error: bool = False


@dataclass(slots=True)
class StepResult:
    """One accepted step."""

    step_number: int
    text: str = ""
    reasoning: str = ""
    tool_calls: list[ToolCallInfo] = field(default_factory=list)
    tool_results: list[ToolResultInfo] = field(default_factory=list)
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=Usage)
    model_id: str = ""
    provider_metadata: dict[str, Any] | None = None
    sources: list[dict[str, Any]] = field(default_factory=list)
    files: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class OutputResult:
    """What process_output_result receives as `result`: the accepted text, the run's usage, its reason and steps."""

    text: str
    usage: Usage
    finish_reason: str
    steps: list[StepResult]


@dataclass(slots=True)
class HookArgs:
    """What every hook receives. `writer` is None in process_input only."""

    state: dict[str, Any]
    request_context: RequestContext
    tracing_context: Any
    abort_signal: AbortSignal
    retry_count: int
    abort: Abort
    report_violation: ReportViolation
    writer: StreamWriter | None


@dataclass(slots=True)
class ProcessInputArgs(HookArgs):
    """messages: the new input only, without system messages."""

    messages: list[Message]
    system_messages: list[SystemMessage]
    message_list: MessageList


@dataclass(slots=True)
class ProcessInputStepArgs(HookArgs):
    """messages: all messages, a snapshot of the list (the messages themselves are live)."""

    messages: list[Message]
    message_list: MessageList
    step_number: int
    steps: list[StepResult]
    system_messages: list[SystemMessage]
    model: LanguageModel
    tool_choice: ToolChoice
    active_tools: list[str] | None
    tools: dict[str, Any]
    provider_options: dict[str, Any]
    model_settings: dict[str, Any]
    structured_output: dict[str, Any] | None


@dataclass(slots=True)
class ProcessLLMRequestArgs(HookArgs):
    prompt: Prompt
    model: LanguageModel
    step_number: int
    steps: list[StepResult]
    message_list: MessageList


@dataclass(slots=True)
class ProcessAPIErrorArgs(HookArgs):
    error: Exception
    messages: list[Message]
    message_list: MessageList
    step_number: int
    steps: list[StepResult]


@dataclass(slots=True)
class ProcessOutputStreamArgs(HookArgs):
    """One object per processor and run; `part` and `retry_count` change from call to call, so don't keep it."""

    part: Chunk
    stream_parts: list[Chunk]
    message_list: MessageList


@dataclass(slots=True)
class ProcessLLMResponseArgs(HookArgs):
    """chunks: the step's chunks after the output chain, each {"type", "payload"}."""

    chunks: list[dict[str, Any]]
    model: LanguageModel
    step_number: int
    steps: list[StepResult]
    from_cache: bool
    warnings: list[Any]
    request: Any
    raw_response: Any


@dataclass(slots=True)
class ProcessOutputStepArgs(HookArgs):
    messages: list[Message]
    message_list: MessageList
    step_number: int
    finish_reason: str | None
    provider_metadata: dict[str, Any] | None
    tool_calls: list[ToolCallInfo]
    text: str
    usage: Usage
    system_messages: list[SystemMessage]
    steps: list[StepResult]


@dataclass(slots=True)
class ProcessToolResultArgs(HookArgs):
    messages: list[Message]
    message_list: MessageList
    step_number: int
    tool_name: str
    tool_call_id: str
    args: Any
    result: Any
    provider_executed: bool
    system_messages: list[SystemMessage]
    steps: list[StepResult]


@dataclass(slots=True)
class ProcessOutputResultArgs(HookArgs):
    messages: list[Message]
    message_list: MessageList
    result: OutputResult


Hook: TypeAlias = Callable[[Any], Any]
