"""Moderation: a model scores a text by categories; a score over its threshold refuses it."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, Field, model_validator

from processors.builtin.judge import Judge, JudgeError, resolved_model
from processors.builtin.judging import STRATEGY_LABELS, Inquiry, JudgedGuardrail, JudgeOptions, Refusal
from processors.engine.ports import BuildContext
from processors.engine.registry import ProcessorKind, Registry

SLUG: Final = "moderation"
CATEGORIES: Final = {
    "hate": "hatred of a group because of what its members are",
    "hate/threatening": "such hatred with violence or serious harm",
    "harassment": "language that torments or degrades a person",
    "harassment/threatening": "harassment with violence or serious harm",
    "self-harm": "promotes or depicts self-harm, suicide or eating disorders",
    "self-harm/intent": "the writer means to harm themselves",
    "self-harm/instructions": "tells how to harm oneself",
    "sexual": "meant to arouse sexually",
    "sexual/minors": "sexual content with anyone under 18",
    "violence": "death, violence or injury",
    "violence/graphic": "the same in graphic detail",
}


class CategoryScore(BaseModel):
    category: str
    score: float = Field(ge=0, le=1)


class Scores(BaseModel):
    """The verdict. category_scores: only categories that occur, each with a score from 0 to 1."""

    category_scores: list[CategoryScore]
    reason: str | None = None


class ModerationOptions(JudgeOptions):
    """Which categories count, and from which score."""

    strategy: Literal["block", "retry", "filter", "warn"] = Field("block", title="What to do", description="Stop the run, ask for another answer, withhold the refused part, or only report.", json_schema_extra={"x-labels": STRATEGY_LABELS})  # fmt: skip
    categories: list[str] = Field(default_factory=lambda: list(CATEGORIES), title="Categories", description="What is looked for. You may add your own, such as “medical advice”.", min_length=1, max_length=40)  # fmt: skip
    threshold: float = Field(0.5, title="Threshold", description="A category counts from this score on, 0 to 1. Lower catches more and errs more.", gt=0, le=1)  # fmt: skip
    thresholds: dict[str, float] = Field(default_factory=dict, title="Thresholds of single categories", description="Category and score, where they differ from the general threshold.", json_schema_extra={"x-advanced": True})  # fmt: skip
    include_scores: bool = Field(True, title="Keep the scores", description="Put every category's score into the audit.", json_schema_extra={"x-advanced": True})  # fmt: skip

    @model_validator(mode="after")
    def _thresholds_name_categories(self) -> ModerationOptions:
        for name, value in self.thresholds.items():
            if _plain(name) not in map(_plain, self.categories):
                raise ValueError(f"There is a threshold for {name!r}, which is not among the categories; add it or take the threshold out.")  # fmt: skip
            if not 0 < value <= 1:
                raise ValueError(f"The threshold of {name!r} is {value:g}; it must be above 0 and at most 1.")
        return self


def _plain(category: str) -> str:
    return "/".join(part.strip() for part in category.lower().split("/"))


class Moderation(JudgedGuardrail):
    """Asks a model for scores. A category that nobody asked for is no verdict."""

    subject = "Content flagged for moderation"

    def __init__(self, id: str, options: ModerationOptions, context: BuildContext) -> None:
        super().__init__(id, options, context, strategy=options.strategy)
        own = {_plain(name): value for name, value in options.thresholds.items()}
        self._thresholds = {
            _plain(name): own.get(_plain(name), options.threshold) for name in options.categories
        }
        self._scores = options.include_scores
        listed = "\n".join(
            f"- {name}" + (f": {CATEGORIES[name]}" if name in CATEGORIES else "") for name in self._thresholds
        )
        self._judge = Judge(
            resolved_model(options.model, context),
            "You are a content moderator. Score the text in these categories, 0 for certainly not to 1 for certainly. Leave out "
            f"categories that do not occur. Talking about a subject, or asking for help, is no offence.\n{listed}\n{options.instructions}",
            Scores, timeout=options.timeout, max_chars=options.max_chars, budget=options.budget, native_schema=options.native_schema,
        )  # fmt: skip

    async def opinion(self, inquiry: Inquiry) -> Refusal | None:
        verdict = await self._judge.ask(
            inquiry.text, context=inquiry.context, signal=inquiry.signal, usage=inquiry.usage
        )
        scores: dict[str, float] = {}
        for one in verdict.category_scores:
            name = _plain(one.category)
            if name not in self._thresholds and name not in CATEGORIES:
                raise JudgeError("The judge scored a category that it was not asked about.")
            scores[name] = max(scores.get(name, 0.0), one.score)
        over = sorted((name for name, limit in self._thresholds.items() if scores.get(name, 0.0) >= limit), key=lambda name: -scores[name])  # fmt: skip
        if not over:
            return None
        extra = {"scores": scores} if self._scores else {}
        return Refusal(over, scores[over[0]], words=verdict.reason or "", extra=extra)


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> Moderation:
        return Moderation(id, options, context)

    registry.register(ProcessorKind(
        slug=SLUG, title="Moderation", description="A model scores messages and answers by categories such as hate or self-harm.",
        options=ModerationOptions, factory=build, stages=frozenset({"input", "output"}), group="Judged by a model",
    ))  # fmt: skip
