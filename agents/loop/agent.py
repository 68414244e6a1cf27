"""An agent as the loop runs it, and the stream of one run (contract sections 4 and 9)."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TypeAlias

from agents.loop.budget import Budget
from agents.loop.result import RunResult
from agents.loop.run import Run
from agents.loop.tools import ApprovalDecision, Tool
from processors.engine.chunks import Chunk
from processors.engine.errors import ConfigError
from processors.engine.hooks import RequestContext, StepResult
from processors.engine.messages import Message, user_message
from processors.engine.ports import (
    AbortSignal,
    AuditSink,
    LanguageModel,
    ModelResolver,
    ThreadMemory,
    ToolChoice,
)
from processors.engine.processor import ChainEntry, ProcessorSource

Input: TypeAlias = str | Message | Sequence[Message]


@dataclass(slots=True)
class Call:
    """What one call asks for beside its input. None: as the agent says."""

    run_id: str | None = None
    memory: ThreadMemory | None = None
    audit: AuditSink | None = None
    request_context: RequestContext | None = None
    abort_signal: AbortSignal | None = None
    tracing_context: Any = None
    input_processors: ProcessorSource | None = None
    output_processors: ProcessorSource | None = None
    error_processors: ProcessorSource | None = None
    max_processor_retries: int | None = None
    max_steps: int | None = None
    active_tools: list[str] | None = None
    tool_choice: ToolChoice | None = None
    model_settings: dict[str, Any] | None = None
    provider_options: dict[str, Any] | None = None
    instructions: str | None = None
    system: str | Sequence[str] | None = None
    context: Sequence[Message] | None = None
    structured_output: dict[str, Any] | None = None
    prepare_step: Callable[[Any], Any] | None = None
    stop_when: Callable[[list[StepResult]], bool] | None = None
    budget: Budget | None = None
    snapshot: dict[str, Any] | None = None
    decisions: dict[str, ApprovalDecision] = field(default_factory=dict)


class RunStream:
    """The chunks of one run. Iterate it, or ask for the result; `aclose()` stops the run and closes the provider."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.run_id = run.run_id
        self._chunks: AsyncGenerator[Chunk, None] = run.chunks()

    def __aiter__(self) -> AsyncGenerator[Chunk, None]:
        return self._chunks

    def __anext__(self) -> Awaitable[Chunk]:
        return self._chunks.__anext__()

    async def result(self) -> RunResult:
        """Consume what is left and return how the run ended."""
        async for _ in self._chunks:
            pass
        return self._run.result

    async def aclose(self) -> None:
        """Stop: the provider's connection is closed at once; what was shown is stored."""
        await self._chunks.aclose()

    async def __aenter__(self) -> RunStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class Agent:
    """Configuration only; every run builds its chains anew.

    The three lists take processors, `ChainEntry` objects, or a function of the request context. `mandatory_input` stands
    first on input, `mandatory_output` last on output, whatever a call gives instead of the agent's lists.
    fallbacks: models tried in order when the main one fails for good. resolver: turns a name that a processor returns
    into a client.
    """

    def __init__(
        self, id: str, *, model: LanguageModel | str, name: str | None = None, instructions: str = "",
        fallbacks: Sequence[LanguageModel | str] = (), tools: Sequence[Tool] = (),
        input_processors: ProcessorSource | None = None, output_processors: ProcessorSource | None = None,
        error_processors: ProcessorSource | None = None, mandatory_input: Sequence[ChainEntry] = (),
        mandatory_output: Sequence[ChainEntry] = (), max_processor_retries: int | None = None, max_steps: int = 5,
        model_settings: dict[str, Any] | None = None, provider_options: dict[str, Any] | None = None,
        budget: Budget | None = None, resolver: ModelResolver | None = None,
    ) -> None:  # fmt: skip
        self.id, self.name, self.instructions = id, name or id, instructions
        self.model, self.fallbacks = model, list(fallbacks)
        self.tools = {tool.name: tool for tool in tools}
        self.input_processors, self.output_processors = input_processors, output_processors
        self.error_processors = error_processors
        self.mandatory_input, self.mandatory_output = list(mandatory_input), list(mandatory_output)
        self.max_processor_retries, self.max_steps = max_processor_retries, max_steps
        self.model_settings, self.provider_options = dict(model_settings or {}), dict(provider_options or {})
        self.budget, self.resolver = budget, resolver

    def stream(self, input: Input, **call: Any) -> RunStream:
        """Begin a run. Keywords: see `Call`. Nothing happens before the first chunk is asked for."""
        made = Call(**call)
        return RunStream(Run(self, messages_of(input), made, made.run_id or new_run_id()))

    async def generate(self, input: Input, **call: Any) -> RunResult:
        """The same run, consumed to its end."""
        stream = self.stream(input, **call)
        try:
            return await stream.result()
        finally:
            await stream.aclose()

    def resume(
        self, snapshot: dict[str, Any], decisions: dict[str, ApprovalDecision], **call: Any
    ) -> RunStream:
        """Go on with a run that waits for approval. Raises ConfigError when a waiting call has no decision."""
        missing = [id for id in snapshot["waiting"] if id not in decisions]
        if missing:
            raise ConfigError(f"These tool calls still need a decision: {', '.join(missing)}.")
        made = Call(**call, snapshot=snapshot, decisions=decisions)
        return RunStream(Run(self, [], made, made.run_id or snapshot["run_id"]))

    def model_named(self, model: LanguageModel | str) -> LanguageModel:
        """A client for what a processor returned as `model`. Raises ConfigError."""
        if not isinstance(model, str):
            return model
        if self.resolver is None:
            raise ConfigError(
                f"The model {model!r} cannot be resolved here; give a client instead of a name."
            )
        return self.resolver(model)


def messages_of(input: Input) -> list[Message]:
    """The caller's input as messages."""
    if isinstance(input, str):
        return [user_message(input)]
    return [input] if isinstance(input, Message) else list(input)


def new_run_id() -> str:
    """A fresh id for a run."""
    return str(uuid.uuid4())
