"""What the engine costs per chunk, against floors measured in the same process on the same work.

Two floors: `calls`, a model generator whose deltas pass five guards by plain function calls, and `generators`, one async
generator per guard. Each figure is the best of several rounds; the ratio is against the floor named in the row.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from agents.loop.agent import Agent
from agents.loop.tools import Tool, ToolContext
from bench.guards import deltas, five_guards
from bench.row import Row
from processors.engine.chunks import Chunk, text_delta
from processors.engine.hooks import ProcessOutputStreamArgs, RequestContext
from processors.engine.messages import Message, assistant_message, user_message
from processors.engine.ports import AbortSignal, ModelRequest, Turn
from processors.engine.processor import Processor

ROUNDS = 5
FINISH = {"finishReason": "stop", "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}}


class Texts:
    """A model that costs nothing: it yields prepared deltas, or a tool call first."""

    id = "bench/texts"

    def __init__(self, texts: list[str], tool_calls: int = 0) -> None:
        self.texts, self.tool_calls, self.calls = texts, tool_calls, 0

    async def stream(
        self, request: ModelRequest, *, signal: AbortSignal | None = None
    ) -> AsyncIterator[Chunk]:
        self.calls += 1
        if self.calls <= self.tool_calls:
            yield Chunk(
                "tool-call", {"toolCallId": f"c{self.calls}", "toolName": "echo", "args": {"n": self.calls}}
            )
            yield Chunk("finish", {**FINISH, "finishReason": "tool-calls"})
            return
        for text in self.texts:
            yield text_delta(text)
        yield Chunk("finish", dict(FINISH))


class Guarded(Processor):
    """One of the five guards as a processor."""

    def __init__(self, number: int) -> None:
        super().__init__(f"guard-{number}")
        self.number = number

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk | list[Chunk] | None:
        part, state = args.part, args.state
        guard = state.get("guard")
        if guard is None:
            guard = state["guard"] = five_guards()[self.number]
        if part.type == "text-delta":
            before = part.payload["text"]  # type: ignore[index]
            after = guard.feed(before)
            if after is before:
                return part
            return part.with_text(after) if after else None
        if part.type == "text-end" and (rest := guard.flush()):
            return [text_delta(rest), part]
        return part


class Pass(Processor):
    """Does nothing to a chunk."""

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk:
        return args.part


class NoStreamHook(Processor):
    """Has an output hook, but none for chunks."""

    def process_output_result(self, args: Any) -> None:
        return None


class History:
    """Earlier messages, as a thread would give them."""

    def __init__(self, count: int) -> None:
        make: list[Callable[..., Message]] = [user_message, assistant_message]
        self.messages = [
            make[number % 2](f"Message number {number} about a parcel.") for number in range(count)
        ]

    async def load(self) -> list[Message]:
        return [message.copy() for message in self.messages]

    async def save(self, turn: Turn) -> None:
        return None


def best(measure: Callable[[], Awaitable[float]], rounds: int = ROUNDS) -> float:
    """The least of several measurements, in seconds."""

    async def all_rounds() -> float:
        return min([await measure() for _ in range(rounds)])

    return asyncio.run(all_rounds())


def agent_of(texts: list[str], processors: Sequence[Processor], **values: Any) -> Agent:
    return Agent(
        "bench", model=Texts(texts, values.pop("tool_calls", 0)), output_processors=processors, **values
    )


async def drained(texts: list[str], processors: Sequence[Processor], history: int = 0) -> float:
    """Seconds to stream the whole answer through the engine."""
    agent = agent_of(texts, processors)
    memory = History(history) if history else None
    start = time.perf_counter()
    async for _ in agent.stream("Hello", memory=memory, request_context=RequestContext()):
        pass
    return time.perf_counter() - start


async def calls_floor(texts: list[str]) -> float:
    """Seconds for the same guards called plainly."""
    guards, out = five_guards(), []
    start = time.perf_counter()
    async for chunk in Texts(texts).stream(ModelRequest([])):
        text = chunk.text
        for guard in guards:
            text = guard.feed(text)
        if text:
            out.append(text)
    return time.perf_counter() - start


async def through(source: AsyncIterator[Chunk], guard: Any) -> AsyncIterator[Chunk]:
    async for chunk in source:
        if chunk.type != "text-delta":
            if rest := guard.flush():
                yield text_delta(rest)
            yield chunk
            continue
        text = guard.feed(chunk.text)
        if text:
            yield chunk.with_text(text)


async def generators_floor(texts: list[str]) -> float:
    """Seconds for the same guards as one async generator each."""
    stream: AsyncIterator[Chunk] = Texts(texts).stream(ModelRequest([]))
    for guard in five_guards():
        stream = through(stream, guard)
    start = time.perf_counter()
    async for _ in stream:
        pass
    return time.perf_counter() - start


async def first_chunk(history: int) -> float:
    """Seconds from the call to the first text."""
    agent = agent_of(["Hello"], [Guarded(number) for number in range(5)])
    memory = History(history) if history else None
    start = time.perf_counter()
    stream = agent.stream("Hello", memory=memory)
    try:
        async for chunk in stream:
            if chunk.type.startswith("text-"):
                return time.perf_counter() - start
    finally:
        await stream.aclose()
    raise AssertionError("the stream ended without text")


async def tool_steps(count: int) -> float:
    """Seconds for a loop of `count` steps with a trivial tool."""

    async def echo(args: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        return args

    tool = Tool("echo", "Returns its arguments.", {"type": "object"}, echo)
    agent = agent_of(["done"], [], tools=[tool], tool_calls=count, max_steps=count + 1)
    start = time.perf_counter()
    await agent.generate("Hello")
    return time.perf_counter() - start


def throughput_rows() -> list[Row]:
    texts = deltas(5_000)
    calls = best(lambda: calls_floor(texts))
    generators = best(lambda: generators_floor(texts))
    engine = best(lambda: drained(texts, [Guarded(number) for number in range(5)]))
    per_second = len(texts) / engine
    return [
        Row("floor: five guards, plain calls", len(texts) / calls, "deltas/s"),
        Row("floor: five guards, one async generator each", len(texts) / generators, "deltas/s"),
        Row(
            "engine: five guards", per_second, "deltas/s", "≥ 0.5 of the generator floor", generators / engine
        ),
    ]


def hook_rows() -> list[Row]:
    texts = deltas(5_000)
    none = best(lambda: drained(texts, []))
    passing = best(lambda: drained(texts, [Pass(f"pass-{n}") for n in range(20)]))
    absent = best(lambda: drained(texts, [NoStreamHook(f"none-{n}") for n in range(20)]))
    per_hook = (passing - none) / 20 / len(texts) * 1e6
    per_absent = (absent - none) / 20 / len(texts) * 1e6
    return [
        Row("engine: no processors", none / len(texts) * 1e6, "µs/delta"),
        Row("one pass-through processor", per_hook, "µs/delta", "≤ 1.5", per_hook / 1.5),
        Row("a hook that a processor does not have", per_absent, "µs/delta", "0 (noise)", absent / none),
    ]


def growth_rows() -> list[Row]:
    guards = [Guarded(number) for number in range(5)]
    rows = []
    base = 0.0
    for count in (1_000, 5_000, 20_000):
        texts = deltas(count)
        cost = best(lambda texts=texts: drained(texts, guards), 3) / count * 1e6  # type: ignore[misc]
        base = base or cost
        rows.append(Row(f"answer of {count:,} deltas", cost, "µs/delta", "same as 1,000", cost / base))
    texts = deltas(5_000)
    base = 0.0
    for history in (10, 1_000, 5_000):
        setup = best(lambda history=history: first_chunk(history), 3)  # type: ignore[misc]
        whole = best(lambda history=history: drained(texts, guards, history), 3)  # type: ignore[misc]
        cost = (whole - setup) / len(texts) * 1e6
        base = base or cost
        rows.append(Row(f"{history:,} earlier messages", cost, "µs/delta", "same as 10", cost / base))
    return rows


def delay_rows() -> list[Row]:
    empty, long = best(lambda: first_chunk(0)) * 1e3, best(lambda: first_chunk(5_000)) * 1e3
    step = best(lambda: tool_steps(50)) / 50 * 1e3
    return [
        Row("first chunk", empty, "ms", "< 1", empty / 1),
        Row("first chunk after 5,000 earlier messages", long, "ms", "< 20", long / 20),
        Row("a step with a trivial tool", step, "ms", "≤ 0.5", step / 0.5),
    ]


def rows() -> list[Row]:
    """Every row of this benchmark."""
    return [*throughput_rows(), *hook_rows(), *growth_rows(), *delay_rows()]
