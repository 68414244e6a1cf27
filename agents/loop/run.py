"""One run: the loop of the contract's section 1, driven by whoever reads its chunks.

Every ending (completed, blocked, failed, cancelled, waiting) goes through `_end`, which stores the turn once, before the
client learns of it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING, Any

from agents.loop.attempt import Attempt, Retry
from agents.loop.records import (
    blocked_messages,
    failed_messages,
    message_from_json,
    message_to_json,
    own_messages,
    step_from_json,
    step_to_json,
)  # fmt: skip
from agents.loop.result import RunResult, Status
from agents.loop.tool_phase import ToolPhase
from agents.loop.tools import ApprovalDecision
from processors.engine.chain import ChainRunner
from processors.engine.chunks import Chunk
from processors.engine.errors import RunCancelled
from processors.engine.hooks import OutputResult, RequestContext, StepResult, ToolCallInfo, Usage
from processors.engine.message_list import MessageList
from processors.engine.messages import Message, SystemMessage
from processors.engine.ports import AbortSignal, Turn
from processors.engine.processor import ChainEntry
from processors.engine.scope import RunScope
from processors.engine.slots import Slot, entries_of
from processors.engine.tripwire import TripWire, Tripwire

if TYPE_CHECKING:
    from agents.loop.agent import Agent, Call

DEFAULT_ERROR_RETRIES = 10
FEEDBACK = "Your previous answer was not accepted. Answer again and take this into account:"


class Run:
    """The state of one run. `result` is complete when `chunks` has ended."""

    def __init__(self, agent: Agent, messages: list[Message], call: Call) -> None:
        from agents.loop.agent import new_run_id

        self.agent, self.call, self.given = agent, call, messages
        self.run_id = call.run_id or new_run_id()
        self.signal = call.abort_signal or AbortSignal()
        self.context = call.request_context if call.request_context is not None else RequestContext()
        self.list = MessageList()
        self.outbox: deque[Chunk] = deque()
        self.wake = asyncio.Event()
        self.author_slots: deque[Slot | None] = deque()
        self.in_stream = False
        self.ready: list[Chunk] = []
        self.scope = RunScope(
            run_id=self.run_id, request_context=self.context, tracing_context=call.tracing_context,
            abort_signal=self.signal, audit=call.audit, emit=self._emit,
        )  # fmt: skip
        self.result = RunResult(self.run_id)
        self.steps: list[StepResult] = self.result.steps
        self.usage = Usage()
        self.step_number = 0
        self.reasons: list[str] = []
        self.step_messages: list[Message | None] = []
        self.replied = self.stored = self.input_refused = False
        self.pending_data: list[dict[str, Any]] = []
        self.attempt: Attempt | None = None
        self.waiting_task: asyncio.Task[Any] | None = None
        self.signal.on_abort(self._interrupt)
        self.chain = self._build_chain()
        self.retries_left = self._retry_limit()
        self.scope.may_retry = lambda: self.retries_left > 0
        self.systems: list[SystemMessage] = []

    # ── setting up ─────────────────────────────────────────────────────────
    def _build_chain(self) -> ChainRunner:
        agent, call = self.agent, self.call

        def chosen(name: str) -> list[ChainEntry]:
            given = getattr(call, name)
            return entries_of(given if given is not None else getattr(agent, name), self.context)

        error = chosen("error_processors")
        self.has_error_processors = bool(error)
        return ChainRunner(
            self.scope,
            {
                "input": [*agent.mandatory_input, *chosen("input_processors")],
                "output": [*chosen("output_processors"), *agent.mandatory_output],
                "error": error,
            },
            self.list,
        )

    def _retry_limit(self) -> int:
        for value in (self.call.max_processor_retries, self.agent.max_processor_retries):
            if value is not None:
                return value
        return DEFAULT_ERROR_RETRIES if self.has_error_processors else 0

    @property
    def max_steps(self) -> int:
        return self.call.max_steps if self.call.max_steps is not None else self.agent.max_steps

    def _interrupt(self) -> None:
        if self.waiting_task is not None:
            self.waiting_task.cancel()

    # ── data chunks from writers ───────────────────────────────────────────
    def _emit(self, chunk: Chunk, author: Slot | None) -> None:
        self.outbox.append(chunk)
        self.author_slots.append(author)
        self.wake.set()

    async def drain(self) -> AsyncIterator[Chunk]:
        """Send what writers emitted through the processors that asked for data parts, and on to the client."""
        while self.outbox:
            chunk, author = self.outbox.popleft(), self.author_slots.popleft()
            skip = author if self.in_stream else None
            for out in await self.chain.stream.push_data(chunk, skip):
                out.run_id = self.run_id
                self.keep_data(out)
                yield out

    def keep_data(self, chunk: Chunk) -> None:
        """A data part that is not transient becomes a part of the assistant's message."""
        if chunk.transient or not chunk.is_data:
            return
        part = {"type": chunk.type, "data": chunk.data}
        if self.attempt is not None and self.attempt.reply.message is not None:
            self.attempt.reply.part(part)
        elif self.attempt is not None or not self.list.response:
            self.pending_data.append(part)
        else:
            self.list.response[-1].content.parts.append(part)

    async def out(self, *chunks: Chunk) -> AsyncIterator[Chunk]:
        """Send chunks through the output chain; what comes out is noted and delivered."""
        for chunk in chunks:
            chunk.run_id = self.run_id
            self.in_stream = True
            try:
                passed = await self.chain.stream.push(chunk)
            finally:
                self.in_stream = False
            if self.outbox:
                self.in_stream = True
                async for data in self.drain():
                    yield data
                self.in_stream = False
            for piece in passed:
                piece.run_id = self.run_id
                yield piece

    # ── the run ────────────────────────────────────────────────────────────
    async def chunks(self) -> AsyncGenerator[Chunk, None]:
        """Everything the client gets, in order."""
        loop = self._loop()
        try:
            try:
                yield Chunk("start", {"agentId": self.agent.id}, self.run_id)
                async for chunk in loop:
                    yield chunk
            finally:
                await loop.aclose()
        except GeneratorExit:
            await self._close_quietly()
            raise
        except (asyncio.CancelledError, RunCancelled):
            if not self.signal.aborted:
                await self._close_quietly()
                raise
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
            await self._end("cancelled", "aborted")
            yield Chunk("abort", {"reason": self.signal.reason}, self.run_id)
        except TripWire as trip:
            async for chunk in self._blocked(trip):
                yield chunk
        except Exception as error:
            async for chunk in self._failed(error):
                yield chunk

    async def _close_quietly(self) -> None:
        if not self.stored:
            await self._end("cancelled", "aborted")

    async def _loop(self) -> AsyncGenerator[Chunk, None]:
        decisions: dict[str, ApprovalDecision] = {}
        if self.call.memory is not None:
            self.list.add(await self.call.memory.load(), "memory")
        if self.call.snapshot is not None:
            decisions = self.call.decisions
            self._restore(self.call.snapshot)
        else:
            await self._input()
        async for chunk in self.drain():
            yield chunk
        self.systems = list(self.list.system_messages)
        while True:
            if decisions:
                calls, step = self._waiting_calls(), self.steps[-1]
                async for chunk in self._run_tools(calls, step, decisions, {}):
                    yield chunk
                decisions = {}
                async for chunk in self.out(self._step_finish(step)):
                    yield chunk
                self.step_number += 1
                if not self._goes_on(step, len(calls)):
                    break
            async for chunk in self._step():
                yield chunk
            if self.stored:
                return
        async for chunk in self._complete():
            yield chunk

    async def _input(self) -> None:
        call = self.call
        instructions = call.instructions if call.instructions is not None else self.agent.instructions
        if instructions:
            self.list.add_system(instructions)
        systems = [call.system] if isinstance(call.system, str) else list(call.system or [])
        for text in systems:
            self.list.add_system(text, "user-provided")
        self.list.add(list(call.context or []), "context")
        for message in self.given:
            if message.role == "system":
                self.list.add_system(message.text, "user-provided")
            else:
                self.list.add(message, "input")
        await self.chain.input()

    def _check_stop(self) -> None:
        if self.signal.aborted:
            raise RunCancelled(self.signal.reason or "cancelled")

    async def _step(self) -> AsyncIterator[Chunk]:
        """One step with all its attempts; the last step includes the end of the run, which may still refuse it."""
        models = [self.agent.model, *self.agent.fallbacks]
        self.reasons = []
        while True:
            self._check_stop()
            budget = self.call.budget or self.agent.budget
            if budget is not None:
                budget.check(steps=len(self.steps), usage=self.usage)
            self.list.system_messages = [SystemMessage(s.text, s.tag) for s in self.systems]
            if self.reasons:
                self.list.add_system("\n".join([FEEDBACK, *self.reasons]), "processor-retry-feedback")
            attempt = self.attempt = Attempt(self, models[0])
            retry: Retry | None = None
            try:
                async for chunk in attempt.chunks():
                    yield chunk
                    if chunk.type == "text-delta":
                        self.scope.delivered_chars += len((chunk.payload or {}).get("text", ""))
                async for chunk in self._accepted(attempt, attempt.step_result()):
                    yield chunk
                return
            except TripWire as trip:
                self.usage += attempt.unpaid()
                if not (trip.retry and self.retries_left > 0):
                    raise
                self.reasons.append(trip.reason)
                retry = Retry(trip.reason, counted=True)
            except Retry as asked:
                self.usage += attempt.unpaid()
                retry = asked
                if asked.next_model:
                    models.pop(0)
            yield self._withdraw(attempt, retry)

    def _withdraw(self, attempt: Attempt, retry: Retry) -> Chunk:
        """Roll the attempt back to the step's start and tell the client."""
        message_id = attempt.reply.message.id if attempt.reply.message is not None else None
        self._refuse()
        self.pending_data = []
        self.scope.delivered_chars = 0
        if retry.counted:
            self.retries_left -= 1
            self.scope.retry_count += 1
            self.chain.stream.retries_changed()
        payload = {"stepNumber": self.step_number, "messageId": message_id, "reason": retry.reason}
        return Chunk("step-retry", payload, self.run_id)

    def _refuse(self) -> None:
        """Take the attempt back, also when it had been accepted and the end of the run refuses it."""
        attempt, self.attempt = self.attempt, None
        if attempt is None:
            return
        attempt.reply.withdraw()
        attempt.undo()
        if attempt.accepted:
            self.steps.pop()
            self.step_messages.pop()
            self.step_number -= 1

    async def _accepted(self, attempt: Attempt, step: StepResult) -> AsyncIterator[Chunk]:
        """The reply stands: run its tools, end the step, and the run if this was its last."""
        calls = [call for call in step.tool_calls if not call.provider_executed]
        ours = [call for call in calls if (tool := self.agent.tools.get(call.tool_name)) is None or tool.execute or
                (call.tool_name in attempt.tools and attempt.tools[call.tool_name].execute)]  # fmt: skip
        self.tools_now, self.active_now = attempt.tools, attempt.active_tools
        waiting = [c for c in ours if (t := attempt.tools.get(c.tool_name)) is not None and t.needs_approval(c.args)]
        direct = [call for call in ours if call not in waiting]
        async for chunk in self._run_tools(direct, step, {}, attempt.reply.invalid):
            yield chunk
        self.usage += attempt.unpaid()
        self.steps.append(step)
        self.step_messages.append(attempt.reply.message)
        attempt.accepted = True
        self.step_number += 1
        if waiting:
            async for chunk in self._pause(waiting):
                yield chunk
            return
        async for chunk in self.out(self._step_finish(step)):
            yield chunk
        if not self._goes_on(step, len(direct)):
            async for chunk in self._complete():
                yield chunk
            return
        self.attempt = None
        self.replied = True
        self.scope.delivered_chars = 0

    def _step_finish(self, step: StepResult) -> Chunk:
        payload = {"stepNumber": step.step_number, "reason": step.finish_reason, "usage": step.usage.to_wire()}
        return Chunk("step-finish", payload, self.run_id)

    def _goes_on(self, step: StepResult, ran: int) -> bool:
        if not ran or len(self.steps) >= self.max_steps:
            return False
        if len([c for c in step.tool_calls if not c.provider_executed]) > ran:
            return False
        return not (self.call.stop_when is not None and self.call.stop_when(self.steps))

    async def _run_tools(
        self, calls: list[ToolCallInfo], step: StepResult, decisions: dict[str, ApprovalDecision], invalid: dict[str, str]
    ) -> AsyncIterator[Chunk]:
        if not calls:
            return
        self._check_stop()
        phase = ToolPhase(self.chain, self.scope, self.tools_now, self.active_now, deque(), self.wake)
        phase.outbox = self.outbox
        outcomes = phase.run(calls, invalid, decisions)
        try:
            while True:
                self.waiting_task = asyncio.current_task()
                try:
                    item = await anext(outcomes, None)
                finally:
                    self.waiting_task = None
                if item is None:
                    break
                if isinstance(item, Chunk):
                    self.outbox.appendleft(item)
                    async for data in self.drain():
                        yield data
                    continue
                async for data in self.drain():
                    yield data
                call, outcome = item
                made = await phase.settle(call, outcome, step, [*self.steps, step])
                async for data in self.drain():
                    yield data
                async for chunk in self.out(made):
                    if chunk.type in ("tool-result", "tool-error"):
                        phase.note(call, chunk, step)
                    yield chunk
        finally:
            await outcomes.aclose()  # type: ignore[attr-defined]

    # ── pause and resume ───────────────────────────────────────────────────
    async def _pause(self, waiting: list[ToolCallInfo]) -> AsyncIterator[Chunk]:
        for call in waiting:
            payload = {"toolCallId": call.tool_call_id, "toolName": call.tool_name, "args": call.args}
            async for chunk in self.out(Chunk("tool-call-approval", payload)):
                yield chunk
        step_number = self.step_number - 1
        self.result.snapshot = {
            "run_id": self.run_id, "step_number": step_number, "retry_count": self.scope.retry_count,
            "retries_left": self.retries_left, "usage": self.usage.to_wire(),
            "systems": [[s.text, s.tag] for s in self.systems],
            "messages": [[message_to_json(m), self.list.source_of(m.id)]
                         for m in self.list.of_source("input", "response", "context")],
            "steps": [step_to_json(step) for step in self.steps], "waiting": [c.tool_call_id for c in waiting],
        }  # fmt: skip
        await self._end("waiting", "suspended")
        yield Chunk("finish", {"reason": "suspended", "usage": self.usage.to_wire()}, self.run_id)

    def _restore(self, snapshot: dict[str, Any]) -> None:
        self.list.remove_by_ids([value["id"] for value, _ in snapshot["messages"]])
        for value, source in snapshot["messages"]:
            self.list.add(message_from_json(value), source)
        self.list.system_messages = [SystemMessage(text, tag) for text, tag in snapshot["systems"]]
        self.steps.extend(step_from_json(value) for value in snapshot["steps"])
        self.step_messages.extend(None for _ in self.steps)
        self.step_number, self.retries_left = snapshot["step_number"], snapshot["retries_left"]
        self.scope.retry_count, self.usage = snapshot["retry_count"], Usage.from_wire(snapshot["usage"])
        self.replied = True
        self.tools_now, self.active_now = self.agent.tools, self.call.active_tools
        self.chain.stream.retries_changed()

    def _waiting_calls(self) -> list[ToolCallInfo]:
        ids = set((self.call.snapshot or {}).get("waiting", []))
        return [call for call in self.steps[-1].tool_calls if call.tool_call_id in ids]

    # ── endings ────────────────────────────────────────────────────────────
    async def _complete(self) -> AsyncIterator[Chunk]:
        last = self.steps[-1] if self.steps else None
        reason = last.finish_reason if last is not None else "stop"
        text = "".join(step.text for step in self.steps)
        await self.chain.output_result(OutputResult(text, self.usage, reason, self.steps))
        async for chunk in self.drain():
            yield chunk
        self._read_edits()
        finish = [c async for c in self.out(Chunk("finish", {"reason": reason, "usage": self.usage.to_wire()}))]
        await self._end("completed", reason)
        for chunk in finish:
            yield chunk

    def _read_edits(self) -> None:
        """The result says what the messages say after the last edit."""
        for step, message in zip(self.steps, self.step_messages, strict=True):
            if message is not None:
                current = self.list.get(message.id)
                step.text = current.text if current is not None else ""

    async def _blocked(self, trip: TripWire) -> AsyncIterator[Chunk]:
        tripwire = Tripwire(trip.reason, trip.retry, trip.metadata, trip.processor_id or "")
        self.result.tripwire = tripwire
        self.input_refused = not self.replied and (self.attempt is None or not self.attempt.called)
        self._refuse()
        try:
            await self._end("blocked", "other")
        except Exception as error:
            async for chunk in self._failed(error):
                yield chunk
            return
        payload: dict[str, Any] = {"reason": trip.reason, "retry": trip.retry, "processorId": tripwire.processor_id}
        if trip.metadata is not None:
            payload["metadata"] = trip.metadata
        yield Chunk("tripwire", payload, self.run_id)

    async def _failed(self, error: Exception) -> AsyncIterator[Chunk]:
        self.result.error = error
        if not self.stored:
            self._refuse()
            try:
                await self._end("failed", "error")
            except Exception as storing:
                self.result.error = storing
                error = storing
        self.result.status, self.result.finish_reason = "failed", "error"
        body = {"name": type(error).__name__, "message": str(error), "code": getattr(error, "code", "internal_error"),
                "retryable": bool(getattr(error, "retryable", False))}  # fmt: skip
        yield Chunk("error", {"error": body}, self.run_id)

    async def _end(self, status: Status, reason: str) -> None:
        """Fill the result and store the turn, once."""
        result = self.result
        result.status, result.finish_reason, result.usage = status, reason, self.usage
        result.text = "".join(step.text for step in self.steps)
        result.reasoning_text = "".join(step.reasoning for step in self.steps)
        if status == "cancelled" and self.attempt is not None and not self.attempt.accepted:
            self.attempt.reply.end_block()
            result.text += self.attempt.reply.text
        if self.pending_data and status in ("completed", "waiting", "cancelled"):
            self.list.add(Message("assistant"), "response")
            self.list.response[-1].content.parts.extend(self.pending_data)
        result.messages = self._messages(status)
        result.stats = [
            {"id": slot.id, "index": slot.index, "evaluated": slot.stats.evaluated, "passed": slot.stats.passed,
             "violations": slot.stats.violations, "errors": slot.stats.errors, "seconds": slot.stats.seconds}
            for slot in self.chain.slots
        ]  # fmt: skip
        self.stored = True
        if self.call.memory is not None:
            await self.call.memory.save(self._turn(status, reason))

    def _messages(self, status: Status) -> list[Message]:
        if status == "blocked" and self.result.tripwire is not None:
            return blocked_messages(self.list, self.result.tripwire, withhold_input=self.input_refused)
        if status == "failed" and self.result.error is not None:
            return failed_messages(self.list, self.result.error)
        return own_messages(self.list)

    def _turn(self, status: Status, reason: str) -> Turn:
        tripwire, error = self.result.tripwire, self.result.error
        return Turn(
            self.run_id, status, self.result.messages, self.usage.to_wire(), reason,
            tripwire={"reason": tripwire.reason, "retry": tripwire.retry, "metadata": tripwire.metadata,
                      "processorId": tripwire.processor_id} if tripwire else None,
            error={"name": type(error).__name__, "message": str(error)} if error else None,
            snapshot=self.result.snapshot,
        )  # fmt: skip
