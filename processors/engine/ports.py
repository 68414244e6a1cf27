"""What the engine and the loop need from the outside, as Protocols. Higher layers implement them.

Nothing here knows Django, a database, a queue or a provider.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, Protocol, TypeAlias

from processors.engine.chunks import Chunk
from processors.engine.messages import Message
from processors.engine.tripwire import ProcessorViolation

PromptMessage: TypeAlias = dict[str, Any]
"""One message of a provider prompt:
{"role": "system", "content": str}
{"role": "user", "content": [{"type": "text", "text": str} | {"type": "file", "mimeType", "data" | "url"}]}
{"role": "assistant", "content": [{"type": "text", "text"} | {"type": "reasoning", "text"} |
                                  {"type": "tool-call", "toolCallId", "toolName", "args"}]}
{"role": "tool", "content": [{"type": "tool-result", "toolCallId", "toolName", "result", "isError"?: bool}]}
"""
Prompt: TypeAlias = list[PromptMessage]
ToolChoice: TypeAlias = str | dict[str, str]
""""auto" | "none" | "required" | {"type": "tool", "toolName": name}"""
Outcome: TypeAlias = Literal["pass", "violation", "error", "not_scanned"]


@dataclass(slots=True)
class ToolSpec:
    """A tool as the model is told about it. parameters: a JSON Schema object."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})


@dataclass(slots=True)
class ModelRequest:
    """One provider call. response_schema: a JSON Schema the reply must match (structured output), if any."""

    prompt: Prompt
    tools: list[ToolSpec] = field(default_factory=list)
    tool_choice: ToolChoice = "auto"
    settings: dict[str, Any] = field(default_factory=dict)
    provider_options: dict[str, Any] = field(default_factory=dict)
    response_schema: dict[str, Any] | None = None


