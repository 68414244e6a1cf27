"""Runs one guardrail's hooks by themselves, and whole answers through the agent loop, cut in any way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NoReturn

from processors.builtin import register_all
from processors.engine.chunks import Chunk
from processors.engine.hooks import (
    ProcessInputArgs,
    ProcessOutputStreamArgs,
    ProcessToolResultArgs,
    RequestContext,
)
from processors.engine.message_list import MessageList
from processors.engine.messages import Message, MessageContent, SystemMessage, user_message
from processors.engine.ports import AbortSignal, BuildContext
from processors.engine.registry import Registry
from processors.engine.tripwire import TripWire

KINDS = Registry()
register_all(KINDS)


def guard(slug: str, id: str = "guard", **options: Any) -> Any:
    """A guardrail of a kind, built as the platform builds it."""
    return KINDS.build(slug, id, options, BuildContext())


@dataclass
class Heard:
    """What came of a hook: chunks or messages, the violations reported, the verdict if there was one."""

    chunks: list[Chunk] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    violations: list[tuple[str, Any]] = field(default_factory=list)
    tripwire: TripWire | None = None
    result: Any = None

    @property
    def text(self) -> str:
        return "".join(chunk.text for chunk in self.chunks if chunk.type == "text-delta")

    @property
    def deltas(self) -> list[str]:
        return [chunk.text for chunk in self.chunks if chunk.type == "text-delta"]

    @property
    def details(self) -> list[dict[str, Any]]:
        """The details of all violations, that of an abort included."""
        return [detail for _, detail in self.violations] + ([self.tripwire.metadata] if self.tripwire else [])


def common(heard: Heard, state: dict[str, Any]) -> dict[str, Any]:
    """The arguments that every hook has."""

    def abort(reason: str | None = None, *, retry: bool = False, metadata: Any = None) -> NoReturn:
        raise TripWire(reason or "", retry=retry, metadata=metadata)

    return {
        "state": state, "request_context": RequestContext(), "tracing_context": None, "abort_signal": AbortSignal(), "retry_count": 0,
        "abort": abort, "report_violation": lambda message, detail=None: heard.violations.append((message, detail)), "writer": None,
    }  # fmt: skip


def pieces_of(text: str, cuts: Iterable[int]) -> list[str]:
    """The text cut at these places."""
    places = sorted({min(max(cut, 0), len(text)) for cut in cuts} | {0, len(text)})
    return [text[start:end] for start, end in pairwise(places)] or [""]


def chunks_of(pieces: Sequence[str], *, kind: str = "text") -> list[Chunk]:
    """One block of a stream."""
    deltas = [Chunk(f"{kind}-delta", {"id": "b", "text": piece}) for piece in pieces]
    return [Chunk(f"{kind}-start", {"id": "b"}), *deltas, Chunk(f"{kind}-end", {"id": "b"})]


def stream(processor: Any, pieces: Sequence[str] | Sequence[Chunk], *, kind: str = "text") -> Heard:
    """Send pieces of one block (or whole chunks) through a guardrail."""
    heard, state = Heard(), dict[str, Any]()
    chunks = chunks_of([str(piece) for piece in pieces], kind=kind) if not pieces or isinstance(pieces[0], str) else list(pieces)  # fmt: skip
    args = ProcessOutputStreamArgs(
        **common(heard, state), part=chunks[0], stream_parts=[], message_list=MessageList()
    )
    try:
        for chunk in [*chunks, Chunk("finish", {"finishReason": "stop"})]:
            args.part = chunk  # type: ignore[assignment]
            out = processor.process_output_stream(args)
            heard.chunks += out if isinstance(out, list) else [out] if out is not None else []
    except TripWire as tripwire:
        heard.tripwire = tripwire
    return heard


def read(processor: Any, *inputs: str | Message, system: str = "") -> Heard:
    """Give user messages to a guardrail's process_input."""
    heard = Heard()
    messages = [user_message(one) if isinstance(one, str) else one for one in inputs]
    message_list = MessageList()
    message_list.add(messages, "input")
    if system:
        message_list.add_system(system)
    heard.messages = messages
    args = ProcessInputArgs(**common(heard, {}), messages=messages, system_messages=[SystemMessage(system)], message_list=message_list)  # fmt: skip
    try:
        returned = processor.process_input(args)
        heard.messages = returned if returned is not None else messages
    except TripWire as tripwire:
        heard.tripwire = tripwire
    return heard


def tool_returns(processor: Any, result: Any, *, tool: str = "look_up", args: Any = None) -> Heard:
    """Give a tool's result to a guardrail; `result` is what the model would read."""
    heard, message_list = Heard(), MessageList()
    call = {"state": "result", "toolCallId": "c1", "toolName": tool, "args": args or {}, "result": result}
    message_list.add(
        Message("assistant", MessageContent([{"type": "tool-invocation", "toolInvocation": call}]))
    )
    hook = ProcessToolResultArgs(
        **common(heard, {}), messages=message_list.all, message_list=message_list, step_number=0, tool_name=tool, tool_call_id="c1",
        args=args or {}, result=result, provider_executed=False, system_messages=[], steps=[],
    )  # fmt: skip
    try:
        processor.process_tool_result(hook)
    except TripWire as tripwire:
        heard.tripwire = tripwire
    part = message_list.find_tool_invocation("c1")
    heard.result = part["toolInvocation"]["result"] if part else None
    return heard


def call(name: str, args: Any) -> Chunk:
    return Chunk("tool-call", {"toolCallId": "c1", "toolName": name, "args": args})
