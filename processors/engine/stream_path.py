"""The road of a chunk through the output chain.

Everything that can be decided once per run is decided here once: which processors have the hook, and the one argument
object each of them is given again and again. Per chunk there is one loop of plain calls; whatever is not plain (an
awaitable, a list, an exception, a data part, a group) takes the slower road below it, which does the same work.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from processors.engine.chunks import DATA_PREFIX, Chunk
from processors.engine.errors import ContractError
from processors.engine.hooks import ProcessOutputStreamArgs
from processors.engine.message_list import MessageList
from processors.engine.scope import UNCHANGED, Raised, RunScope
from processors.engine.slots import Slot, groups_of

HOOK = "process_output_stream"
ALLOWED = "the chunk, a changed Chunk, a list of Chunks, or None to drop it"
ALLOWED_IN_GROUP = "the chunk it was given: processors of one group judge side by side and change nothing"
SAMPLE = 64
"""One chunk of so many is timed, and counts for all of them. It is the third: the first ones are mere marks."""


class StreamPath:
    """process_output_stream of all output processors, for one run."""

    def __init__(self, scope: RunScope, slots: list[Slot], message_list: MessageList) -> None:
        self.scope = scope
        self.slots = [slot for slot in slots if HOOK in slot.hooks]
        parts: list[Chunk] = []
        self.args: list[ProcessOutputStreamArgs] = [
            scope.args_for(
                slot, ProcessOutputStreamArgs, part=None, stream_parts=parts, message_list=message_list
            )
            for slot in self.slots
        ]
        self.hooks = [
            _careful(slot.hooks[HOOK]) if slot.entry.on_error == "allow" else slot.hooks[HOOK]
            for slot in self.slots
        ]
        # Neighbours that have received the same chunks share one list of them; only its first owner appends.
        self.owns = [at == 0 for at in range(len(self.slots))]
        self.steps = self._steps()
        self.takes_data = [bool(getattr(slot.processor, "process_data_parts", False)) for slot in self.slots]
        place = {slot: at for at, slot in enumerate(self.slots)}
        self.groups = [[place[slot] for slot in group] for group in groups_of(self.slots)]
        self.plain = all(len(group) == 1 for group in self.groups)
        self._marks: list[int] = [0] * len(self.slots)
        self._seen = 0

    def _steps(self) -> list[tuple[Callable[[Any], Any], ProcessOutputStreamArgs, list[Any], Any]]:
        return [
            (hook, args, slot.pending, args.stream_parts.append if owns else None)
            for hook, args, slot, owns in zip(self.hooks, self.args, self.slots, self.owns, strict=True)
        ]

    def _part_ways(self, at: int, received: Chunk | None = None) -> None:
        """The slot `at` gets something else than the one before it: from now on it has a list of its own."""
        if at >= len(self.slots) or self.owns[at]:
            return
        own = self.args[at].stream_parts[:-1]
        if received is not None:
            own.append(received)
        self.owns[at] = True
        for args, owns in zip(self.args[at:], [False, *self.owns[at + 1 :]], strict=True):
            if owns:
                break
            args.stream_parts = own
        self.steps = self._steps()

    def _part_all_ways(self) -> None:
        """Data parts reach some processors only, and several chunks at once reach one after the other."""
        if all(self.owns):
            return
        for at in range(1, len(self.slots)):
            if not self.owns[at]:
                self.owns[at] = True
                self.args[at].stream_parts = list(self.args[at].stream_parts)
        self.steps = self._steps()

    def retries_changed(self) -> None:
        """Tell the reused argument objects the new retry count."""
        for args in self.args:
            args.retry_count = self.scope.retry_count

    def mark(self) -> None:
        """An attempt begins here."""
        self._marks = [len(args.stream_parts) for args in self.args]

    def rewind(self) -> None:
        """The attempt is refused: its parts are forgotten."""
        for args, length, owns in zip(self.args, self._marks, self.owns, strict=True):
            if owns:
                del args.stream_parts[length:]

    async def push(self, part: Chunk) -> list[Chunk]:
        """What the client gets for a chunk: none, one or several chunks. Raises TripWire and the engine's errors."""
        seen = self._seen
        self._seen = seen + 1
        if seen % SAMPLE == 2 or not seen or not self.plain or part.type.startswith(DATA_PREFIX):
            return await self._first_or_timed(seen, part)
        at = 0
        for hook, args, pending, note in self.steps:
            args.part = part
            if note is not None:
                note(part)
            try:
                result = hook(args)
            except Exception as error:
                return await self._from(at + 1, self._onward(at, part, await self._judged(at, part, error)))
            if pending:
                await self.scope.flush(self.slots[at], HOOK, args)
            at += 1
            if result is part:
                continue
            if result.__class__ is Chunk:
                part = result
                self._part_ways(at, part)
            else:
                if result is None:
                    self._part_ways(at)
                    return []
                return await self._from(
                    at, self._onward(at - 1, part, await self._finished(at - 1, part, result))
                )
        return [part]

    async def _first_or_timed(self, seen: int, part: Chunk) -> list[Chunk]:
        if part.type.startswith(DATA_PREFIX):
            return await self.push_data(part)
        if not seen:
            for slot in self.slots:
                slot.stats.evaluated += 1
        return await self._from(0, [part], timed=seen % SAMPLE == 2)

    async def push_data(self, part: Chunk, seen_by: frozenset[Slot] = frozenset()) -> list[Chunk]:
        """A data part: only processors that opted in see it, and none of those whose handling led to it."""
        if not any(self.takes_data):
            return [part]
        self._part_all_ways()
        return await self._from(0, [part], seen_by)

    def _onward(self, at: int, given: Chunk, answer: list[Chunk]) -> list[Chunk]:
        """What the slot `at` made of a chunk; unless it is that chunk, the next one goes its own way."""
        if len(answer) != 1 or answer[0] is not given:
            self._part_ways(at + 1)
        return answer

    # ── the slower road ────────────────────────────────────────────────────
    async def _from(
        self, start: int, parts: list[Chunk], seen_by: frozenset[Slot] = frozenset(), *, timed: bool = False
    ) -> list[Chunk]:
        """The rest of the road, from the slot `start` on."""
        if len(parts) > 1:
            self._part_all_ways()
        for group in self.groups:
            if group[-1] < start or not parts:
                continue
            members = [at for at in group if at >= start]
            fed: list[Chunk] = []
            for chunk in parts:
                data = chunk.type.startswith(DATA_PREFIX)
                judges = [at for at in members
                          if not data or (self.takes_data[at] and self.slots[at] not in seen_by)]  # fmt: skip
                if not judges:
                    fed.append(chunk)
                elif len(judges) == 1:
                    fed.extend(self._onward(judges[0], chunk, await self._one(judges[0], chunk, timed)))
                else:
                    await self._side_by_side(judges, chunk)
                    fed.append(chunk)
            parts = fed
        return parts

    def _call(self, at: int, part: Chunk) -> Any:
        args = self.args[at]
        args.part = part
        if self.owns[at]:
            args.stream_parts.append(part)
        return self.hooks[at](args)

    async def _one(self, at: int, part: Chunk, timed: bool) -> list[Chunk]:
        start = time.perf_counter()
        try:
            result = self._call(at, part)
            if inspect.isawaitable(result):
                result = await result
        except Exception as error:
            return await self._judged(at, part, error)
        if timed:
            self.slots[at].stats.seconds += (time.perf_counter() - start) * SAMPLE
        if self.slots[at].pending:
            await self.scope.flush(self.slots[at], HOOK, self.args[at])
        return await self._chunks(at, result)

    async def _finished(self, at: int, part: Chunk, result: Any) -> list[Chunk]:
        """A hook answered with an awaitable, a list, or something it may not."""
        if inspect.isawaitable(result):
            try:
                result = await result
            except Exception as error:
                return await self._judged(at, part, error)
            if self.slots[at].pending:
                await self.scope.flush(self.slots[at], HOOK, self.args[at])
        return await self._chunks(at, result)

    async def _judged(self, at: int, part: Chunk, error: Exception) -> list[Chunk]:
        """A verdict or an error is raised; where the admin lets it, the chunk goes on unscanned."""
        await self.scope.judge(self.slots[at], HOOK, error, self.args[at])
        held = list(getattr(error, "held", ()))
        return held if getattr(error, "takes_part", False) else [*held, part]

    async def _chunks(self, at: int, result: Any, allowed: str = ALLOWED) -> list[Chunk]:
        if result is None:
            return []
        if isinstance(result, Chunk):
            return [result]
        if isinstance(result, list | tuple) and all(isinstance(chunk, Chunk) for chunk in result):
            return list(result)
        slot = self.slots[at]
        error = ContractError(slot.id, HOOK, f"{type(result).__name__} {result!r:.80}", allowed)
        await self.scope.judge(slot, HOOK, error, self.args[at])
        return []

    async def _side_by_side(self, judges: list[int], part: Chunk) -> None:
        """Read-only judges look at one chunk together; the first refusal in list order wins, the rest is ended."""

        async def look(at: int) -> Any:
            try:
                result = self._call(at, part)
                return await result if inspect.isawaitable(result) else result
            except Exception as error:
                return Raised(error)

        tasks = [asyncio.ensure_future(look(at)) for at in judges]
        try:
            for at, task in zip(judges, tasks, strict=True):
                slot, result = self.slots[at], await task
                result = await self.scope.settle(slot, HOOK, result, self.args[at])
                if result is not self.args[at].part and result is not UNCHANGED:
                    error = ContractError(
                        slot.id, HOOK, f"{type(result).__name__} {result!r:.80}", ALLOWED_IN_GROUP
                    )
                    await self.scope.judge(slot, HOOK, error, self.args[at])
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _careful(hook: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """For a processor that may let content pass when it fails: it gets a copy, so that a half-done edit is undone."""

    def call(args: ProcessOutputStreamArgs) -> Any:
        part = args.part
        args.part = replace(part, payload=dict(part.payload) if part.payload is not None else None)
        return hook(args)

    return call
