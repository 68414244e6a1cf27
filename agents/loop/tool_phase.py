"""The tools of one accepted step: checked, run side by side, their results screened in call order."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Sequence
from typing import Any, TypeAlias

from agents.loop.reply import RefusedCall
from agents.loop.tools import ApprovalDecision, Tool, ToolContext
from processors.engine.chain import ChainRunner
from processors.engine.chunks import Chunk
from processors.engine.errors import ContractError
from processors.engine.hooks import StepResult, ToolCallInfo, ToolResultInfo
from processors.engine.scope import RunScope, Writer

log = logging.getLogger("gatehouse.loop")


class ToolOutcome:
    """What a call came to: a value, or an error text for the model. denied: a person declined the call."""

    __slots__ = ("denied", "error", "value")

    def __init__(self, value: Any = None, error: str | None = None, *, denied: bool = False) -> None:
        self.value, self.error, self.denied = value, error, denied


Outcome: TypeAlias = asyncio.Task[ToolOutcome] | ToolOutcome


class ToolPhase:
    """The tools that one step may use. wake: set when a tool has ended."""

    def __init__(
        self,
        chain: ChainRunner,
        scope: RunScope,
        tools: dict[str, Tool],
        active: list[str] | None,
        wake: asyncio.Event,
    ) -> None:
        self.chain, self.scope, self.tools, self.active, self.wake = chain, scope, tools, active, wake

    def tool_for(self, call: ToolCallInfo) -> Tool | None:
        hidden = self.active is not None and call.tool_name not in self.active
        return None if hidden else self.tools.get(call.tool_name)

    def sorted(
        self, calls: Sequence[ToolCallInfo], invalid: dict[str, str]
    ) -> tuple[list[ToolCallInfo], list[ToolCallInfo], list[ToolCallInfo]]:
        """The calls that run now, those that wait for a person, and those that are the client's."""
        direct: list[ToolCallInfo] = []
        waiting: list[ToolCallInfo] = []
        theirs: list[ToolCallInfo] = []
        for call in calls:
            if call.provider_executed:
                continue
            tool = self.tool_for(call)
            if tool is None or self.complaint(call, tool, invalid.get(call.tool_call_id)) is not None:
                direct.append(call)
            elif tool.execute is None:
                theirs.append(call)
            else:
                (waiting if tool.needs_approval(call.args) else direct).append(call)
        return direct, waiting, theirs

    def complaint(self, call: ToolCallInfo, tool: Tool | None, invalid: str | None) -> str | None:
        """Why a call cannot be run, in words for the model."""
        if tool is None:
            names = [name for name in self.tools if self.active is None or name in self.active]
            known = ", ".join(sorted(names)) or "none"
            return f"There is no tool {call.tool_name!r}. Available tools: {known}."
        if isinstance(invalid, RefusedCall):
            return str(invalid)
        if invalid is not None and not call.args:
            return f"The arguments of {call.tool_name} are no JSON object: {invalid[:200]}"
        return tool.complaint(call.args)

    def start(
        self, calls: Sequence[ToolCallInfo], invalid: dict[str, str], ready: dict[str, ToolOutcome]
    ) -> list[Outcome]:
        """Begin all calls that can be run; the others have their outcome already."""
        outcomes: list[Outcome] = []
        for call in calls:
            tool = self.tool_for(call)
            if call.tool_call_id in ready:
                outcomes.append(ready[call.tool_call_id])
                continue
            complaint = self.complaint(call, tool, invalid.get(call.tool_call_id))
            if complaint is not None or tool is None:
                outcomes.append(ToolOutcome(error=complaint))
                continue
            task = asyncio.create_task(self._execute(call, tool), name=f"tool {call.tool_name}")
            task.add_done_callback(lambda _: self.wake.set())
            outcomes.append(task)
        return outcomes

    async def stop(self, outcomes: Sequence[Outcome]) -> None:
        """End whatever still runs, and wait until it has ended."""
        running = [task for task in outcomes if isinstance(task, asyncio.Task)]
        for task in running:
            task.cancel()
        if running:
            await asyncio.gather(*running, return_exceptions=True)

    async def _execute(self, call: ToolCallInfo, tool: Tool) -> ToolOutcome:
        """Run one tool. Its exceptions become the tool's error; a broken contract ends the run."""
        context = ToolContext(
            self.scope.run_id, call.tool_call_id, self.scope.request_context, self.scope.abort_signal,
            Writer(self.scope.emit, self.scope.run_id, call.tool_name, None),
        )  # fmt: skip
        # A guardrail may show people redacted arguments and leave the tool the original ones (`for_tool`).
        args = getattr(call.args, "for_tool", call.args)
        try:
            async with asyncio.timeout(tool.timeout) as limit:
                value = tool.execute(args, context) if tool.execute else None
                if inspect.isawaitable(value):
                    value = await value
        except ContractError:
            raise
        except Exception as error:
            if isinstance(error, TimeoutError) and limit.expired():
                return ToolOutcome(error=f"{call.tool_name} took longer than {tool.timeout:g} s.")
            log.info("Tool %r failed: %s", call.tool_name, type(error).__name__)
            return ToolOutcome(error=str(error) or type(error).__name__)
        return ToolOutcome(value)

    @staticmethod
    def declined(decision: ApprovalDecision) -> ToolOutcome:
        """What the model is told when a person says no."""
        return ToolOutcome(
            error=f"A person declined this call: {decision.reason or 'no reason given'}", denied=True
        )

    def change_args(self, call: ToolCallInfo, args: Any) -> None:
        """Run the call with other arguments; they are what is stored, too."""
        call.args = args
        self._set(call, args=args)

    def _set(self, call: ToolCallInfo, **values: Any) -> None:
        part = self.chain.list.find_tool_invocation(call.tool_call_id)
        if part is not None:
            part["toolInvocation"] = {**part["toolInvocation"], **values}

    async def settle(
        self, call: ToolCallInfo, outcome: Outcome, step: StepResult, steps: list[StepResult]
    ) -> Chunk:
        """Let the chain screen an outcome, put it into the list, and make its chunk."""
        if isinstance(outcome, asyncio.Task):
            outcome = outcome.result()
        names = {"toolCallId": call.tool_call_id, "toolName": call.tool_name, "args": call.args}
        if outcome.error is not None:
            self._set(call, state="denied" if outcome.denied else "error", errorText=outcome.error)
            denied = {"denied": True} if outcome.denied else {}
            return Chunk("tool-error", {**names, "error": outcome.error, **denied})
        result = await self.screen(call, outcome.value, step.step_number, steps)
        return Chunk("tool-result", {**names, "result": result})

    async def screen(self, call: ToolCallInfo, value: Any, step_number: int, steps: list[StepResult]) -> Any:
        """process_tool_result; the value it leaves is what the list holds."""
        values = {
            "step_number": step_number, "tool_name": call.tool_name, "tool_call_id": call.tool_call_id,
            "args": call.args, "provider_executed": call.provider_executed, "steps": steps,
        }  # fmt: skip
        result = await self.chain.tool_result(values, value)
        self.chain.list.update_tool_invocation(tool_call_id=call.tool_call_id, result=result)
        return result

    def note(self, call: ToolCallInfo, chunk: Chunk, step: StepResult) -> bool:
        """Note a result chunk as the stream chain left it: that is what is stored and what the model sees."""
        payload = chunk.payload or {}
        if chunk.type not in ("tool-result", "tool-error") or payload.get("toolCallId") != call.tool_call_id:
            return False
        failed = chunk.type == "tool-error"
        value = payload.get("error") if failed else payload.get("result")
        if failed:
            self._set(call, state="denied" if payload.get("denied") else "error", errorText=str(value))
        else:
            self._set(call, state="result", result=value)
        self._keep(call, step, value, failed=failed)
        return True

    def note_withheld(self, call: ToolCallInfo, step: StepResult) -> None:
        """A processor dropped the result's chunk: nobody gets the value, and the model is told so."""
        words = "A guardrail withheld this result."
        self._set(call, state="error", errorText=words, result=None)
        self._keep(call, step, words, failed=True)

    @staticmethod
    def _keep(call: ToolCallInfo, step: StepResult, value: Any, *, failed: bool) -> None:
        step.tool_results.append(
            ToolResultInfo(
                call.tool_call_id, call.tool_name, call.args, value, call.provider_executed, failed
            )
        )
