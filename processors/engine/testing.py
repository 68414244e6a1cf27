"""Try a processor without a database, a network or a model.

    outcome = asyncio.run(stream_text([ShoutFilter()], "WHAT? Good morning.", cut=1))
    assert outcome.text == " Good morning."

Each function runs one stretch of the road with the engine's own chain: what people write (`check_input`), an answer
chunk by chunk (`stream_text`), a tool's result (`check_tool_result`), a whole answer (`check_answer`). What ends a run
comes back in the outcome; a broken contract and a failure are raised, as an author wants to see them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

from processors.engine.chain import ChainRunner
from processors.engine.chunks import Chunk
from processors.engine.hooks import HOOKS_OF_STAGE, OutputResult, RequestContext, Stage, StepResult, Usage
from processors.engine.message_list import MessageList
from processors.engine.messages import Message, MessageContent, assistant_message, user_message
from processors.engine.ports import AbortSignal, AuditEntry
from processors.engine.processor import ChainEntry
from processors.engine.scope import RunScope
from processors.engine.slots import entries_of
from processors.engine.tripwire import ProcessorViolation, TripWire, Tripwire


class CollectingAudit:
    """An audit sink that keeps its entries in a list."""

    def __init__(self) -> None:
        self.entries: list[AuditEntry] = []

    async def record(self, entry: AuditEntry) -> None:
        self.entries.append(entry)


@dataclass(slots=True)
class Outcome:
    """What came of it.

    text: the text that goes on. chunks: all chunks that go on, data parts among them. messages: the list afterwards.
    result: a tool's result as it goes on. tripwire: the refusal, if there was one; what came out before it stands.
    states: processor id → its state.
    """

    text: str = ""
    chunks: list[Chunk] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    result: Any = None
    tripwire: Tripwire | None = None
    entries: list[AuditEntry] = field(default_factory=list)
    states: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def violations(self) -> list[ProcessorViolation]:
        """Every violation, an abort's included, in order."""
        return [entry.violation for entry in self.entries if entry.outcome == "violation"]

    @property
    def data(self) -> list[Chunk]:
        """The `data-*` chunks that processors wrote and others let pass."""
        return [chunk for chunk in self.chunks if chunk.is_data]


class _Stage:
    """A chain with everything around it that a run would give it."""

    def __init__(self, processors: Sequence[Any], context: dict[str, Any] | None) -> None:
        self.outcome, self.audit, self.list = Outcome(), CollectingAudit(), MessageList()
        self.written: list[tuple[Chunk, Any]] = []
        self.scope = RunScope(
            run_id="test-run", request_context=RequestContext(context or {}), tracing_context=None,
            abort_signal=AbortSignal(), audit=self.audit, emit=lambda chunk, author: self.written.append((chunk, author)),
        )  # fmt: skip
        self.scope.step_number = 0
        self.chain = ChainRunner(self.scope, _sorted(processors), self.list)

    async def pushed(self, chunk: Chunk) -> None:
        """Send a chunk down the output chain; data parts that were written on the way go first."""
        passed = await self.chain.stream.push(chunk)
        await self.write_out()
        self.outcome.chunks.extend(passed)

    async def write_out(self) -> None:
        while self.written:
            chunk, author = self.written.pop(0)
            seen = frozenset({author}) if author is not None else frozenset()
            self.outcome.chunks.extend(await self.chain.stream.push_data(chunk, seen))

    def ended(self, trip: TripWire | None = None) -> Outcome:
        outcome = self.outcome
        if trip is not None:
            outcome.tripwire = Tripwire(trip.reason, trip.retry, trip.metadata, trip.processor_id or "")
        outcome.text = outcome.text or "".join(chunk.text for chunk in outcome.chunks)
        outcome.entries, outcome.messages = self.audit.entries, self.list.all
        outcome.states = {slot.id: slot.state for slot in self.chain.slots}
        return outcome


def _sorted(processors: Sequence[Any]) -> dict[Stage, list[ChainEntry]]:
    """Each processor in every chain for which it has a hook."""
    entries = entries_of(processors, RequestContext())
    return {
        stage: [entry for entry in entries if any(hasattr(entry.processor, hook) for hook in hooks)]
        for stage, hooks in HOOKS_OF_STAGE.items()
    }


