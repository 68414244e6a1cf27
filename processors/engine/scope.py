"""What belongs to one run: its identity, its sink, its writer, and how a hook is called and judged.

Three outcomes (design law 3): a hook passes, refuses (TripWire), or fails. A failure is never a pass.
"""

from __future__ import annotations

import inspect
import json
import logging
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, NoReturn

from processors.engine.chunks import DATA_PREFIX, Chunk
from processors.engine.errors import AuditUnavailable, ContractError, ProcessorFailed, RunCancelled
from processors.engine.hooks import HookArgs, ProcessOutputStreamArgs, RequestContext
from processors.engine.ports import AbortSignal, AuditEntry, AuditSink, Outcome
from processors.engine.slots import Slot
from processors.engine.tripwire import ProcessorViolation, TripWire

log = logging.getLogger("gatehouse.engine")


class _Unchanged:
    """A failed hook of a processor that may let content pass."""


UNCHANGED: Final = _Unchanged()


class Raised:
    """An exception that a hook raised, not judged yet."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error


class _Done:
    """An awaitable that is already done: `await writer.custom(…)` costs nothing."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


DONE: Final = _Done()


def abort_for(slot: Slot) -> Callable[..., NoReturn]:
    """The `abort` that a processor's hooks receive."""

    def abort(reason: str | None = None, *, retry: bool = False, metadata: Any = None) -> NoReturn:
        trip = TripWire(
            reason if reason is not None else f"Tripwire triggered by {slot.id}",
            retry=retry, metadata=metadata, processor_id=slot.id,
        )  # fmt: skip
        slot.pending.append(trip)
        raise trip

    return abort


def data_chunk(chunk: Chunk | dict[str, Any], run_id: str, author: str) -> Chunk:
    """A `data-*` chunk as its author gave it. Raises ContractError for any other type, and for data that is no JSON."""
    hook, allowed = "writer.custom", 'a chunk whose type begins with "data-" and whose data is JSON'
    kind = chunk.type if isinstance(chunk, Chunk) else chunk.get("type") if isinstance(chunk, dict) else None
    if not isinstance(kind, str) or not kind.startswith(DATA_PREFIX) or kind == DATA_PREFIX:
        given = type(chunk).__name__ if kind is None else f"a chunk of type {kind!r:.60}"
        raise ContractError(author, hook, given, allowed)
    made = chunk if isinstance(chunk, Chunk) else Chunk.from_wire(chunk)
    if made.data is None and made.payload is not None:
        made = made.replace(data=made.payload, payload=None)
    try:
        json.dumps([made.data, made.extra])
    except (TypeError, ValueError) as error:
        raise ContractError(author, hook, f"{kind} with data that is no JSON ({error})", allowed) from error
    return made.replace(run_id=run_id, from_="AGENT")


class Writer:
    """`writer.custom`: hands data chunks of one author to the run."""

    __slots__ = ("_author", "_emit", "_run_id", "_slot")

    def __init__(
        self, emit: Callable[[Chunk, Slot | None], None], run_id: str, author: str, slot: Slot | None
    ) -> None:
        self._emit, self._run_id, self._author, self._slot = emit, run_id, author, slot

    def custom(self, chunk: Chunk | dict[str, Any], *_: Any, **options: Any) -> Awaitable[None]:
        self._emit(data_chunk(chunk, self._run_id, self._author), self._slot)
        return DONE


