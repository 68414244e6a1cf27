"""One attempt of a step: the hooks before the call, the call, its stream, the hooks after it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import jsonschema

from agents.loop.reply import Blocks, Reply
from agents.loop.tool_phase import ToolPhase
from agents.loop.tools import Tool
from processors.engine.chunks import Chunk
from processors.engine.errors import ModelAPIError, RunCancelled
from processors.engine.hooks import ProcessInputStepArgs, StepResult, ToolCallInfo, ToolResultInfo, Usage
from processors.engine.ports import LanguageModel, ModelRequest
from processors.engine.processor import ChainEntry
from processors.engine.slots import Slot
from processors.engine.tripwire import TripWire

if TYPE_CHECKING:
    from agents.loop.run import Run


class Retry(Exception):
    """Ask for the step again. counted: it uses up one of the processor retries. next_model: with the next fallback."""

    def __init__(self, reason: str, *, counted: bool, next_model: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.counted, self.next_model = reason, counted, next_model


class Attempt:
    """One model call inside a step."""

    def __init__(self, run: Run, model: LanguageModel) -> None:
        self.run, self.model = run, model
        self.chain, self.list, self.call = run.chain, run.list, run.call
        keep = bool(self.chain.with_hook("process_llm_response"))
        self.reply = Reply(run.list, run.run_id, keep_chunks=keep)
        self.before = [(message.id, run.list.source_of(message.id)) for message in run.list.response]
        self.called = False
        self.accepted = False
        self.from_cache = False
        self.paid = False
        self.tools: dict[str, Tool] = dict(run.agent.tools)
        self.active_tools: list[str] | None = run.call.active_tools
        self.results: list[ToolResultInfo] = []
        self.settings: dict[str, Any] = {}

    def undo(self) -> None:
        """Take out what the attempt's hooks added as responses; accepted steps stay."""
        known = {id for id, _ in self.before}
        self.list.remove_by_ids([message.id for message in self.list.response if message.id not in known])

    def unpaid(self) -> Usage:
        """The usage of this attempt, once; a replayed answer costs nothing."""
        if self.paid or self.from_cache:
            return Usage()
        self.paid = True
        return self.reply.usage

    def _common(self) -> dict[str, Any]:
        return {"step_number": self.run.step_number, "steps": list(self.run.steps)}

    async def chunks(self) -> AsyncIterator[Chunk]:
        """Everything the client gets of this attempt. Raises TripWire, Retry, RunCancelled and the engine's errors."""
        run = self.run
        run.scope.step_number = run.step_number
        request = await self._prepare()
        async for chunk in run.drain():
            yield chunk
        prompt, response = await self.chain.llm_request(request.prompt, {"model": self.model, **self._common()})
        request.prompt = prompt
        async for chunk in run.drain():
            yield chunk
        self.called = True
        run.signal.reply_ended = False
        async for chunk in run.out(Chunk("step-start", {"stepNumber": run.step_number})):
            yield chunk
        try:
            source = self._replayed(response) if response is not None else self._live(request)
            async for chunk in self._stream(source):
                yield chunk
        except ModelAPIError as error:
            self.reply.withdraw()
            asked = await self.chain.api_error(error, self._common())
            async for chunk in run.drain():
                yield chunk
            if asked and run.retries_left > 0:
                raise Retry(str(error), counted=True) from error
            if self._has_fallback():
                raise Retry(str(error), counted=False, next_model=True) from error
            raise
        async for chunk in self._after(request):
            yield chunk

    def _has_fallback(self) -> bool:
        models = [self.run.agent.model, *self.run.agent.fallbacks]
        return self.model in models[:-1]

    # ── before the call ────────────────────────────────────────────────────
    async def _prepare(self) -> ModelRequest:
        agent, call = self.run.agent, self.call
        settings: dict[str, Any] = {
            "model": self.model, "tool_choice": call.tool_choice or "auto", "active_tools": call.active_tools,
            "tools": dict(agent.tools), "provider_options": {**agent.provider_options, **(call.provider_options or {})},
            "model_settings": {**agent.model_settings, **(call.model_settings or {})},
            "structured_output": call.structured_output,
        }  # fmt: skip
        await self.chain.input_step(settings, self._common(), self._prepare_step if call.prepare_step else None)
        self.model = agent.model_named(settings["model"])
        tools = settings["tools"]
        self.tools = tools if isinstance(tools, dict) else {tool.name: tool for tool in tools}
        self.active_tools = settings["active_tools"]
        self.settings = settings
        shown = [tool for name, tool in self.tools.items() if self.active_tools is None or name in self.active_tools]
        schema = (settings["structured_output"] or {}).get("schema")
        return ModelRequest(
            self.list.to_prompt(), [tool.spec() for tool in shown], settings["tool_choice"] or "auto",
            settings["model_settings"] or {}, settings["provider_options"] or {}, schema,
        )  # fmt: skip

    async def _prepare_step(self, chain: Any, settings: dict[str, Any], common: dict[str, Any]) -> None:
        """The call's own callback: as the last processor of the input chain."""
        callback = self.call.prepare_step
        assert callback is not None
        slot = Slot(ChainEntry(_PrepareStep()), "input", len(chain.slots), {}, {"process_input_step": callback})
        view = self.list.all
        args = self.run.scope.args_for(
            slot, ProcessInputStepArgs, messages=list(view), message_list=self.list,
            system_messages=list(self.list.system_messages), **settings, **common,
        )  # fmt: skip
        result = await self.run.scope.call(slot, "process_input_step", args)
        await chain._apply_step(slot, "process_input_step", result, view, settings)

    # ── the call ───────────────────────────────────────────────────────────
    async def _live(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        run = self.run
        source = self.model.stream(request, signal=run.signal)
        try:
            while True:
                if run.signal.aborted:
                    raise RunCancelled(run.signal.reason or "cancelled")
                run.waiting_task = asyncio.current_task()
                try:
                    chunk = await anext(source, None)
                finally:
                    run.waiting_task = None
                if chunk is None:
                    return
                yield chunk
        finally:
            close = getattr(source, "aclose", None)
            if close is not None:
                await close()

    async def _replayed(self, response: list[Any]) -> AsyncIterator[Chunk]:
        self.from_cache = True
        for item in response:
            chunk = item.replace() if isinstance(item, Chunk) else Chunk.from_wire(item)
            if chunk.type in ("step-start", "step-finish", "text-start", "text-end", "reasoning-start", "reasoning-end"):
                continue
            yield chunk

    async def _stream(self, source: AsyncIterator[Chunk]) -> AsyncIterator[Chunk]:
        run, reply, blocks = self.run, self.reply, Blocks(self.run.step_number)
        try:
            async for chunk in source:
                if chunk.type == "finish":
                    reply.note_finish(chunk.payload or {})
                    continue
                if run.signal.reply_ended:  # a processor has seen enough; the client closes its connection below
                    reply.finish_reason = "length"
                    break
                if run.pending_data:
                    for part in run.pending_data:
                        reply.part(part)
                    run.pending_data = []
                if chunk.type == "tool-call":
                    self._note_invalid(chunk)
                for piece in (*blocks.before(chunk), chunk):
                    screened = await self._provider_result(piece) if piece.type == "tool-result" else piece
                    async for out in run.out(screened):
                        self._take(out)
                        yield out
            for piece in blocks.close():
                async for out in run.out(piece):
                    self._take(out)
                    yield out
        finally:
            await source.aclose()  # type: ignore[attr-defined]
        reply.end_block()
        if run.pending_data:
            for part in run.pending_data:
                reply.part(part)
            run.pending_data = []

    def _note_invalid(self, chunk: Chunk) -> None:
        payload = chunk.payload or {}
        if payload.get("invalidArgs") is not None:
            self.reply.invalid[payload["toolCallId"]] = str(payload["invalidArgs"])

    def _take(self, chunk: Chunk) -> None:
        if chunk.is_data:
            return
        self.reply.take(chunk)
        if chunk.type == "tool-result":
            payload = chunk.payload or {}
            part = self.list.find_tool_invocation(payload["toolCallId"])
            args = part["toolInvocation"].get("args") if part else None
            self.list.update_tool_invocation(tool_call_id=payload["toolCallId"], result=payload.get("result"))
            self.results.append(
                ToolResultInfo(payload["toolCallId"], payload["toolName"], args, payload.get("result"), True)
            )

    async def _provider_result(self, chunk: Chunk) -> Chunk:
        """A provider-executed result passes process_tool_result before anyone sees it."""
        payload = dict(chunk.payload or {})
        known = next((c for c in self.reply.calls if c.tool_call_id == payload["toolCallId"]), None)
        call = known or ToolCallInfo(payload["toolCallId"], payload["toolName"], payload.get("args"), True)
        phase = ToolPhase(self.chain, self.run.scope, {}, None, self.run.outbox, self.run.wake)
        payload["result"] = await phase.screen(call, payload.get("result"), self.run.step_number, list(self.run.steps))
        payload["providerExecuted"] = True
        return Chunk("tool-result", payload, self.run.run_id)

    # ── after the call ─────────────────────────────────────────────────────
    def finish_reason(self) -> str:
        given = self.reply.finish_reason
        if given is not None:
            return given
        return "tool-calls" if any(not call.provider_executed for call in self.reply.calls) else "stop"

    def step_result(self) -> StepResult:
        """The step as it stands now; called again after the output hooks."""
        reply = self.reply
        message = reply.message and self.list.get(reply.message.id)
        return StepResult(
            self.run.step_number, message.text if message else reply.text, "".join(reply.reasonings), list(reply.calls), list(self.results),
            self.finish_reason(), Usage() if self.from_cache else reply.usage, self.model.id, reply.provider_metadata,
            reply.sources, reply.files,
        )  # fmt: skip

    async def _after(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        run, reply = self.run, self.reply
        step = self.step_result()
        steps = [*run.steps, step]
        await self.chain.llm_response({
            "chunks": reply.chunks, "model": self.model, "step_number": run.step_number, "steps": steps,
            "from_cache": self.from_cache, "warnings": reply.warnings, "request": reply.request,
            "raw_response": reply.raw_response,
        })  # fmt: skip
        async for chunk in run.drain():
            yield chunk
        await self.chain.output_step({
            "step_number": run.step_number, "finish_reason": step.finish_reason,
            "provider_metadata": reply.provider_metadata, "tool_calls": step.tool_calls, "text": step.text,
            "usage": step.usage, "steps": steps,
        })  # fmt: skip
        async for chunk in run.drain():
            yield chunk
        if request.response_schema is not None and not reply.calls:
            yield self._object(step.text, request.response_schema)

    def _object(self, text: str, schema: dict[str, Any]) -> Chunk:
        """The validated object of a structured answer. Raises TripWire with retry when it does not fit."""
        try:
            value = json.loads(text)
            jsonschema.validate(value, schema)
        except (ValueError, jsonschema.ValidationError) as error:
            words = error.message if isinstance(error, jsonschema.ValidationError) else "it is no JSON"
            raise TripWire(
                f"The answer does not match the schema: {words}", retry=True, processor_id="structured-output"
            ) from error
        self.run.result.object = value
        return Chunk("object-result", {"object": value}, self.run.run_id)


class _PrepareStep:
    """Stands for the call's own callback in the audit and in errors."""

    id = "prepare-step"


