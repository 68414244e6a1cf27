"""Runs a real guardrail, or a whole chain, on a text: through the agent loop itself, with a model that repeats a script.

Nothing is stored: no run, no message, no violation. The audit's rows are collected and shown.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from django.utils.translation import gettext as _

from agents.loop.agent import Agent
from agents.loop.tools import Tool
from console.text_changes import Pieces, changed_pieces
from processors.engine.chunks import Chunk, text_delta
from processors.engine.ports import AbortSignal, AuditEntry, ModelRequest, Prompt
from processors.engine.processor import ChainEntry

TextAs = Literal["input", "output", "tool"]
CUT = 7
"""Characters per delta of an answer: short, so that findings are cut in two as they are in real streams."""
LONGEST_TEXT = 20_000
TIME_LIMIT = 15.0
"""Seconds."""


def text_as(wanted: str) -> TextAs:
    """What a form asked for; anything unknown is a person's message."""
    return wanted if wanted in ("output", "tool") else "input"  # type: ignore[return-value]


@dataclass(slots=True)
class Finding:
    """A violation as the audit would keep it."""

    processor: str
    message: str
    type: str
    place: str
    excerpt: str
    outcome: str
    action: str


@dataclass(slots=True)
class Trial:
    """What came of it. verdict: passed, reported, changed, blocked or error. after: None when the text goes no further."""

    verdict: str
    before_text: str
    after_text: str | None
    reason: str = ""
    milliseconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)
    prompt: Prompt = field(default_factory=list)

    @property
    def verdict_text(self) -> str:
        return {
            "passed": _("It lets the text pass."), "reported": _("It lets the text pass and reports it."),
            "changed": _("It changes the text."), "blocked": _("It stops the message."), "error": _("The guardrail failed."),
        }[self.verdict]  # fmt: skip

    @property
    def before(self) -> Pieces:
        return changed_pieces(self.before_text, self.after_text)[0]

    @property
    def after(self) -> Pieces:
        return changed_pieces(self.before_text, self.after_text)[1]


class CollectingSink:
    """Keeps the audit's entries for the page instead of writing them to the trail."""

    def __init__(self) -> None:
        self.entries: list[AuditEntry] = []

    async def record(self, entry: AuditEntry) -> None:
        self.entries.append(entry)


class RepeatingModel:
    """Answers with a given text, after one call of a tool if `calls` names one. Remembers what it was sent."""

    id = "console/trial"

    def __init__(self, answer: str, *, calls: str | None = None) -> None:
        self.answer, self.calls = answer, calls
        self.prompts: list[Prompt] = []

    async def stream(
        self, request: ModelRequest, *, signal: AbortSignal | None = None
    ) -> AsyncIterator[Chunk]:
        self.prompts.append(request.prompt)
        usage = {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}
        if self.calls and len(self.prompts) == 1:
            yield Chunk("tool-call", {"toolCallId": "trial", "toolName": self.calls, "args": {}})
            yield Chunk("finish", {"finishReason": "tool-calls", "usage": usage})
            return
        for start in range(0, len(self.answer), CUT):
            yield text_delta(self.answer[start : start + CUT])
        yield Chunk("finish", {"finishReason": "stop", "usage": usage})


def run_trial(entries: Sequence[ChainEntry], text: str, as_: TextAs, *, instructions: str = "") -> Trial:
    """Run a chain on a text. Synchronous: for views, which run outside of any event loop."""
    return asyncio.run(asyncio.wait_for(_trial(entries, text[:LONGEST_TEXT], as_, instructions), TIME_LIMIT))


async def _trial(entries: Sequence[ChainEntry], text: str, as_: TextAs, instructions: str) -> Trial:
    sink = CollectingSink()
    model = RepeatingModel(
        text if as_ == "output" else _("All right."), calls="sample" if as_ == "tool" else None
    )
    agent = Agent(
        "trial", instructions=instructions, model=model, max_steps=2, tools=[_tool(text)] if as_ == "tool" else [],
        input_processors=entries if as_ == "input" else None, output_processors=entries if as_ != "input" else None,
    )  # fmt: skip
    begun = time.perf_counter()
    result = await agent.generate(text if as_ == "input" else _("Please."), audit=sink)
    took = (time.perf_counter() - begun) * 1000
    own = _own_milliseconds(result.stats)
    after = _after(as_, result, model)
    trial = Trial("passed", text, after, milliseconds=own if own is not None else took,
                  findings=[_finding(entry) for entry in sink.entries], prompt=model.prompts[-1] if model.prompts else [])  # fmt: skip
    _judge(trial, result)
    return trial


def _judge(trial: Trial, result: Any) -> None:
    if result.status == "failed":
        trial.verdict, trial.after_text, trial.reason = "error", None, str(result.error)
    elif result.tripwire is not None:
        trial.verdict, trial.after_text, trial.reason = "blocked", None, result.tripwire.reason
    elif trial.after_text != trial.before_text:
        trial.verdict = "changed"
    elif trial.findings:
        trial.verdict = "reported"


def _after(as_: TextAs, result: Any, model: RepeatingModel) -> str | None:
    """The text behind the chain: what the model was sent, or what the person would read."""
    if as_ == "output":
        return str(result.text)
    if not model.prompts:
        return None
    role = "user" if as_ == "input" else "tool"
    parts = [part for message in model.prompts[-1] if message["role"] == role for part in message["content"]]
    return "".join(str(part.get("text", part.get("result", ""))) for part in parts)


def _tool(text: str) -> Tool:
    async def execute(args: Any, context: Any) -> Any:
        return text

    return Tool(
        name="sample", description="", parameters={"type": "object", "properties": {}}, execute=execute
    )


def _own_milliseconds(stats: Any) -> float | None:
    """What the guardrails themselves took, without the loop around them."""
    rows = list(stats.values()) if isinstance(stats, dict) else list(stats or ())
    if not rows:
        return None
    return (
        sum(float(row.get("seconds", 0.0) if isinstance(row, dict) else row.seconds) for row in rows) * 1000
    )


def _finding(entry: AuditEntry) -> Finding:
    detail = entry.violation.detail if isinstance(entry.violation.detail, dict) else {}
    return Finding(
        entry.violation.processor_id, entry.violation.message, str(detail.get("type") or detail.get("rule") or ""),
        str(detail.get("where") or entry.hook), str(detail.get("excerpt") or ""), entry.outcome, entry.action,
    )  # fmt: skip
