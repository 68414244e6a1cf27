"""The ways a run ends. Each stores the turn, once, before the client learns of it."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

import jsonschema

from agents.loop.records import (
    blocked_messages,
    cancelled_messages,
    failed_messages,
    own_messages,
    public_error,
    waiting_messages,
)
from agents.loop.result import Status
from processors.engine.chunks import Chunk
from processors.engine.errors import StructuredOutputInvalid
from processors.engine.hooks import OutputResult
from processors.engine.messages import Message
from processors.engine.ports import Turn
from processors.engine.tripwire import TripWire, Tripwire

if TYPE_CHECKING:
    from agents.loop.run import Run

log = logging.getLogger("gatehouse.loop")


class Endings:
    """How one run ends."""

    def __init__(self, run: Run) -> None:
        self.run = run

    # ── good ends ──────────────────────────────────────────────────────────
    async def completed(self) -> AsyncGenerator[Chunk, None]:
        """process_output_result, then `finish` through the chain, storage, and `finish` to the client."""
        run = self.run
        last = run.steps[-1]
        text = "".join(step.text for step in run.steps)
        await run.chain.output_result(OutputResult(text, run.usage, last.finish_reason, run.steps))
        await run.chain.flush_late()
        async for chunk in run.drain():
            yield chunk
        self._read_edits()
        if run.schema is not None and not last.tool_calls:
            run.result.object = object_of(last.text, run.schema)
            yield Chunk("object-result", {"object": run.result.object}, run.run_id)
        payload = {
            "reason": last.finish_reason,
            "finishReason": last.finish_reason,
            "usage": run.usage.to_wire(),
        }
        finish = [chunk async for chunk in run.out(Chunk("finish", payload))]
        await self._end("completed", last.finish_reason)
        for chunk in finish:
            yield chunk

    def _read_edits(self) -> None:
        """The result says what the messages say after the last edit."""
        run = self.run
        for step, id in zip(run.steps, run.step_messages, strict=True):
            if id is not None:
                current = run.list.get(id)
                step.text = current.text if current is not None else ""

    async def paused(self) -> AsyncGenerator[Chunk, None]:
        """The run waits for a person."""
        run = self.run
        payload = {"reason": "suspended", "finishReason": "suspended", "usage": run.usage.to_wire()}
        finish = [chunk async for chunk in run.out(Chunk("finish", payload))]
        await self._end("waiting", "suspended")
        for chunk in finish:
            yield chunk

    # ── bad ends ───────────────────────────────────────────────────────────
    async def blocked(self, trip: TripWire) -> AsyncGenerator[Chunk, None]:
        """A processor refused. The trace is stored, then the client gets its one tripwire chunk."""
        run = self.run
        tripwire = Tripwire(trip.reason, trip.retry, trip.metadata, trip.processor_id or "")
        run.result.tripwire = tripwire
        input_refused = not run.replied and (run.attempt is None or not run.attempt.called)
        run.refuse()
        try:
            await self._end("blocked", "other", input_refused=input_refused)
        except Exception as error:
            async for chunk in self.failed(error):
                yield chunk
            return
        payload: dict[str, Any] = {
            "reason": trip.reason,
            "retry": trip.retry,
            "processorId": tripwire.processor_id,
        }
        if trip.metadata is not None:
            payload["metadata"] = trip.metadata
        yield Chunk("tripwire", payload, run.run_id)

    async def failed(self, error: Exception) -> AsyncGenerator[Chunk, None]:
        """Something went wrong. What the client is told holds no words of an exception that may quote the content."""
        run = self.run
        run.result.error = error
        if not run.stored:
            run.refuse()
            try:
                await self._end("failed", "error")
            except Exception as storing:
                log.error("The run %s could not be stored: %s", run.run_id, type(storing).__name__)
                run.result.error = error = storing
        run.result.status, run.result.finish_reason, run.result.tripwire = "failed", "error", None
        yield Chunk("error", {"error": public_error(error)}, run.run_id)

    async def cancelled(self) -> AsyncGenerator[Chunk, None]:
        """The caller stopped the run; what was shown is kept."""
        run = self.run
        if not run.stored:
            try:
                await self._end("cancelled", "aborted")
            except Exception as error:
                async for chunk in self.failed(error):
                    yield chunk
                return
        yield Chunk("abort", {"reason": run.signal.reason}, run.run_id)

    async def closed(self) -> None:
        """Nobody reads any more: as `cancelled`, without a word."""
        if self.run.stored:
            return
        try:
            await self._end("cancelled", "aborted")
        except Exception as error:
            log.error("The stopped run %s could not be stored: %s", self.run.run_id, type(error).__name__)

    # ── the turn ───────────────────────────────────────────────────────────
    async def _end(self, status: Status, reason: str, *, input_refused: bool = False) -> None:
        """Fill the result and store the turn."""
        run, result = self.run, self.run.result
        result.status, result.finish_reason, result.usage = status, reason, run.usage
        result.text = "".join(step.text for step in run.steps)
        result.reasoning_text = "".join(step.reasoning for step in run.steps)
        if status == "cancelled" and run.attempt is not None and not run.attempt.accepted:
            run.attempt.reply.end_block()
            run.usage = result.usage = run.usage + run.attempt.unpaid()
            result.text += run.attempt.reply.text
        if run.pending_data and status in ("completed", "waiting", "cancelled"):
            message = Message("assistant")
            message.content.parts.extend(run.pending_data)
            run.list.add(message, "response")
        result.messages = self._messages(status, input_refused)
        chain = getattr(run, "chain", None)
        result.stats = [
            {"id": slot.id, "index": slot.index, "evaluated": slot.stats.evaluated, "passed": slot.stats.passed,
             "violations": slot.stats.violations, "errors": slot.stats.errors, "seconds": slot.stats.seconds}
            for slot in (chain.slots if chain is not None else [])
        ]  # fmt: skip
        if run.call.memory is not None:
            with run.interruption.hold(check=False):
                await run.call.memory.save(self._turn(status, reason))
        run.stored = True

    def _messages(self, status: Status, input_refused: bool) -> list[Message]:
        run, result = self.run, self.run.result
        if not run.list.input and not hasattr(run, "chain"):
            run.list.add([message for message in run.given if message.role != "system"], "input")
        if status == "blocked" and result.tripwire is not None:
            return blocked_messages(run.list, result.tripwire, withhold_input=input_refused)
        if status == "failed" and result.error is not None:
            return failed_messages(run.list, result.error)
        if status == "waiting":
            return waiting_messages(run.list, passed=not run.chain.with_hook("process_output_result"))
        return cancelled_messages(run.list) if status == "cancelled" else own_messages(run.list)

    def _turn(self, status: Status, reason: str) -> Turn:
        result, tripwire = self.run.result, self.run.result.tripwire
        return Turn(
            self.run.run_id, status, result.messages, result.usage.to_wire(), reason,
            tripwire={"reason": tripwire.reason, "retry": tripwire.retry, "metadata": tripwire.metadata,
                      "processorId": tripwire.processor_id} if tripwire else None,
            error=public_error(result.error) if status == "failed" and result.error else None,
            snapshot=result.snapshot if status == "waiting" else None,
        )  # fmt: skip


def object_of(text: str, schema: dict[str, Any]) -> Any:
    """The object of a structured answer. Raises StructuredOutputInvalid."""
    try:
        value = json.loads(text)
        jsonschema.validate(value, schema)
    except jsonschema.ValidationError as error:
        place = ".".join(map(str, error.absolute_path)) or "the answer"
        raise StructuredOutputInvalid(
            f"The answer does not fit its schema at {place}: {error.message}"
        ) from error
    except ValueError as error:
        raise StructuredOutputInvalid("The answer does not fit its schema: it is no JSON.") from error
    return value
