"""Finds personal data that has no format, such as names and postal addresses, with a model, and hides it."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, Field

from processors.builtin.judge import Judge, resolved_model
from processors.builtin.judged_spans import METHOD_LABELS, CategoryScore, Detection, Method, refusal_of
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

SLUG: Final = "personal-data-judge"
TYPES: Final = (
    "name", "address", "date-of-birth", "email", "phone", "credit-card", "ssn", "iban", "ip-address", "url", "uuid",
    "crypto-wallet", "api-key",
)  # fmt: skip


class PersonalDataVerdict(BaseModel):
    """categories: types that occur, scored. detections: every single piece of personal data, its value copied exactly."""

    categories: list[CategoryScore] = Field(default_factory=list)
    detections: list[Detection] = Field(default_factory=list)


class PersonalDataJudgeOptions(JudgeOptions):
    """What is looked for and what happens to it."""

    detection_types: list[str] = Field(default_factory=lambda: list(TYPES), title="Personal data", description="What is looked for. What has a format, such as e-mail addresses, is found faster and more surely without a model.", min_length=1, max_length=40)  # fmt: skip
    threshold: float = Field(0.6, title="Surety", description="A find counts when the judge is at least this sure, 0 to 1.", gt=0, le=1)  # fmt: skip
    strategy: Literal["redact", "block", "retry", "filter", "warn"] = Field("redact", title="What to do", description="Hide what was found, stop the run, ask for another answer, withhold the part that holds it, or only report.", json_schema_extra={"x-labels": {**STRATEGY_LABELS, "redact": "Hide what was found"}})  # fmt: skip
    redaction_method: Method = Field("placeholder", title="What is shown instead", description="When hiding: the type in brackets, stars, a keyed hash, or nothing.", json_schema_extra={"x-labels": METHOD_LABELS, "x-show-if": {"strategy": ["redact"]}})  # fmt: skip
    tool_arguments: bool = Field(False, title="Judge tool arguments", description="Also judge what the model hands to tools. A find stops the run, as arguments can't be hidden from their tool.", json_schema_extra={"x-group": "Where"})  # fmt: skip


class PersonalDataJudge(JudgedGuardrail):
    """What the judge says is there but cannot be found in the text stops the run instead of passing."""

    subject = "Personal data found"

    def __init__(self, id: str, options: PersonalDataJudgeOptions, context: BuildContext) -> None:
        strategy: Strategy = "rewrite" if options.strategy == "redact" else options.strategy
        super().__init__(id, options, context, strategy=strategy)
        self._data = options
        self._types = {name.strip().lower() for name in options.detection_types}
        self._judge = Judge(
            resolved_model(options.model, context),
            f"Find personal data of these kinds in the text: {', '.join(sorted(self._types))}. Give every single piece, its value copied "
            f"exactly as it stands there. Companies, places and products by themselves are no personal data.\n{options.instructions}",
            PersonalDataVerdict, timeout=options.timeout, max_chars=options.max_chars, budget=options.budget, native_schema=options.native_schema,
        )  # fmt: skip

    async def opinion(self, inquiry: Inquiry) -> Refusal | None:
        verdict = await self._judge.ask(
            inquiry.text, context=inquiry.context, signal=inquiry.signal, usage=inquiry.usage
        )
        found = [
            one
            for one in verdict.detections
            if one.type.lower() in self._types and one.confidence >= self._data.threshold
        ]
        named = {one.type.lower() for one in found}
        found += [
            Detection(type=one.type, value="", confidence=one.score) for one in verdict.categories
            if one.type.lower() in self._types - named and one.score >= self._data.threshold
        ]  # fmt: skip
        if not found:
            return None
        refusal = refusal_of(inquiry.text, found, method=self._data.redaction_method, key=self._hash_key)
        refusal.extra["strategy"] = self._data.strategy
        return refusal


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> PersonalDataJudge:
        return PersonalDataJudge(id, options, context)

    registry.register(ProcessorKind(
        slug=SLUG, title="Names and addresses", description="A model finds names, postal addresses and other personal data that has no format, and hides them.",
        options=PersonalDataJudgeOptions, factory=build, stages=frozenset({"input", "output"}), redacts=True, group="Judged by a model",
    ))  # fmt: skip
