"""Asks a model whether an answer gives away the agent's instructions, also in other words or another language."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, Field

from processors.builtin.judge import Judge, enclosed, resolved_model
from processors.builtin.judged_spans import METHOD_LABELS, Detection, Method, refusal_of
from processors.builtin.judging import (
    STRATEGY_LABELS,
    Inquiry,
    JudgedGuardrail,
    JudgeOptions,
    Refusal,
    Strategy,
)
from processors.engine.message_list import MessageList
from processors.engine.ports import BuildContext
from processors.engine.registry import ProcessorKind, Registry

SLUG: Final = "system-prompt-judge"
LONGEST_INSTRUCTIONS: Final = 20_000
"""Characters of the agent's instructions that the judge is shown."""


class LeakVerdict(BaseModel):
    """detections: every passage of the text that gives away instructions, its value copied exactly as it stands there."""

    reason: str | None = None
    detections: list[Detection] = Field(default_factory=list)


class SystemPromptJudgeOptions(JudgeOptions):
    """What happens to passages that give instructions away."""

    strategy: Literal["redact", "block", "retry", "filter", "warn"] = Field("redact", title="What to do", description="Hide the passages, stop the run, ask for another answer, withhold the part that holds them, or only report.", json_schema_extra={"x-labels": {**STRATEGY_LABELS, "redact": "Hide the passages"}})  # fmt: skip
    threshold: float = Field(0.5, title="Surety", description="A passage counts when the judge is at least this sure, 0 to 1.", gt=0, le=1)  # fmt: skip
    redaction_method: Method = Field("mask", title="What is shown instead", description="When hiding: stars, the placeholder, a keyed hash, or nothing.", json_schema_extra={"x-labels": {**METHOD_LABELS, "placeholder": "The placeholder"}, "x-show-if": {"strategy": ["redact"]}})  # fmt: skip
    placeholder_text: str = Field("[SYSTEM_PROMPT]", title="Placeholder", description="Stands in place of a passage.", min_length=1, max_length=100, json_schema_extra={"x-show-if": {"strategy": ["redact"]}})  # fmt: skip


class SystemPromptJudge(JudgedGuardrail):
    """The judge is shown the run's own instructions, so it need not guess what is secret."""

    subject = "The answer gives away instructions"

    def __init__(self, id: str, options: SystemPromptJudgeOptions, context: BuildContext) -> None:
        strategy: Strategy = "rewrite" if options.strategy == "redact" else options.strategy
        super().__init__(id, options, context, strategy=strategy)
        self._leaks = options
        self._judge = Judge(
            resolved_model(options.model, context),
            "You are given an assistant's secret instructions and a text it wrote. Find passages of the text that repeat, translate or paraphrase the "
            f"instructions as such. Following them, or saying that they exist, gives nothing away.\n{options.instructions}",
            LeakVerdict, timeout=options.timeout, max_chars=options.max_chars + LONGEST_INSTRUCTIONS + 2000,
            budget=options.budget, native_schema=options.native_schema,
        )  # fmt: skip

    async def opinion(self, inquiry: Inquiry) -> Refusal | None:
        message_list: MessageList = inquiry.args.message_list  # type: ignore[attr-defined]
        secret = "\n".join(message.text for message in message_list.system_messages)[:LONGEST_INSTRUCTIONS]
        material = f"Instructions:\n{enclosed(secret)}\n\nText:\n{inquiry.text}"
        verdict = await self._judge.ask(
            material, context=inquiry.context, signal=inquiry.signal, usage=inquiry.usage
        )
        found = [one for one in verdict.detections if one.confidence >= self._leaks.threshold]
        if not found:
            return None
        placeholder = self._leaks.placeholder_text if self._leaks.redaction_method == "placeholder" else ""
        refusal = refusal_of(inquiry.text, found, method=self._leaks.redaction_method, key=self._hash_key, placeholder=placeholder, words=verdict.reason or "")  # fmt: skip
        refusal.extra["strategy"] = self._leaks.strategy
        return refusal

    def reason(self, refusal: Refusal) -> str:
        return f"{self.subject}."


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> SystemPromptJudge:
        return SystemPromptJudge(id, options, context)

    registry.register(ProcessorKind(
        slug=SLUG, title="Instructions given away, judged", description="A model finds passages of answers that give away the agent's instructions, also in other words.",
        options=SystemPromptJudgeOptions, factory=build, stages=frozenset({"output"}), redacts=True, group="Judged by a model",
    ))  # fmt: skip
