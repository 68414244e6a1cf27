"""One run from its claim to its end marker."""

from __future__ import annotations

import asyncio
import logging
import traceback
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from agents.bridge import in_database
from agents.build import RunFacts, build_agent
from agents.loop.agent import Agent, RunStream
from agents.loop.tools import ApprovalDecision
from agents.models import Run, ToolCall
from agents.runner.claims import LeaseLost, run_interrupt, run_settle
from agents.runner.log_writer import LogWriter, RunLog
from agents.runner.public_words import PublicWords
from audit.counters import Count, counters_add
from audit.storable import storable
from audit.writer import AuditWriter, Scene
from memory.thread_memory import DjangoThreadMemory
from processors.engine.errors import ConfigError
from processors.engine.hooks import RequestContext
from processors.engine.messages import Message, MessageContent, user_message
from processors.engine.ports import AbortSignal, ThreadMemory, Turn

log = logging.getLogger("gatehouse.runs")


@dataclass(slots=True)
class Prepared:
    """A claimed run, ready to be streamed."""

    run: Run
    agent: Agent
    words: PublicWords
    messages: list[Message]
    context: RequestContext
    scene: Scene
    decisions: dict[str, ApprovalDecision] = field(default_factory=dict)


def run_prepare(run: Run) -> Prepared:
    """Build the chains and read what was asked. Raises ConfigError."""
    snapshot = run.version.snapshot if run.version is not None else run.draft_snapshot
    if snapshot is None:
        raise ConfigError("The run has neither a version nor a draft.")
    facts = RunFacts(run.pk)
    agent = build_agent(snapshot, user=run.owner, context=facts)
    if any(facts.mandatory.values()):
        Run.objects.filter(pk=run.pk).update(mandatory=facts.mandatory)
    decisions = _decisions(run) if run.snapshot is not None else {}
    return Prepared(run, agent, PublicWords(agent), _asked(run), context_of(run), scene_of(run), decisions)


def _decisions(run: Run) -> dict[str, ApprovalDecision]:
    """What people have decided about the calls that this run waited for."""
    return {
        row.call_id: ApprovalDecision(bool(row.decision["approved"]), row.decision_reason or None, row.decision.get("args"))
        for row in ToolCall.objects.filter(run=run)
        if row.decision is not None
    }  # fmt: skip


def _asked(run: Run) -> list[Message]:
    """The messages that this run answers: earlier ones that the call brought along, then what the person wrote."""
    from memory.models import Message as Row

    made: list[Message] = []
    for one in run.overrides.get("history") or []:
        made.append(Message(one["role"], MessageContent([{"type": "text", "text": one["text"]}])))
    row = Row.objects.filter(pk=run.input_message_id).first() if run.input_message_id else None
    if row is not None:
        made.append(
            Message(
                "user",
                MessageContent([dict(part) for part in row.parts], metadata=dict(row.metadata)),
                str(row.pk),
            )
        )
    elif run.overrides.get("text"):
        made.append(user_message(run.overrides["text"]))
    return made


