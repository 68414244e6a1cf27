"""The loop: input, then step after step with all its attempts and tools, until nothing is left to do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

from agents.loop.attempt import Attempt, Retry
from agents.loop.endings import Endings
from agents.loop.pausing import restore, snapshot_of
from agents.loop.tool_phase import ToolOutcome, ToolPhase
from agents.loop.tools import ApprovalDecision
from processors.engine.chunks import Chunk
from processors.engine.hooks import StepResult, ToolCallInfo
from processors.engine.messages import SystemMessage
from processors.engine.prompt import excluded
from processors.engine.tripwire import TripWire

if TYPE_CHECKING:
    from agents.loop.run import Run

FEEDBACK = "Your previous answer was not accepted. Answer again and take this into account:"


class Steps:
    """Drives one run. Every generator here is closed by the one that reads it."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.reasons: list[str] = []

    async def chunks(self) -> AsyncGenerator[Chunk, None]:
        """All chunks of the run but `start` and those of a bad end. Raises what ends it badly."""
        run = self.run
        run.prepare()
        if run.call.memory is not None:
            remembered = await run.call.memory.load()
            run.list.add([message for message in remembered if not excluded(message)], "memory")
        if run.call.snapshot is not None:
            restore(run, run.call.snapshot)
        else:
            await self._input()
        async for chunk in run.drain():
            yield chunk
        run.systems = list(run.list.system_messages)
        if run.call.snapshot is not None:
            async with aclosing(self._resumed()) as resumed:
                async for chunk in resumed:
                    yield chunk
        while not run.finished:
            async with aclosing(self._step()) as step:
                async for chunk in step:
                    yield chunk

    async def _input(self) -> None:
        run, call = self.run, self.run.call
        instructions = call.instructions if call.instructions is not None else run.agent.instructions
        if instructions:
            run.list.add_system(instructions)
        for text in [call.system] if isinstance(call.system, str) else list(call.system or []):
            run.list.add_system(text, "user-provided")
        run.list.add(list(call.context or []), "context")
        for message in run.given:
            if message.role == "system":
                run.list.add_system(message.text, "user-provided")
            else:
                run.list.remove_by_ids([message.id])
                run.list.add(message, "input")
        await run.chain.input()

    # ── a step ─────────────────────────────────────────────────────────────
    async def _step(self) -> AsyncGenerator[Chunk, None]:
        """One step with all its attempts; the last step includes the end of the run, which may still refuse it."""
        run = self.run
        self.reasons = []
        while True:
            run.check()
            run.list.system_messages = [SystemMessage(s.text, s.tag) for s in run.systems]
            if self.reasons:
                run.list.add_system("\n".join([FEEDBACK, *self.reasons]), "processor-retry-feedback")
            attempt = run.attempt = Attempt(run, run.model)
            try:
                async with aclosing(attempt.chunks()) as chunks:
                    async for chunk in chunks:
                        yield chunk
                async with aclosing(self._accepted(attempt)) as chunks:
                    async for chunk in chunks:
                        yield chunk
                return
            except TripWire as trip:
                run.usage += attempt.unpaid()
                if not (trip.retry and run.retries_left > 0):
                    raise
                retry = Retry(trip.reason, counted=True, feedback=True)
            except Retry as asked:
                run.usage += attempt.unpaid()
                retry = asked
            yield self._withdraw(attempt, retry)

    def _withdraw(self, attempt: Attempt, retry: Retry) -> Chunk:
        """Roll the attempt back to the step's start and tell the client."""
        run = self.run
        run.refuse()
        attempt.roll_back()
        run.scope.delivered_chars = 0
        if retry.feedback:
            self.reasons.append(retry.reason)
        if retry.next_model:
            run.model_at += 1
        if retry.counted:
            run.retries_left -= 1
            run.scope.retry_count += 1
            run.chain.stream.retries_changed()
        payload = {"stepNumber": run.step_number, "messageId": attempt.reply.id, "reason": retry.reason}
        return Chunk("step-retry", payload, run.run_id)

    async def _accepted(self, attempt: Attempt) -> AsyncGenerator[Chunk, None]:
        """The reply stands: run its tools, end the step, and the run if this was its last."""
        run, step = self.run, attempt.step_result()
        phase = ToolPhase(run.chain, run.scope, attempt.tools, attempt.active_tools, run.wake)
        direct, waiting, theirs = phase.sorted(step.tool_calls, attempt.reply.invalid)
        async with aclosing(self._run_tools(phase, direct, step, attempt.reply.invalid)) as chunks:
            async for chunk in chunks:
                yield chunk
        run.usage += attempt.unpaid()
        run.steps.append(step)
        run.step_messages.append(attempt.reply.message.id if attempt.reply.message is not None else None)
        run.schema = attempt.schema
        attempt.accepted = True
        run.step_number += 1
        ended = self._paused(waiting) if waiting else self._step_ended(step, len(direct), len(theirs))
        async with aclosing(ended):
            async for chunk in ended:
                yield chunk

    async def _step_ended(self, step: StepResult, ran: int, theirs: int) -> AsyncGenerator[Chunk, None]:
        """The step's finish; then the run goes on, or ends."""
        run = self.run
        payload = {
            "stepNumber": step.step_number,
            "reason": step.finish_reason,
            "finishReason": step.finish_reason,
            "usage": step.usage.to_wire(),
        }
        async for chunk in run.out(Chunk("step-finish", payload)):
            yield chunk
        if self._goes_on(ran, theirs):
            run.attempt, run.replied, run.repeatable = None, True, True
            run.scope.delivered_chars = 0
            return
        async with aclosing(Endings(run).completed()) as chunks:
            async for chunk in chunks:
                yield chunk
        run.finished = True

    def _goes_on(self, ran: int, theirs: int) -> bool:
        run = self.run
        if not ran or theirs or len(run.steps) >= run.max_steps:
            return False
        return not (run.call.stop_when is not None and run.call.stop_when(run.steps))

    # ── tools ──────────────────────────────────────────────────────────────
    async def _run_tools(
        self, phase: ToolPhase, calls: list[ToolCallInfo], step: StepResult, invalid: dict[str, str],
        ready: dict[str, ToolOutcome] | None = None,
    ) -> AsyncGenerator[Chunk, None]:  # fmt: skip
        """All calls side by side; what tools emit comes as they emit it, the results come in call order."""
        run = self.run
        if not calls:
            return
        run.interruption.check()
        outcomes = phase.start(calls, invalid, ready or {})
        try:
            for call, task in zip(calls, outcomes, strict=True):
                while isinstance(task, asyncio.Task) and not task.done():
                    run.wake.clear()
                    async for data in run.drain():
                        yield data
                    if not task.done():
                        await run.wake.wait()
                made = await phase.settle(call, task, step, [*run.steps, step])
                async for data in run.drain():
                    yield data
                shown = False
                async for chunk in run.out(made):
                    shown = phase.note(call, chunk, step) or shown
                    yield chunk
                if not shown:
                    phase.note_withheld(call, step)
        finally:
            await phase.stop(outcomes)

    # ── pause and resume ───────────────────────────────────────────────────
    async def _paused(self, waiting: list[ToolCallInfo]) -> AsyncGenerator[Chunk, None]:
        run = self.run
        for call in waiting:
            payload = {"toolCallId": call.tool_call_id, "toolName": call.tool_name, "args": call.args}
            async for chunk in run.out(Chunk("tool-call-approval", payload)):
                yield chunk
        run.result.snapshot = snapshot_of(run, waiting)
        async with aclosing(Endings(run).paused()) as chunks:
            async for chunk in chunks:
                yield chunk
        run.finished = True

    async def _resumed(self) -> AsyncGenerator[Chunk, None]:
        """The rest of the step that waited: decided calls are run or declined, then the step ends."""
        run, step = self.run, self.run.steps[-1]
        run.attempt = Attempt.accepted_before(run, run.step_messages[-1])
        run.repeatable = False
        phase = ToolPhase(run.chain, run.scope, run.agent.tools, run.call.active_tools, run.wake)
        waiting = set((run.call.snapshot or {})["waiting"])
        calls = [call for call in step.tool_calls if call.tool_call_id in waiting]
        ready: dict[str, ToolOutcome] = {}
        for call in calls:
            decision = run.call.decisions[call.tool_call_id]
            if not decision.approved:
                ready[call.tool_call_id] = phase.declined(decision)
            elif decision.args is not None:
                async with aclosing(self._edited(phase, call, decision, ready)) as chunks:
                    async for chunk in chunks:
                        yield chunk
        async with aclosing(self._run_tools(phase, calls, step, {}, ready)) as chunks:
            async for chunk in chunks:
                yield chunk
        theirs = len(phase.sorted(step.tool_calls, {})[2])
        async with aclosing(self._step_ended(step, len(calls), theirs)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def _edited(
        self, phase: ToolPhase, call: ToolCallInfo, decision: ApprovalDecision, ready: dict[str, ToolOutcome]
    ) -> AsyncGenerator[Chunk, None]:
        """Arguments that a person has changed pass the guards like those of the model."""
        payload = {"toolCallId": call.tool_call_id, "toolName": call.tool_name, "args": decision.args}
        passed = False
        async for chunk in self.run.out(Chunk("tool-call", payload)):
            if chunk.type == "tool-call" and (chunk.payload or {}).get("toolCallId") == call.tool_call_id:
                passed = True
                phase.change_args(call, (chunk.payload or {}).get("args"))
                if (refused := (chunk.payload or {}).get("refused")) is not None:
                    ready[call.tool_call_id] = ToolOutcome(error=str(refused), denied=True)
            yield chunk
        if not passed:
            ready[call.tool_call_id] = ToolOutcome(
                error="A guardrail withheld the changed call.", denied=True
            )
