"""One run, driven by whoever reads its chunks: its state, the road of every chunk to the client, and how it ends."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from agents.loop.attempt import Attempt
from agents.loop.endings import Endings
from agents.loop.interruption import Interruption
from agents.loop.result import RunResult
from agents.loop.steps import Steps
from processors.engine.chain import ChainRunner
from processors.engine.chunks import Chunk
from processors.engine.errors import BudgetExceeded, RunCancelled
from processors.engine.hooks import RequestContext, StepResult, Usage
from processors.engine.message_list import MessageList
from processors.engine.messages import Message, SystemMessage
from processors.engine.ports import AbortSignal, LanguageModel
from processors.engine.processor import ChainEntry
from processors.engine.scope import RunScope
from processors.engine.slots import Slot, entries_of
from processors.engine.tripwire import TripWire

if TYPE_CHECKING:
    from agents.loop.agent import Agent, Call

DEFAULT_ERROR_RETRIES = 10


class Run:
    """The state of one run. `result` is complete when `chunks` has ended."""

    chain: ChainRunner

    def __init__(self, agent: Agent, messages: list[Message], call: Call, run_id: str) -> None:
        self.agent, self.call, self.given, self.run_id = agent, call, messages, run_id
        self.signal = call.abort_signal or AbortSignal()
        self.interruption = Interruption()
        self.context = call.request_context if call.request_context is not None else RequestContext()
        self.list = MessageList()
        self.scope = RunScope(
            run_id=run_id, request_context=self.context, tracing_context=call.tracing_context,
            abort_signal=self.signal, audit=call.audit, emit=self._emit, hold=self.interruption.hold,
        )  # fmt: skip
        self.outbox: deque[tuple[Chunk, frozenset[Slot]]] = deque()
        self.wake = asyncio.Event()
        self._handled_by: frozenset[Slot] = frozenset()
        self.result = RunResult(run_id)
        self.steps: list[StepResult] = self.result.steps
        self.step_messages: list[str | None] = []
        self.usage = Usage()
        self.step_number = self.retries_left = self.model_at = 0
        self.repeatable = True
        self.replied = self.finished = self.stored = False
        self.pending_data: list[dict[str, Any]] = []
        self.systems: list[SystemMessage] = []
        self.attempt: Attempt | None = None
        self.schema: dict[str, Any] | None = None
        self.started = time.monotonic()
        self.time_is_up = False

    # ── setting up ─────────────────────────────────────────────────────────
    def prepare(self) -> None:
        """Build the chains, once. Raises ConfigError."""
        agent, call = self.agent, self.call

        def chosen(name: str) -> list[ChainEntry]:
            given = getattr(call, name)
            return entries_of(given if given is not None else getattr(agent, name), self.context)

        error = chosen("error_processors")
        self.chain = ChainRunner(
            self.scope,
            {
                "input": [*agent.mandatory_input, *chosen("input_processors")],
                "output": [*chosen("output_processors"), *agent.mandatory_output],
                "error": error,
            },
            self.list,
        )
        limits = (
            call.max_processor_retries,
            agent.max_processor_retries,
            DEFAULT_ERROR_RETRIES if error else 0,
        )
        self.retries_left = next(limit for limit in limits if limit is not None)
        self.scope.may_retry = lambda: self.repeatable and self.retries_left > 0

    @property
    def max_steps(self) -> int:
        return self.call.max_steps if self.call.max_steps is not None else self.agent.max_steps

    @property
    def model(self) -> LanguageModel:
        """The main model, or the fallback that has taken over for the rest of the run."""
        return self.agent.model_named([self.agent.model, *self.agent.fallbacks][self.model_at])

    @property
    def has_fallback(self) -> bool:
        return self.model_at < len(self.agent.fallbacks)

    def check(self) -> None:
        """Raises RunCancelled when the run is to stop, BudgetExceeded when a limit is reached."""
        self.interruption.check()
        budget = self.call.budget or self.agent.budget
        if budget is not None:
            budget.check(steps=len(self.steps), usage=self.usage, seconds=time.monotonic() - self.started)

    # ── chunks on their way to the client ──────────────────────────────────
    def _emit(self, chunk: Chunk, author: Slot | None) -> None:
        """A writer was used. author: the processor, if it wrote from process_output_stream; it won't see the chunk."""
        seen = self._handled_by | {author} if author is not None else frozenset()
        self.outbox.append((chunk, seen))
        self.wake.set()

    async def drain(self) -> AsyncIterator[Chunk]:
        """Send what writers emitted through the processors that asked for data parts, and on to the client."""
        while self.outbox:
            chunk, self._handled_by = self.outbox.popleft()
            try:
                passed = await self.chain.stream.push_data(chunk, self._handled_by)
            finally:
                self._handled_by = frozenset()
            for out in passed:
                out.run_id = self.run_id
                self._keep_data(out)
                yield out

    def _keep_data(self, chunk: Chunk) -> None:
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

    async def out(self, chunk: Chunk) -> AsyncIterator[Chunk]:
        """Send a chunk through the output chain. Data that processors write on the way goes first."""
        chunk.run_id = self.run_id
        passed = await self.chain.stream.push(chunk)
        if self.outbox:
            async for data in self.drain():
                yield data
        for piece in passed:
            piece.run_id = self.run_id
            if piece.type == "object-result":  # a processor made the answer's object
                self.result.object = (piece.payload or {}).get("object")
            yield piece

    def refuse(self) -> None:
        """Take the attempt back, also when it had been accepted and the end of the run refuses it."""
        attempt, self.attempt = self.attempt, None
        self.pending_data = []
        self.outbox.clear()
        if attempt is None:
            return
        self.usage += attempt.unpaid()
        attempt.take_back()
        if attempt.accepted:
            self.steps.pop()
            self.step_messages.pop()
            self.step_number -= 1

    # ── the run ────────────────────────────────────────────────────────────
    async def chunks(self) -> AsyncGenerator[Chunk, None]:
        """Everything the client gets, in order."""
        steps, endings = Steps(self).chunks(), Endings(self)
        forget = self.signal.on_abort(self.interruption.fire)
        timer = self._start_timer()
        if self.signal.aborted:
            self.interruption.wanted = True
        try:
            yield Chunk("start", {"agentId": self.agent.id}, self.run_id)
            following, interruption = steps.__anext__, self.interruption
            while True:
                if (
                    interruption.wanted and not self.stored
                ):  # what is stored as completed is also delivered as that
                    interruption.check()
                interruption.enter()
                try:
                    chunk = await following()
                except StopAsyncIteration:
                    return
                finally:
                    interruption.leave()
                yield chunk
        except GeneratorExit:
            await steps.aclose()
            await endings.closed()
            raise
        except (asyncio.CancelledError, RunCancelled) as error:
            ours = self.interruption.caused(error)
            await steps.aclose()
            if not ours:
                await endings.closed()
                raise
            ending = endings.failed(self._out_of_time()) if self.time_is_up else endings.cancelled()
        except TripWire as trip:
            ending = endings.blocked(trip)
        except Exception as error:
            ending = endings.failed(error)
        finally:
            forget()
            if timer is not None:
                timer.cancel()
        self.interruption = Interruption()
        async with aclosing(ending):
            async for chunk in ending:
                yield chunk

    def _start_timer(self) -> asyncio.TimerHandle | None:
        budget = self.call.budget or self.agent.budget
        self.started = time.monotonic()
        if budget is None or budget.seconds is None:
            return None

        def ring() -> None:
            self.time_is_up = True
            self.interruption.fire()

        return asyncio.get_running_loop().call_later(budget.seconds, ring)

    def _out_of_time(self) -> BudgetExceeded:
        budget = self.call.budget or self.agent.budget
        allowed = budget.seconds if budget is not None else None
        return BudgetExceeded("seconds", time.monotonic() - self.started, allowed or 0.0)
