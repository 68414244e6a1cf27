"""Checks whether an answer is supported by the sources it had: what tools returned, what was given, and a fixed text."""

from __future__ import annotations

import json
from typing import Any, Final, Literal

from pydantic import BaseModel, Field

from processors.builtin.judge import Judge, enclosed, resolved_model
from processors.builtin.judging import STRATEGY_LABELS, Inquiry, JudgedGuardrail, JudgeOptions, Refusal
from processors.engine.message_list import MessageList
from processors.engine.ports import BuildContext
from processors.engine.registry import ProcessorKind, Registry

SLUG: Final = "groundedness"


class Support(BaseModel):
    """supported: how much of the text the sources support, 0 for nothing to 1 for everything. Greetings, questions and
    statements about the conversation itself need no support. unsupported: how many statements lack support."""

    supported: float = Field(ge=0, le=1)
    unsupported: int = Field(0, ge=0)
    reason: str = ""


class GroundednessOptions(JudgeOptions):
    """Where support may come from, and how much is needed."""

    sources: str = Field("", title="Fixed source", description="A text that answers may always rely on.", max_length=100_000, json_schema_extra={"x-widget": "textarea"})  # fmt: skip
    threshold: float = Field(0.7, title="Support needed", description="From 0 to 1: how much of the text must be supported.", gt=0, le=1)  # fmt: skip
    strategy: Literal["block", "retry", "filter", "warn"] = Field("warn", title="What to do", description="Stop the run, ask for another answer, withhold the unsupported part, or only report.", json_schema_extra={"x-labels": STRATEGY_LABELS})  # fmt: skip
    without_sources: Literal["pass", "refuse"] = Field("pass", title="When there is no source", description="Pass: an answer without any source is not checked. Refuse: it counts as unsupported.")  # fmt: skip
    max_source_chars: int = Field(30_000, title="Length of the sources", description="Characters of sources that the judge is shown, newest first.", ge=500, le=500_000, json_schema_extra={"x-group": "Limits", "x-advanced": True})  # fmt: skip
    tool_arguments: bool = Field(False, title="Judge tool arguments", description="Also check what the model hands to tools.", json_schema_extra={"x-group": "Where", "x-advanced": True})  # fmt: skip
    reasoning: bool = Field(False, title="Judge reasoning", description="Also check what the model thinks aloud.", json_schema_extra={"x-group": "Where", "x-advanced": True})  # fmt: skip
    window_chars: int = Field(800, title="First window", description="Characters after which the judge is asked for the first time; each further window is twice as long, up to eight times.", ge=40, le=8000, json_schema_extra={"x-group": "Streaming", "x-advanced": True})  # fmt: skip


class Groundedness(JudgedGuardrail):
    """Reads the run's own tool results, `context` messages and source parts."""

    subject = "The answer is not supported by its sources"

    def __init__(self, id: str, options: GroundednessOptions, context: BuildContext) -> None:
        super().__init__(id, options, context, strategy=options.strategy)
        self._grounds = options
        self._judge = Judge(
            resolved_model(options.model, context),
            "You are given sources and a text. Say how much of what the text states is supported by the sources. What you know yourself "
            f"does not count.\n{options.instructions}",
            Support, timeout=options.timeout, max_chars=options.max_chars + options.max_source_chars + 2000,
            budget=options.budget, native_schema=options.native_schema,
        )  # fmt: skip

    async def opinion(self, inquiry: Inquiry) -> Refusal | None:
        message_list: MessageList = inquiry.args.message_list  # type: ignore[attr-defined]
        sources, cut = self._sources(message_list)
        if not sources:
            return (
                None
                if self._grounds.without_sources == "pass"
                else Refusal(["no-source"], 0.0, rule="no-source")
            )
        material = f"Sources:\n{enclosed(sources)}\n\nText:\n{inquiry.text}"
        verdict = await self._judge.ask(
            material, context=inquiry.context, signal=inquiry.signal, usage=inquiry.usage
        )
        if verdict.supported >= self._grounds.threshold:
            return None
        extra = {"unsupported": verdict.unsupported, "sources_cut": cut}
        return Refusal(["unsupported"], verdict.supported, words=verdict.reason, extra=extra)

    def _sources(self, message_list: MessageList) -> tuple[str, bool]:
        """The newest sources that fit, and whether some did not."""
        found = [self._grounds.sources] if self._grounds.sources.strip() else []
        found += [message.text for message in message_list.of_source("context") if message.text]
        for message in message_list.response:
            for part in message.content.parts:
                call = part.get("toolInvocation") or {}
                if part.get("type") == "tool-invocation" and call.get("state") == "result":
                    value = call.get("result")
                    found.append(
                        value
                        if isinstance(value, str)
                        else json.dumps(value, ensure_ascii=False, default=str)
                    )
                elif part.get("type") == "source":
                    found.append(f"{part.get('title', '')} {part.get('url', '')}".strip())
        kept: list[str] = []
        room = self._grounds.max_source_chars
        for text in reversed(found):
            if len(text) > room:
                return "\n\n".join([text[:room], *kept]) if room else "\n\n".join(kept), True
            kept.insert(0, text)
            room -= len(text)
        return "\n\n".join(kept), False

    def reason(self, refusal: Refusal) -> str:
        return f"{self.subject}."


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> Groundedness:
        return Groundedness(id, options, context)

    registry.register(ProcessorKind(
        slug=SLUG, title="Grounded in sources", description="A model checks whether answers are supported by what the tools returned.",
        options=GroundednessOptions, factory=build, stages=frozenset({"output"}), group="Judged by a model",
    ))  # fmt: skip