class RunScope:
    """Everything the hooks of one run share."""

    def __init__(
        self, *, run_id: str, request_context: RequestContext, tracing_context: Any, abort_signal: AbortSignal,
        audit: AuditSink | None, emit: Callable[[Chunk, Slot | None], None],
        hold: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:  # fmt: skip
        self._hold = hold
        self.run_id, self.request_context, self.tracing_context = run_id, request_context, tracing_context
        self.abort_signal, self.audit, self.emit = abort_signal, audit, emit
        self.retry_count = 0
        self.step_number: int | None = None
        self.delivered_chars = 0
        self.may_retry: Callable[[], bool] = lambda: False
        self._common: dict[int, dict[str, Any]] = {}

    def args_for(self, slot: Slot, kind: type[HookArgs], *, writer: bool = True, **values: Any) -> Any:
        """The argument object of a hook."""
        common = self._common.get(slot.index)
        if common is None:
            common = self._common[slot.index] = {
                "state": slot.state, "request_context": self.request_context, "tracing_context": self.tracing_context,
                "abort_signal": self.abort_signal, "abort": abort_for(slot),
                "report_violation": self._reporter(slot), "writer": Writer(self.emit, self.run_id, slot.id, None),
            }  # fmt: skip
        given = {**common, "retry_count": self.retry_count, **values}
        if kind is ProcessOutputStreamArgs:
            given["writer"] = Writer(self.emit, self.run_id, slot.id, slot)
        if not writer:
            given["writer"] = None
        return kind(**given)

    @staticmethod
    def _reporter(slot: Slot) -> Callable[..., None]:
        def report(message: str, detail: Any = None) -> None:
            slot.pending.append(ProcessorViolation(slot.id, message, detail))

        return report

    async def call(self, slot: Slot, hook: str, args: Any) -> Any:
        """Call a hook and judge how it ended. Raises TripWire, ContractError, ProcessorFailed, AuditUnavailable."""
        return await self.settle(slot, hook, await self.attempt(slot, hook, args), args)

    async def attempt(self, slot: Slot, hook: str, args: Any) -> Any:
        """Call a hook; what it raises comes back wrapped in `Raised`. Nothing is judged or recorded yet."""
        slot.stats.evaluated += 1
        start = time.perf_counter()
        try:
            result = slot.hooks[hook](args)
            if hook in slot.async_hooks or inspect.isawaitable(result):
                result = await result
        except Exception as error:
            return Raised(error)
        finally:
            slot.last_seconds = time.perf_counter() - start
            slot.stats.seconds += slot.last_seconds
        return result

    async def settle(self, slot: Slot, hook: str, result: Any, args: Any) -> Any:
        """Judge and record what `attempt` gave; returns the hook's result."""
        if result.__class__ is Raised:
            return await self.judge(slot, hook, result.error, args)
        if slot.pending:
            await self.flush(slot, hook, args)
        return result

    async def judge(self, slot: Slot, hook: str, error: Exception, args: Any) -> _Unchanged:
        """What an exception in a hook means. Returns UNCHANGED only where the admin lets content pass."""
        if error in slot.pending:
            slot.pending.remove(error)
        if slot.pending:
            await self.flush(slot, hook, args)
        if isinstance(error, TripWire):
            error.processor_id = error.processor_id or slot.id
            await self.record_abort(slot, hook, error, args)
            raise error
        if isinstance(error, AuditUnavailable | RunCancelled):
            raise error
        slot.stats.errors += 1
        words = f"{type(error).__name__} in {hook}"
        violation = ProcessorViolation(slot.id, words, {"error": type(error).__name__})
        if isinstance(error, ContractError) or slot.entry.on_error == "block":
            await self.record(slot, hook, violation, "error", "block", args)
            if isinstance(error, ContractError):
                raise error
            raise ProcessorFailed(slot.id, hook, error) from error
        await self.record(slot, hook, violation, "not_scanned", "allow", args)
        return UNCHANGED

    async def record_abort(self, slot: Slot, hook: str, trip: TripWire, args: Any) -> None:
        """The violation that every abort reports."""
        slot.stats.violations += 1
        action = "retry" if trip.retry and hook != "process_input" and self.may_retry() else "block"
        violation = ProcessorViolation(slot.id, trip.reason, trip.metadata)
        await self.notify(slot, violation)
        await self.record(slot, hook, violation, "violation", action, args)

    async def flush(self, slot: Slot, hook: str, args: Any) -> None:
        """Record what a hook reported without stopping, before its result is used. A swallowed abort is raised again."""
        while slot.pending:
            violation = slot.pending.pop(0)
            if isinstance(violation, TripWire):
                await self.record_abort(slot, hook, violation, args)
                raise violation
            slot.stats.violations += 1
            detail = violation.detail
            action = str(detail.get("strategy", "warn")) if isinstance(detail, dict) else "warn"
            await self.notify(slot, violation)
            await self.record(slot, hook, violation, "violation", action, args)

    async def notify(self, slot: Slot, violation: ProcessorViolation) -> None:
        """The processor's own callback; what it raises never disturbs the run."""
        callback = getattr(slot.processor, "on_violation", None)
        if callback is None:
            return
        try:
            answer = callback(violation)
            if inspect.isawaitable(answer):
                await answer
        except Exception:
            log.warning("on_violation of processor %r failed", slot.id, exc_info=True)

    async def record(
        self, slot: Slot, hook: str, violation: ProcessorViolation, outcome: Outcome, action: str, args: Any
    ) -> None:
        """Write one row. Raises AuditUnavailable when that fails: the run may not go on unrecorded."""
        if self.audit is None:
            return
        entry = AuditEntry(
            outcome, action, violation, hook, self.run_id, slot.index, self.step_number, self.retry_count,
            getattr(args, "tool_name", None), getattr(args, "tool_call_id", None), self.delivered_chars,
            duration_ms=None if hook == "process_output_stream" else round(slot.last_seconds * 1000, 3), origin=slot.entry.origin,
        )  # fmt: skip
        with self._hold():
            try:
                await self.audit.record(entry)
            except Exception as error:
                raise AuditUnavailable(
                    "The violation could not be recorded in the audit trail, so the run was stopped. Try again later."
                ) from error
