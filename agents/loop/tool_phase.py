"""The tools of one accepted step: checked, run side by side, their results screened in call order."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

from agents.loop.tools import ApprovalDecision, Tool, ToolContext
from processors.engine.chain import ChainRunner
from processors.engine.chunks import Chunk
from processors.engine.errors import GatehouseError
from processors.engine.hooks import StepResult, ToolCallInfo, ToolResultInfo
from processors.engine.scope import RunScope, Writer

log = logging.getLogger("gatehouse.loop")


class ToolOutcome:
    """What a call came to: a value, or an error text for the model."""

    __slots__ = ("error", "value")

    def __init__(self, value: Any = None, error: str | None = None) -> None:
        self.value, self.error = value, error


class ToolPhase:
    """Runs the calls of a step. Chunks that tools emit meanwhile come out of `run` as they arrive."""

    def __init__(
        self, chain: ChainRunner, scope: RunScope, tools: dict[str, Tool], active: list[str] | None,
        outbox: deque[Chunk], wake: asyncio.Event,
    ) -> None:  # fmt: skip
        self.chain, self.scope, self.tools, self.active = chain, scope, tools, active
        self.outbox, self.wake = outbox, wake
        self.ran = 0

    def tool_for(self, call: ToolCallInfo) -> Tool | None:
        tool = self.tools.get(call.tool_name)
        hidden = self.active is not None and call.tool_name not in self.active
        return None if hidden else tool

    def complaint(self, call: ToolCallInfo, tool: Tool | None, invalid: str | None) -> str | None:
        """Why a call cannot be run, in words for the model."""
        if tool is None:
            names = [name for name in self.tools if self.active is None or name in self.active]
            known = ", ".join(sorted(names)) or "none"
            return f"There is no tool {call.tool_name!r}. Available tools: {known}."
        if invalid is not None:
            return f"The arguments of {call.tool_name} are no JSON object: {invalid[:200]}"
        return tool.complaint(call.args)

    async def execute(self, call: ToolCallInfo, tool: Tool) -> ToolOutcome:
        """Run one tool. Its exceptions become the tool's error; a broken contract ends the run."""
        context = ToolContext(
            self.scope.run_id, call.tool_call_id, self.scope.request_context, self.scope.abort_signal,
            Writer(self.scope.emit, self.scope.run_id, call.tool_name, None),
        )  # fmt: skip
        try:
            async with asyncio.timeout(tool.timeout):
                value = tool.execute(call.args, context) if tool.execute else None
                if inspect.isawaitable(value):
                    value = await value
        except TimeoutError:
            return ToolOutcome(error=f"{call.tool_name} took longer than {tool.timeout:g} s.")
        except GatehouseError as error:
            if error.code == "processor_contract":
                raise
            return ToolOutcome(error=str(error))
        except Exception as error:
            log.info("Tool %r failed: %s", call.tool_name, type(error).__name__)
            return ToolOutcome(error=str(error) or type(error).__name__)
        return ToolOutcome(value)

    async def run(
        self, calls: list[ToolCallInfo], invalid: dict[str, str], decisions: dict[str, ApprovalDecision]
    ) -> AsyncIterator[Chunk | tuple[ToolCallInfo, ToolOutcome]]:
        """All calls side by side: yields what tools emit, then the outcomes in call order."""
        tasks: list[asyncio.Task[ToolOutcome] | ToolOutcome] = []
        for call in calls:
            decision = decisions.get(call.tool_call_id)
            if decision is not None and not decision.approved:
                reason = decision.reason or "no reason given"
                tasks.append(ToolOutcome(error=f"A person declined this call: {reason}"))
                continue
            if decision is not None and decision.args is not None:
                call.args = decision.args
                self._update_args(call)
            tool = self.tool_for(call)
            complaint = self.complaint(call, tool, invalid.get(call.tool_call_id))
            if complaint is not None or tool is None:
                tasks.append(ToolOutcome(error=complaint))
            else:
                task = asyncio.ensure_future(self.execute(call, tool))
                task.add_done_callback(lambda _: self.wake.set())
                tasks.append(task)
        running = [task for task in tasks if isinstance(task, asyncio.Future)]
        try:
            while any(not task.done() for task in running):
                await self.wake.wait()
                self.wake.clear()
                while self.outbox:
                    yield self.outbox.popleft()
            for call, ended in zip(calls, tasks, strict=True):
                yield call, ended if isinstance(ended, ToolOutcome) else ended.result()
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def _update_args(self, call: ToolCallInfo) -> None:
        part = self.chain.list.find_tool_invocation(call.tool_call_id)
        if part is not None:
            part["toolInvocation"] = {**part["toolInvocation"], "args": call.args}

    async def settle(self, call: ToolCallInfo, outcome: ToolOutcome, step: StepResult, steps: list[StepResult]) -> Chunk:
        """Let the chain screen an outcome, put it into the list, and make its chunk."""
        self.ran += 1
        names = {"toolCallId": call.tool_call_id, "toolName": call.tool_name, "args": call.args}
        if outcome.error is not None:
            part = self.chain.list.find_tool_invocation(call.tool_call_id)
            if part is not None:
                part["toolInvocation"] = {**part["toolInvocation"], "state": "error", "errorText": outcome.error}
            return Chunk("tool-error", {**names, "error": outcome.error}, self.scope.run_id)
        result = await self.screen(call, outcome.value, step.step_number, steps)
        return Chunk("tool-result", {**names, "result": result}, self.scope.run_id)

    async def screen(self, call: ToolCallInfo, value: Any, step_number: int, steps: list[StepResult]) -> Any:
        """process_tool_result; the value it leaves is what the list holds."""
        values = {
            "step_number": step_number, "tool_name": call.tool_name, "tool_call_id": call.tool_call_id,
            "args": call.args, "provider_executed": call.provider_executed, "steps": steps,
        }  # fmt: skip
        result = await self.chain.tool_result(values, value)
        self.chain.list.update_tool_invocation(tool_call_id=call.tool_call_id, result=result)
        return result

    def note(self, call: ToolCallInfo, chunk: Chunk, step: StepResult) -> None:
        """Note a result chunk as the stream chain left it: that is what is stored and what the model sees."""
        payload = chunk.payload or {}
        failed = chunk.type == "tool-error"
        value = payload.get("error") if failed else payload.get("result")
        part = self.chain.list.find_tool_invocation(call.tool_call_id)
        if part is not None:
            if failed:
                part["toolInvocation"] = {**part["toolInvocation"], "state": "error", "errorText": str(value)}
            else:
                part["toolInvocation"] = {**part["toolInvocation"], "state": "result", "result": value}
        step.tool_results.append(
            ToolResultInfo(call.tool_call_id, call.tool_name, call.args, value, call.provider_executed, failed)
        )