def place_of(problem: BaseException) -> str:
    """Where an exception came from. Its words are left out of logs: they may hold what somebody wrote."""
    frames = traceback.extract_tb(problem.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "an unknown place"


def scene_of(run: Run) -> Scene:
    """What the audit's rows of this run have in common."""
    return Scene(
        run.pk, run.thread_id, run.agent.slug, run.version.number if run.version is not None else None, run.owner_id,
        run.owner.get_username(), run.channel,
    )  # fmt: skip


class PlainMemory(ThreadMemory):
    """For a run without a thread: nothing is remembered, and only the run itself is written."""

    def __init__(self, settle: Any) -> None:
        self._settle = settle

    async def load(self) -> list[Message]:
        return []

    async def save(self, turn: Turn) -> None:
        await in_database(self._whole, turn)

    def _whole(self, turn: Turn) -> None:
        from django.db import transaction

        with transaction.atomic():
            self._settle(turn)


class Execution:
    """One run being streamed in the runner's event loop."""

    def __init__(self, run_id: UUID, owner: str, writer: LogWriter) -> None:
        self.run_id, self.owner, self._writer = run_id, owner, writer
        self.signal = AbortSignal()
        self.thread_id: UUID | None = None
        self._settled: str | None = None

    def stop(self, reason: str = "stopped") -> None:
        """Ask the run to stop. In the runner's thread only."""
        self.signal.abort(reason)

    async def go(self, run: Run, *, is_first: bool) -> None:
        """Stream a claimed run to its end, whatever happens; the log gets its end marker last."""
        self.thread_id = run.thread_id
        run_log = await self._writer.open(
            str(self.run_id), is_first=is_first, resumes=run.snapshot is not None
        )
        try:
            prepared = await in_database(run_prepare, run)
            await self._stream(prepared, run_log)
        except LeaseLost as lost:
            log.warning("%s", lost)
            self._settled = self._settled or "interrupted"
        except asyncio.CancelledError:
            await asyncio.shield(
                self._broken(
                    "The process that wrote this answer was shut down. Send the message again to go on."
                )
            )
            raise
        except ConfigError as problem:
            self._say_error(
                run_log,
                "configuration",
                "This agent cannot answer at the moment; its owner has to look at its settings.",
            )
            await self._broken(str(problem), failed=True)
        except Exception as problem:
            log.error("The run %s failed: %s at %s.", self.run_id, type(problem).__name__, place_of(problem))
            self._say_error(
                run_log, "internal_error", "Something went wrong on our side. Send the message again."
            )
            await self._broken(f"Internal error ({type(problem).__name__}).", failed=True)
        finally:
            await asyncio.shield(run_log.end(self._settled or "interrupted"))

    def _say_error(self, run_log: RunLog, code: str, message: str) -> None:
        payload = {"error": {"name": code, "message": message, "code": code}}
        run_log.append({"type": "error", "runId": str(self.run_id), "from": "AGENT", "payload": payload})

    async def _broken(self, reason: str, *, failed: bool = False) -> None:
        status = Run.Status.FAILED if failed else Run.Status.INTERRUPTED
        if await in_database(run_interrupt, run_id=self.run_id, reason=reason, status=status):
            if failed:
                await in_database(_note_error, self.run_id, reason)
            self._settled = status

    async def _stream(self, prepared: Prepared, run_log: RunLog) -> None:
        stream = self._begin(prepared)
        try:
            async for chunk in stream:
                run_log.append(prepared.words.chunk(chunk))
        finally:
            await stream.aclose()
        result = await stream.result()
        await in_database(_stats_store, prepared.run, result.stats)

    def _begin(self, prepared: Prepared) -> RunStream:
        run, asked = prepared.run, prepared.run.overrides

        def settle(turn: Turn) -> None:
            run_settle(run_id=run.pk, owner=self.owner, turn=turn, was_waiting=run.snapshot is not None)
            self._settled = turn.status

        memory: ThreadMemory = PlainMemory(settle)
        if run.thread is not None:
            snapshot = run.version.snapshot if run.version is not None else {}
            limit = 0 if asked.get("history") else int(snapshot.get("history_messages") or 0)
            memory = DjangoThreadMemory(
                run.thread,
                limit=limit,
                run_id=run.pk,
                input_message_id=run.input_message_id,
                in_same_transaction=settle,
            )
        common: dict[str, Any] = {
            "run_id": str(run.pk), "memory": PublicMemory(memory, prepared.words), "audit": AuditWriter(prepared.scene),
            "abort_signal": self.signal, "request_context": prepared.context, "model_settings": asked.get("model_settings"),
        }  # fmt: skip
        if run.snapshot is not None:
            return prepared.agent.resume(run.snapshot, prepared.decisions, **common)
        return prepared.agent.stream(
            prepared.messages, system=asked.get("system"), structured_output=asked.get("structured_output"),
            tool_choice=asked.get("tool_choice"), **common,
        )  # fmt: skip


class PublicMemory(ThreadMemory):
    """Puts public words into a turn before it is stored."""

    def __init__(self, inner: ThreadMemory, words: PublicWords) -> None:
        self._inner, self._words = inner, words

    async def load(self) -> list[Message]:
        return await self._inner.load()

    async def save(self, turn: Turn) -> None:
        self._words.turn(turn)
        await self._inner.save(turn)


def context_of(run: Run) -> RequestContext:
    """What processors and tools may know of the request."""
    return RequestContext(
        run_id=str(run.pk), thread_id=str(run.thread_id) if run.thread_id else None, resource_id=str(run.owner_id), user_id=run.owner_id,
        user_name=run.owner.get_username(), roles=sorted(run.owner.groups.values_list("name", flat=True)), channel=run.channel,
        agent=run.agent.slug, agent_version=run.version.number if run.version is not None else None,
    )  # fmt: skip


def _note_error(run_id: UUID, reason: str) -> None:
    Run.objects.filter(pk=run_id).update(error={"name": "Failed", "message": reason})


def _stats_store(run: Run, stats: list[dict[str, Any]]) -> None:
    """Each guardrail's counts: with the run, and added to its hour."""
    Run.objects.filter(pk=run.pk).update(stats=storable(stats))
    counts = [
        Count(
            str(one["id"]), one["evaluated"], one["passed"], one["violations"], one["errors"], one["seconds"]
        )
        for one in stats
        if one["evaluated"] or one["violations"] or one["errors"]
    ]
    counters_add(agent_slug=run.agent.slug, counts=_merged(counts))


def _merged(counts: list[Count]) -> list[Count]:
    """One count per guardrail: it may stand in two chains."""
    total: dict[str, Count] = {}
    for one in counts:
        known = total.get(one.processor_id)
        total[one.processor_id] = one if known is None else Count(
            one.processor_id, known.evaluated + one.evaluated, known.passed + one.passed, known.violations + one.violations,
            known.errors + one.errors, known.seconds + one.seconds,
        )  # fmt: skip
    return list(total.values())
