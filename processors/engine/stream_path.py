"""The road of a chunk through the output chain.

Everything that can be decided once per run is decided here once: which processors have the hook, and the one argument
object each of them is given again and again. Per chunk there is one loop of plain calls.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import Any

from processors.engine.chunks import DATA_PREFIX, Chunk
from processors.engine.errors import ContractError
from processors.engine.hooks import ProcessOutputStreamArgs
from processors.engine.message_list import MessageList
from processors.engine.scope import UNCHANGED, RunScope
from processors.engine.slots import Slot

HOOK = "process_output_stream"
ALLOWED = "the chunk, a changed Chunk, a list of Chunks, or None to drop it"


class StreamPath:
    """process_output_stream of all output processors, for one run."""

    def __init__(self, scope: RunScope, slots: list[Slot], message_list: MessageList) -> None:
        self.scope = scope
        self.parts: list[Chunk] = []
        self.slots = [slot for slot in slots if HOOK in slot.hooks]
        self.args = [
            scope.args_for(slot, ProcessOutputStreamArgs, part=None, stream_parts=self.parts, message_list=message_list)
            for slot in self.slots
        ]
        self.hooks = [slot.hooks[HOOK] for slot in self.slots]
        self.steps = list(zip(self.hooks, self.args, self.slots, strict=True))
        self.takes_data = [bool(getattr(slot.processor, "process_data_parts", False)) for slot in self.slots]
        for slot in self.slots:
            slot.stats.evaluated += 1

    def retries_changed(self) -> None:
        """Tell the reused argument objects the new retry count."""
        for args in self.args:
            args.retry_count = self.scope.retry_count

    async def push(self, part: Chunk) -> list[Chunk]:
        """What the client gets for a chunk: none, one or several chunks. Raises TripWire and the engine's errors."""
        self.parts.append(part)
        if part.type.startswith(DATA_PREFIX):
            return await self.push_data(part, None)
        at = 0
        try:
            for hook, args, slot in self.steps:
                args.part = part
                result = hook(args)
                if slot.pending:
                    await self.scope.flush(slot, HOOK, args)
                if result is part:
                    at += 1
                    continue
                if result.__class__ is Chunk:
                    part = result
                    at += 1
                    continue
                if result is None:
                    return []
                return await self._slowly(at, part, result)
        except Exception as error:
            if at >= len(self.slots) or getattr(error, "_judged", False):
                raise
            return await self._failed(at, part, error)
        return [part]

    async def _failed(self, at: int, part: Chunk, error: Exception) -> list[Chunk]:
        """A hook raised: a verdict or an error; where the admin allows it the chunk goes on unscanned."""
        try:
            await self.scope.judge(self.slots[at], HOOK, error, self.args[at])
        except Exception as judged:
            judged._judged = True  # type: ignore[attr-defined]
            raise
        out: list[Chunk] = []
        for chunk in _unscanned(part, error):
            out.extend(await self._from(at + 1, chunk))
        return out

    async def _from(self, at: int, part: Chunk) -> list[Chunk]:
        """The rest of the road, for a chunk that an earlier processor released."""
        out = [part]
        for index in range(at, len(self.slots)):
            fed: list[Chunk] = []
            for chunk in out:
                if chunk.type.startswith(DATA_PREFIX) and not self.takes_data[index]:
                    fed.append(chunk)
                else:
                    fed.extend(await self._one(index, chunk))
            out = fed
        return out

    async def _one(self, index: int, part: Chunk) -> list[Chunk]:
        args, slot = self.args[index], self.slots[index]
        args.part = part
        try:
            result = self.hooks[index](args)
            if inspect.isawaitable(result):
                result = await result
        except Exception as error:
            try:
                answer = await self.scope.judge(slot, HOOK, error, args)
            except Exception as judged:
                judged._judged = True  # type: ignore[attr-defined]
                raise
            return _unscanned(part, error) if answer is UNCHANGED else []
        if slot.pending:
            await self.scope.flush(slot, HOOK, args)
        return self._chunks(slot, result)

    async def _slowly(self, at: int, part: Chunk, result: Any) -> list[Chunk]:
        """A hook answered with an awaitable or a list: finish it and send each chunk down the rest of the road."""
        slot, args = self.slots[at], self.args[at]
        if inspect.isawaitable(result):
            try:
                result = await _finish(result)
            except Exception as error:
                return await self._failed(at, part, error)
            if slot.pending:
                await self.scope.flush(slot, HOOK, args)
        out: list[Chunk] = []
        try:
            for chunk in self._chunks(slot, result):
                out.extend(await self._from(at + 1, chunk))
        except Exception as judged:
            judged._judged = True  # type: ignore[attr-defined]
            raise
        return out

    def _chunks(self, slot: Slot, result: Any) -> list[Chunk]:
        if result is None:
            return []
        if isinstance(result, Chunk):
            return [result]
        if isinstance(result, list | tuple) and all(isinstance(chunk, Chunk) for chunk in result):
            return list(result)
        raise ContractError(slot.id, HOOK, f"{type(result).__name__} {result!r:.80}", ALLOWED)

    async def push_data(self, part: Chunk, author: Slot | None) -> list[Chunk]:
        """A data part: only processors that opted in see it, and its author not again (no recursion)."""
        out = [part]
        for index, slot in enumerate(self.slots):
            if not self.takes_data[index] or slot is author:
                continue
            fed: list[Chunk] = []
            for chunk in out:
                fed.extend(await self._one(index, chunk))
            out = fed
        return out


def _unscanned(part: Chunk, error: Exception) -> list[Chunk]:
    """What passes where the admin lets it: what the processor held (`error.held`), then the chunk unless it is in there."""
    held = list(getattr(error, "held", ()))
    return held if getattr(error, "takes_part", False) else [*held, part]


async def _finish(result: Awaitable[Any]) -> Any:
    return await result