def pieces_of(text: str | Sequence[str], cut: int | Sequence[int] | None = None) -> Iterator[str]:
    """A text in pieces of `cut` characters (sizes are used in turn), or the pieces as they are given."""
    if not isinstance(text, str) or cut is None:
        yield from [text] if isinstance(text, str) else text
        return
    sizes, at = cycle([cut] if isinstance(cut, int) else cut), 0
    while at < len(text):
        size = max(next(sizes), 1)
        yield text[at : at + size]
        at += size


async def stream_text(
    processors: Sequence[Any], text: str | Sequence[str], *, cut: int | Sequence[int] | None = None,
    reasoning: bool = False, context: dict[str, Any] | None = None,
) -> Outcome:  # fmt: skip
    """An answer as a model streams it, through process_output_stream.

    text: the answer, or its pieces. cut: sizes in characters. reasoning: stream it as the model's thoughts.
    Raises ContractError, ProcessorFailed.
    """
    stage, kind = _Stage(processors, context), "reasoning" if reasoning else "text"
    try:
        await stage.pushed(Chunk("step-start", {"stepNumber": 0}))
        await stage.pushed(Chunk(f"{kind}-start", {"id": "block"}))
        for piece in pieces_of(text, cut):
            await stage.pushed(Chunk(f"{kind}-delta", {"id": "block", "text": piece}))
        await stage.pushed(Chunk(f"{kind}-end", {"id": "block"}))
        await stage.pushed(Chunk("step-finish", {"stepNumber": 0, "reason": "stop"}))
        await stage.pushed(Chunk("finish", {"reason": "stop"}))
    except TripWire as trip:
        return stage.ended(trip)
    return stage.ended()


async def check_input(
    processors: Sequence[Any], said: str | Sequence[Message], *, instructions: str = "",
    context: dict[str, Any] | None = None,
) -> Outcome:  # fmt: skip
    """What a person wrote, through process_input. Raises ContractError, ProcessorFailed."""
    stage = _Stage(processors, context)
    if instructions:
        stage.list.add_system(instructions)
    stage.list.add([user_message(said)] if isinstance(said, str) else list(said), "input")
    try:
        await stage.chain.input()
    except TripWire as trip:
        return stage.ended(trip)
    stage.outcome.text = "\n".join(message.text for message in stage.list.input)
    return stage.ended()


async def check_tool_result(
    processors: Sequence[Any], result: Any, *, tool_name: str = "tool", args: Any = None,
    context: dict[str, Any] | None = None,
) -> Outcome:  # fmt: skip
    """A tool's result, through process_tool_result. Raises ContractError, ProcessorFailed."""
    stage = _Stage(processors, context)
    call = {"state": "call", "toolCallId": "call-1", "toolName": tool_name, "args": args or {}}
    part = {"type": "tool-invocation", "toolInvocation": call}
    stage.list.add(Message("assistant", MessageContent([part])), "response")
    values: dict[str, Any] = {"step_number": 0, "tool_name": tool_name, "tool_call_id": "call-1", "args": args or {},
              "provider_executed": False, "steps": []}  # fmt: skip
    try:
        stage.outcome.result = await stage.chain.tool_result(values, result)
    except TripWire as trip:
        return stage.ended(trip)
    await stage.write_out()
    return stage.ended()


async def check_answer(
    processors: Sequence[Any], text: str, *, context: dict[str, Any] | None = None
) -> Outcome:
    """A whole answer, through process_output_step and process_output_result. Raises ContractError, ProcessorFailed."""
    stage = _Stage(processors, context)
    stage.list.add(assistant_message(text), "response")
    step = StepResult(0, text)
    try:
        await stage.chain.output_step({
            "step_number": 0, "finish_reason": "stop", "provider_metadata": None, "tool_calls": [], "text": text,
            "usage": Usage(), "steps": [step],
        })  # fmt: skip
        await stage.chain.output_result(OutputResult(text, Usage(), "stop", [step]))
    except TripWire as trip:
        return stage.ended(trip)
    await stage.write_out()
    stage.outcome.text = "".join(message.text for message in stage.list.response)
    return stage.ended()
