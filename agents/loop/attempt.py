"""One attempt of a step: the hooks before the call, the call, its stream, the hooks after it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from agents.loop.endings import object_of
from agents.loop.reply import Blocks, Reply
from agents.loop.tool_phase import ToolPhase
from agents.loop.tools import Tool
from processors.engine.chunks import Chunk
from processors.engine.errors import ModelAPIError, StructuredOutputInvalid
from processors.engine.hooks import ProcessInputStepArgs, StepResult, ToolCallInfo, ToolResultInfo, Usage
from processors.engine.ports import LanguageModel, ModelRequest
from processors.engine.processor import ChainEntry
from processors.engine.slots import Slot

if TYPE_CHECKING:
    from agents.loop.run import Run

BROKEN_CONNECTION = (ConnectionError, TimeoutError, EOFError)
REPLAY_SKIPS = frozenset(
    {"start", "step-start", "step-finish", "text-start", "text-end", "reasoning-start", "reasoning-end"}
)
FAILED_MODEL = "The model could not answer; the step is tried again."


class Retry(Exception):
    """Ask for the step again.

    counted: it uses up one of the retries. feedback: the model is told the reason. next_model: with the next fallback.
    """

    def __init__(
        self, reason: str, *, counted: bool, feedback: bool = False, next_model: bool = False
    ) -> None:
        super().__init__(reason)
        self.reason, self.counted, self.feedback, self.next_model = reason, counted, feedback, next_model


class Attempt:
    """One model call inside a step."""

    def __init__(self, run: Run, model: LanguageModel) -> None:
        self.run, self.model = run, model
        self.chain, self.list, self.call = run.chain, run.list, run.call
        self.reply = Reply(
            run.list, run.run_id, keep_chunks=bool(self.chain.with_hook("process_llm_response"))
        )
        self.known = run.list.ids()
        repeatable = run.retries_left > 0 or run.has_fallback
        self.mark = run.list.checkpoint() if repeatable else None
        self.chain.stream.mark()
        self.called = self.accepted = self.from_cache = self.paid = False
        self.tools: dict[str, Tool] = dict(run.agent.tools)
        self.active_tools: list[str] | None = run.call.active_tools
        self.results: list[ToolResultInfo] = []
        self.schema: dict[str, Any] | None = None
        self._step: StepResult | None = None

    @classmethod
    def accepted_before(cls, run: Run, message_id: str | None) -> Attempt:
        """The attempt that a resumed run had accepted before it waited: it can be refused, not repeated."""
        attempt = cls(run, run.model)
        attempt.mark = None
        attempt.called = attempt.accepted = attempt.paid = True
        attempt.reply.message = run.list.get(message_id) if message_id is not None else None
        return attempt

    # ── taking it back ─────────────────────────────────────────────────────
    def take_back(self) -> None:
        """Remove what joined the list in this attempt. Edits of other messages, redactions among them, stay."""
        self.reply.withdraw()
        self.list.remove_by_ids(self.list.ids() - self.known)

    def roll_back(self) -> None:
        """Make the list what it was at the step's start, once."""
        mark, self.mark = self.mark, None
        self.chain.stream.rewind()
        if mark is not None:
            self.list.restore(mark)

    def unpaid(self) -> Usage:
        """The usage of this attempt, once; a replayed answer costs nothing."""
        if self.paid or self.from_cache:
            return Usage()
        self.paid = True
        return self.reply.usage

    def _common(self) -> dict[str, Any]:
        return {"step_number": self.run.step_number, "steps": list(self.run.steps)}

    # ── the whole ──────────────────────────────────────────────────────────
    async def chunks(self) -> AsyncGenerator[Chunk, None]:
        """Everything the client gets of this attempt. Raises TripWire, Retry, RunCancelled and the engine's errors."""
        run = self.run
        run.scope.step_number = run.step_number
        request = await self._prepare()
        async for chunk in run.drain():
            yield chunk
        request.prompt, response = await self.chain.llm_request(
            request.prompt, {"model": self.model, **self._common()}
        )
        async for chunk in run.drain():
            yield chunk
        run.interruption.check()
        self.called = True
        run.signal.reply_ended = False
        async for chunk in run.out(
            Chunk("step-start", {"stepNumber": run.step_number, "messageId": self.reply.id})
        ):
            yield chunk
        source = (
            self._replayed(response)
            if response is not None
            else self.model.stream(request, signal=run.signal)
        )
        try:
            async with aclosing(self._reply(source)) as reply:
                async for chunk in reply:
                    yield chunk
        except ModelAPIError as error:
            failure = error
        else:
            async with aclosing(self._after()) as after:
                async for chunk in after:
                    yield chunk
            return
        async with aclosing(self._rejected(failure)) as rejected:
            async for chunk in rejected:
                yield chunk

    async def _rejected(self, error: ModelAPIError) -> AsyncGenerator[Chunk, None]:
        """The call has failed: error processors, then a fallback model, then the end. Always raises."""
        run = self.run
        run.refuse()
        self.roll_back()
        run.attempt = self
        asked = await self.chain.api_error(error, self._common())
        self.known = self.list.ids()
        async for chunk in run.drain():
            yield chunk
        if asked and run.retries_left > 0:
            raise Retry(FAILED_MODEL, counted=True) from error
        if run.has_fallback:
            raise Retry(FAILED_MODEL, counted=False, next_model=True) from error
        raise error

    # ── before the call ────────────────────────────────────────────────────
    async def _prepare(self) -> ModelRequest:
        agent, call = self.run.agent, self.call
        settings: dict[str, Any] = {
            "model": self.model, "tool_choice": call.tool_choice or "auto", "active_tools": call.active_tools,
            "tools": dict(agent.tools), "provider_options": {**agent.provider_options, **(call.provider_options or {})},
            "model_settings": {**agent.model_settings, **(call.model_settings or {})},
            "structured_output": call.structured_output,
        }  # fmt: skip
        prepare = self._prepare_step if call.prepare_step else None
        await self.chain.input_step(settings, self._common(), agent.model_named, prepare)
        self.model = agent.model_named(settings["model"])
        tools = settings["tools"]
        self.tools = tools if isinstance(tools, dict) else {tool.name: tool for tool in tools}
        self.active_tools = settings["active_tools"]
        self.schema = (settings["structured_output"] or {}).get("schema")
        shown = [
            tool
            for name, tool in self.tools.items()
            if self.active_tools is None or name in self.active_tools
        ]
        return ModelRequest(
            self.list.to_prompt(), [tool.spec() for tool in shown], settings["tool_choice"] or "auto",
            settings["model_settings"] or {}, settings["provider_options"] or {}, self.schema,
        )  # fmt: skip

    async def _prepare_step(self, settings: dict[str, Any], common: dict[str, Any]) -> None:
        """The call's own callback: as the last processor of the input chain."""
        callback = self.call.prepare_step
        assert callback is not None
        slot = Slot(
            ChainEntry(_PrepareStep()), "input", len(self.chain.slots), {}, {"process_input_step": callback}
        )
        view = self.list.all
        args = self.run.scope.args_for(
            slot, ProcessInputStepArgs, messages=list(view), message_list=self.list,
            system_messages=list(self.list.system_messages), **settings, **common,
        )  # fmt: skip
        result = await self.run.scope.call(slot, "process_input_step", args)
        await self.chain.apply_step(slot, result, view, settings)

    # ── the call ───────────────────────────────────────────────────────────
    async def _replayed(self, response: list[Any]) -> AsyncIterator[Chunk]:
        self.from_cache = True
        ended = False
        for item in response:
            chunk = item.replace() if isinstance(item, Chunk) else Chunk.from_wire(item)
            ended = ended or chunk.type == "finish"
            if chunk.type not in REPLAY_SKIPS:
                yield chunk
        if not ended:
            yield Chunk("finish", {})

    async def _reply(self, source: AsyncIterator[Chunk]) -> AsyncGenerator[Chunk, None]:
        """The reply as the output chain passes it. Raises ModelAPIError if the call fails or breaks off."""
        run, reply, blocks = self.run, self.reply, Blocks(self.run.step_number)
        push, following, interruption, signal = (
            self.chain.stream.push,
            source.__aiter__().__anext__,
            run.interruption,
            run.signal,
        )
        finished = False
        try:
            while True:
                try:
                    chunk = await following()
                except StopAsyncIteration:
                    break
                except BROKEN_CONNECTION as error:
                    raise ModelAPIError(
                        f"The connection to the model broke: {error}", retryable=True
                    ) from error
                if interruption.wanted:
                    interruption.check()
                if chunk.type == "finish":
                    reply.note_finish(chunk.payload or {})
                    finished = True
                    continue
                if run.pending_data:
                    self._place_data()
                for piece in blocks.around(chunk):
                    passed = await push(await self._screened(piece) if piece.type in SCREENED else piece)
                    if run.outbox:
                        async for data in run.drain():
                            yield data
                    for out in passed:
                        out.run_id = run.run_id
                        self._take(out)
                        yield out
                if signal.reply_ended:  # a processor has seen enough; the provider is closed below
                    reply.finish_reason, finished = "length", True
                    break
        finally:
            close = getattr(source, "aclose", None)
            if close is not None:
                await close()
        self._check_end(finished)
        for piece in blocks.close():
            async for out in run.out(piece):
                self._take(out)
                yield out
        reply.end_block()
        self._place_data()

    def _check_end(self, finished: bool) -> None:
        if not finished:
            raise ModelAPIError("The model's answer broke off before it was finished.", retryable=True)
        if self.reply.finish_reason == "error":
            raise ModelAPIError("The model ended its answer with an error.", retryable=True)

    def _place_data(self) -> None:
        """Data parts written before the reply began belong to its message."""
        for part in self.run.pending_data:
            self.reply.part(part)
        self.run.pending_data = []

    def _take(self, chunk: Chunk) -> None:
        """Note what the chain has passed; a result of the provider's own tool goes to its call."""
        self.run.scope.delivered_chars += self.reply.take(chunk)
        if chunk.type == "tool-result":
            payload = chunk.payload or {}
            part = self.list.find_tool_invocation(payload["toolCallId"])
            args = part["toolInvocation"].get("args") if part else None
            self.list.update_tool_invocation(tool_call_id=payload["toolCallId"], result=payload.get("result"))
            self.results.append(
                ToolResultInfo(payload["toolCallId"], payload["toolName"], args, payload.get("result"), True)
            )

    async def _screened(self, chunk: Chunk) -> Chunk:
        """A call's broken arguments are noted; a provider's result passes process_tool_result before anyone sees it."""
        payload = dict(chunk.payload or {})
        if chunk.type == "tool-call":
            if payload.get("invalidArgs") is not None:
                self.reply.invalid[payload["toolCallId"]] = str(payload["invalidArgs"])
            return chunk
        known = next((c for c in self.reply.calls if c.tool_call_id == payload["toolCallId"]), None)
        call = known or ToolCallInfo(payload["toolCallId"], payload["toolName"], payload.get("args"), True)
        phase = ToolPhase(self.chain, self.run.scope, {}, None, self.run.wake)
        payload["result"] = await phase.screen(
            call, payload.get("result"), self.run.step_number, list(self.run.steps)
        )
        payload["providerExecuted"] = True
        return Chunk("tool-result", payload, self.run.run_id)

    # ── after the call ─────────────────────────────────────────────────────
    def step_result(self) -> StepResult:
        """The step as it stands after process_output_step; before that, as the stream left it."""
        if self._step is not None:
            return self._step
        reply = self.reply
        reason = reply.finish_reason
        if reason is None:
            reason = "tool-calls" if any(not call.provider_executed for call in reply.calls) else "stop"
        return StepResult(
            self.run.step_number, reply.text, "".join(reply.reasonings), list(reply.calls), list(self.results),
            reason, Usage() if self.from_cache else reply.usage, self.model.id, reply.provider_metadata,
            reply.sources, reply.files,
        )  # fmt: skip

    async def _after(self) -> AsyncGenerator[Chunk, None]:
        run, reply, step = self.run, self.reply, self.step_result()
        steps = [*run.steps, step]
        await self.chain.llm_response({
            "chunks": reply.recorded(step), "model": self.model, "step_number": run.step_number, "steps": steps,
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
        self._step = step
        if reply.message is not None:
            reply.read_back(step)
        if self.schema is not None and not step.tool_calls:
            self._check_object(step.text, self.schema)

    def _check_object(self, text: str, schema: dict[str, Any]) -> None:
        """A misfit is asked for again with the reason, as long as retries are left."""
        try:
            object_of(text, schema)
        except StructuredOutputInvalid as error:
            if self.run.retries_left > 0:
                raise Retry(str(error), counted=True, feedback=True) from error
            raise


SCREENED = frozenset({"tool-call", "tool-result"})


class _PrepareStep:
    """Stands for the call's own callback in the audit and in errors."""

    id = "prepare-step"
