"""A policy in plain words, with examples of what it means, judged by a model."""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel, Field, model_validator

from processors.builtin.judge import Judge, resolved_model
from processors.builtin.judging import (
    STRATEGY_LABELS,
    Inquiry,
    JudgedGuardrail,
    JudgeOptions,
    Refusal,
    Strategy,
)
from processors.engine.ports import BuildContext
from processors.engine.registry import ProcessorKind, Registry

SLUG: Final = "policy-judge"


class PolicyVerdict(BaseModel):
    """violates: whether the text breaks the policy. confidence: how sure that is, 0 to 1. reason: which sentence of the policy
    is broken and why, without quoting the text. rewritten: the text changed as little as possible so that it keeps the policy;
    null unless asked for."""

    violates: bool
    confidence: float = Field(ge=0, le=1)
    reason: str = ""
    rewritten: str | None = None


class PolicyJudgeOptions(JudgeOptions):
    """The policy and what happens to texts that break it."""

    policy: str = Field(title="Policy", description="What is not allowed, in plain words, such as “No advice on medicines. General health tips are fine.”", min_length=10, max_length=8000, json_schema_extra={"x-widget": "textarea"})  # fmt: skip
    name: str = Field("policy", title="Short name", description="Names the policy in the audit and to the person.", min_length=1, max_length=60)  # fmt: skip
    refused_examples: list[str] = Field(default_factory=list, title="Examples that break it", description="One text each.", max_length=20)  # fmt: skip
    allowed_examples: list[str] = Field(default_factory=list, title="Examples that keep it", description="Texts close to the border that are fine; they prevent false alarms.", max_length=20)  # fmt: skip
    strategy: Strategy = Field("block", title="What to do", description="Stop the run, ask for another answer, withhold or reword the refused part, or only report.", json_schema_extra={"x-labels": STRATEGY_LABELS})  # fmt: skip
    threshold: float = Field(0.5, title="Surety", description="A text counts as breaking the policy when the judge is at least this sure, 0 to 1.", gt=0, le=1)  # fmt: skip

    @model_validator(mode="after")
    def _examples_agree(self) -> PolicyJudgeOptions:
        both = set(self.refused_examples) & set(self.allowed_examples)
        if both:
            raise ValueError("An example stands in both lists; leave it in one of them.")
        return self


class PolicyJudge(JudgedGuardrail):
    """One question per message or window: does it break the policy?"""

    subject = "Not allowed by"

    def __init__(self, id: str, options: PolicyJudgeOptions, context: BuildContext) -> None:
        super().__init__(id, options, context, strategy=options.strategy)
        self._policy = options
        self._judge = Judge(
            resolved_model(options.model, context), _question(options), PolicyVerdict, timeout=options.timeout,
            max_chars=options.max_chars, budget=self._budget(options), native_schema=options.native_schema,
        )  # fmt: skip

    @staticmethod
    def _budget(options: PolicyJudgeOptions) -> int:
        """Rewording needs room for the text itself."""
        return options.budget + options.window_chars * 16 if options.strategy == "rewrite" else options.budget

    async def opinion(self, inquiry: Inquiry) -> Refusal | None:
        verdict = await self._judge.ask(
            inquiry.text, context=inquiry.context, signal=inquiry.signal, usage=inquiry.usage
        )
        if not verdict.violates or verdict.confidence < self._policy.threshold:
            return None
        return Refusal([self._policy.name], verdict.confidence, rule=self._policy.name, words=verdict.reason, replacement=verdict.rewritten or None)  # fmt: skip


def _question(options: PolicyJudgeOptions) -> str:
    parts = [f"Decide whether the text breaks this policy:\n{options.policy}"]
    if options.refused_examples:
        parts.append("These break it:\n" + "\n".join(f"- {text}" for text in options.refused_examples))
    if options.allowed_examples:
        parts.append("These keep it:\n" + "\n".join(f"- {text}" for text in options.allowed_examples))
    if options.strategy == "rewrite":
        parts.append(
            "If it breaks the policy, give in `rewritten` the whole text, changed as little as possible so that it keeps it."
        )
    return "\n\n".join([*parts, options.instructions])


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> PolicyJudge:
        return PolicyJudge(id, options, context)

    registry.register(ProcessorKind(
        slug=SLUG, title="Policy in plain words", description="A model judges texts by a policy that you write, with examples.",
        options=PolicyJudgeOptions, factory=build, stages=frozenset({"input", "output"}), group="Judged by a model",
    ))  # fmt: skip
