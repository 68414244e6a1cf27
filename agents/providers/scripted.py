"""A model that follows a script: for tests, the practice agent and demonstrations. No network, no chance.

    busy = ModelAPIError("Busy.", status=503, retryable=True)
    model = ScriptedModel(script=[says("Hello, Alice."), [tool_call("clock", {})], [busy]])

The first call says hello, the second calls a tool, the third is rejected.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import cycle, repeat
from typing import Any, Final, TypeAlias

from processors.engine.chunks import REASONING_DELTA, TEXT_DELTA, Chunk, reasoning_delta, text_delta
from processors.engine.errors import ConfigError, RunCancelled
from processors.engine.ports import AbortSignal, ModelRequest

DEFAULT_USAGE: Final = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}
CUTTABLE: Final = frozenset({TEXT_DELTA, REASONING_DELTA})


@dataclass(slots=True, frozen=True)
class Pause:
    """The model says nothing for `seconds`, or until the event is set (whichever is given)."""

    seconds: float = 0.0
    until: asyncio.Event | None = None


Line: TypeAlias = Chunk | BaseException | Pause
"""One line of a script: a chunk to send, an exception to raise, or a pause."""
Lines: TypeAlias = Iterable[Line]
Call: TypeAlias = Lines | Callable[[ModelRequest], Lines]
"""What the model does in one call: lines, or a function of the request that gives them."""


class ScriptedModel:
    """A `LanguageModel` that answers call after call as its script says.

    id: the model's name in results and the audit.
    script: one entry per call, or one function that answers every call.
    cut: the size in characters of the pieces of text and reasoning; a list of sizes is used in turn.
    pace: seconds before each text or reasoning piece.
    repeat_last: a call beyond the script's end repeats its last entry instead of raising ConfigError.
    usage: reported by the `finish` that is added when the lines have none.

    requests: what it was asked, with the prompts as they were then.
    open_streams: how many streams were started and are not closed yet.
    """

    def __init__(
        self, id: str = "scripted/model", script: Sequence[Call] | Callable[[ModelRequest], Lines] = (), *,
        cut: int | Sequence[int] | None = None, pace: float = 0.0, repeat_last: bool = False,
        usage: dict[str, int] | None = None,
    ) -> None:  # fmt: skip
        self._id = id
        self._script = script
        self._cut = _checked_sizes(cut)
        self._pace = pace
        self._repeat_last = repeat_last
        self._usage = dict(usage or DEFAULT_USAGE)
        self.requests: list[ModelRequest] = []
        self.open_streams = 0

    @property
    def id(self) -> str:
        return self._id

    async def stream(
        self, request: ModelRequest, *, signal: AbortSignal | None = None
    ) -> AsyncIterator[Chunk]:
        """Yield this call's chunks, and a `finish` if they have none. Raises the script's exceptions."""
        self.requests.append(replace(request, prompt=copy.deepcopy(request.prompt)))
        lines = self._lines_of(len(self.requests), request)
        self.open_streams += 1
        try:
            ended = called = False
            for line in lines:
                if isinstance(line, Chunk):
                    ended = line.type == "finish"
                    called = called or (
                        line.type == "tool-call" and not (line.payload or {}).get("providerExecuted")
                    )
                    for piece in self._pieces(line):
                        if self._pace and piece.type in CUTTABLE:
                            await _idle(Pause(self._pace), signal)
                        _check(signal)
                        yield piece
                elif isinstance(line, Pause):
                    await _idle(line, signal)
                else:
                    raise line
            if not ended:
                yield finish("tool-calls" if called else "stop", usage=self._usage)
        finally:
            self.open_streams -= 1

    def _lines_of(self, number: int, request: ModelRequest) -> Lines:
        if callable(self._script):
            return self._script(request)
        if number > len(self._script) and not (self._repeat_last and self._script):
            raise ConfigError(
                f"The script of {self._id!r} has {len(self._script)} calls, and this is call {number}. "
                "Add what the model shall say."
            )
        call = self._script[min(number, len(self._script)) - 1]
        return call(request) if callable(call) else call

    def _pieces(self, chunk: Chunk) -> Iterator[Chunk]:
        text = chunk.text
        if not self._cut or not text:
            yield chunk
            return
        at = 0
        for size in cycle(self._cut):
            yield chunk.with_text(text[at : at + size])
            at += size
            if at >= len(text):
                return


def _checked_sizes(cut: int | Sequence[int] | None) -> tuple[int, ...]:
    sizes = () if cut is None else (cut,) if isinstance(cut, int) else tuple(cut)
    if any(size < 1 for size in sizes):
        raise ConfigError("Text is cut into pieces of at least one character; use sizes of 1 or more.")
    return sizes


def _check(signal: AbortSignal | None) -> None:
    if signal is not None and signal.aborted:
        raise RunCancelled(f"The run was stopped: {signal.reason}.")


async def _idle(pause: Pause, signal: AbortSignal | None) -> None:
    """Wait as the pause says; a stopped run ends the wait."""
    if signal is None:
        await (pause.until.wait() if pause.until is not None else asyncio.sleep(pause.seconds))
        return
    if pause.until is None:
        with suppress(TimeoutError):
            await asyncio.wait_for(signal.wait(), pause.seconds)
    else:
        waits = {asyncio.ensure_future(pause.until.wait()), asyncio.ensure_future(signal.wait())}
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
    _check(signal)


def says(text: str, *, thinks: str = "") -> list[Line]:
    """The lines of a call that thinks (if given) and answers with `text`."""
    return [*([reasoning_delta(thinks)] if thinks else []), *([text_delta(text)] if text else [])]


def tool_call(name: str, args: dict[str, Any], call_id: str = "call-1") -> Chunk:
    """A whole tool call."""
    return Chunk("tool-call", {"toolCallId": call_id, "toolName": name, "args": args})


def finish(reason: str = "stop", *, usage: dict[str, int] | None = None) -> Chunk:
    """The chunk that ends a call. usage: {"inputTokens", "outputTokens", "totalTokens"}."""
    return Chunk("finish", {"finishReason": reason, "usage": dict(usage or DEFAULT_USAGE)})


def paced(texts: Iterable[str], seconds: float) -> Iterator[Line]:
    """Text deltas with a pause before each, as a person would see a model type."""
    for text, pause in zip(texts, repeat(Pause(seconds)), strict=False):
        yield pause
        yield text_delta(text)