class AbortSignal:
    """Says that the caller no longer wants the run. One per run; hooks, tools and model clients may watch it."""

    __slots__ = ("_callbacks", "_event", "reason", "reply_ended")

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._callbacks: list[Callable[[], None]] = []
        self.reason: str | None = None
        self.reply_ended = False
        """A processor has seen enough of this reply; the loop sets it back before each model call."""

    def end_reply(self) -> None:
        """Close the model's stream now and go on as if the model had stopped there, for its length."""
        self.reply_ended = True

    @property
    def aborted(self) -> bool:
        return self._event.is_set()

    def abort(self, reason: str = "cancelled") -> None:
        """Ask the run to stop. Harmless when repeated."""
        if not self._event.is_set():
            self.reason = reason
            self._event.set()
            for callback in self._callbacks:
                callback()

    def on_abort(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back when the run is asked to stop; the loop interrupts what it waits for. Returns how to forget it."""
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback) if callback in self._callbacks else None

    async def wait(self) -> None:
        """Return when the run has been asked to stop."""
        await self._event.wait()


class LanguageModel(Protocol):
    """A model client.

    `stream` yields raw chunks as the provider sends them: `text-delta` {"id", "text"}, `reasoning-delta` {"id", "text"},
    `tool-call-input-streaming-start` {"toolCallId", "toolName"}, `tool-call-delta` {"toolCallId", "argsTextDelta"},
    `tool-call` {"toolCallId", "toolName", "args": object, "providerExecuted"?: true, "invalidArgs"?: str (the raw text
    when it is no JSON object)}, `tool-result` (provider-executed calls), `source`, `file`, and last `finish`
    {"finishReason": "stop" | "length" | "tool-calls" | "content-filter" | "error" | "other",
     "usage": {"inputTokens", "outputTokens", "totalTokens"}, "providerMetadata"?, "warnings"?, "request"?, "response"?}.
    Text and reasoning block starts and ends are added by the engine. A different `id` starts a new block.
    Raises ModelAPIError, before or between chunks. The caller closes the generator with `aclose()`; a client closes its
    connection then.
    """

    @property
    def id(self) -> str:
        """`provider/name`, as shown in results and the audit."""
        ...

    def stream(self, request: ModelRequest, *, signal: AbortSignal | None = None) -> AsyncIterator[Chunk]: ...


@dataclass(slots=True)
class AuditEntry:
    """One row for the audit trail. It never holds the matched text: processors mask `detail` themselves.

    outcome: violation, error (a processor raised; the run was blocked), not_scanned (it raised and may let content
    pass). action: what happened to the content (block, retry, redact, warn, filter, rewrite, allow).
    delivered_chars: characters of the current reply the client had already received.
    """

    outcome: Outcome
    action: str
    violation: ProcessorViolation
    hook: str
    run_id: str
    processor_index: int
    step_number: int | None = None
    retry_count: int = 0
    tool_name: str | None = None
    tool_call_id: str | None = None
    delivered_chars: int = 0
    duration_ms: float | None = None
    origin: Any = None
    """What the chain entry carries about where it came from (configured processor's slug, version, mandatory)."""
    at: datetime = field(default_factory=lambda: datetime.now(UTC))


class AuditSink(Protocol):
    """Where violations go. If `record` raises, the run stops (fail closed)."""

    async def record(self, entry: AuditEntry) -> None: ...


@dataclass(slots=True)
class Turn:
    """What a finished run leaves behind; stored in one transaction with the run's status.

    messages: the run's own messages in order (input, response, notice), as the output chain passed them. A message whose
    id is stored already is updated. Remembered messages of earlier runs are never among them.
    """

    run_id: str
    status: Literal["completed", "blocked", "failed", "cancelled", "waiting"]
    messages: list[Message]
    usage: dict[str, int]
    finish_reason: str
    tripwire: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    snapshot: dict[str, Any] | None = None
    """For a waiting run: what `resume` needs, as JSON. Its messages hold the calls that wait; a reply's text is among
    them only if no process_output_result hook is still to pass it."""


class ThreadMemory(Protocol):
    """The conversation's storage, as the loop needs it."""

    async def load(self) -> list[Message]:
        """Earlier messages of the thread, oldest first. Blocked ones may be among them; the engine skips them."""
        ...

    async def save(self, turn: Turn) -> None:
        """Store a finished turn. Called once per run, before the client sees `finish`."""
        ...


class CostStore(Protocol):
    """Answers what was spent. Used by budget processors."""

    async def spent(self, *, scope: str, key: str, window_seconds: float | None) -> Mapping[str, float]:
        """Totals for a scope (run, thread, user, agent, key) and window: {"cost", "tokens", "calls"}."""
        ...


@dataclass(slots=True, frozen=True)
class Reservation:
    """The answer to `BudgetStore.reserve`. id: for `settle`. used: what was spent and reserved before this request."""

    id: str
    granted: bool
    used: Mapping[str, float]


class BudgetStore(CostStore, Protocol):
    """A cost store that can also promise: what is reserved counts as spent for everybody else at once.

    Amounts and limits are {"cost", "tokens", "calls"}, each optional.
    """

    async def reserve(
        self, *, scope: str, key: str, window_seconds: float | None, amounts: Mapping[str, float],
        limits: Mapping[str, float],
    ) -> Reservation:  # fmt: skip
        """Check and reserve in one step: granted if every limit covers what is used and these amounts. A refused
        request reserves nothing."""
        ...

    async def settle(self, reservation_id: str, *, amounts: Mapping[str, float]) -> None:
        """Put what was really spent in the reservation's place. Called once; what is never settled stays reserved."""
        ...


class Cache(Protocol):
    """A small key-value cache with expiry in seconds."""

    async def get(self, key: str) -> Any: ...

    async def set(self, key: str, value: Any, *, ttl: float) -> None: ...


class ModelResolver(Protocol):
    """Turns `provider/name` into a client. Raises ConfigError if there is no credential for it."""

    def __call__(self, model_id: str) -> LanguageModel: ...


@dataclass(slots=True)
class BuildContext:
    """What a processor may ask the platform for when it is built. All optional: tests give what they need.

    hash_key: the installation's key for keyed hashes (bytes, 32 or more).
    """

    models: ModelResolver | None = None
    cache: Cache | None = None
    costs: CostStore | None = None
    """A `BudgetStore` where limits must hold for requests that arrive together."""
    hash_key: bytes = b"gatehouse-test-key-do-not-deploy"
