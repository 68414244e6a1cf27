"""Scores a text's likeness to an attack on a model's instructions, over all its readings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final

from processors.builtin.detectors.injection_rules import (
    IN_TOOL_RESULTS,
    PHRASE_RULES,
    REPEATED,
    SENTENCE_RULES,
)
from processors.builtin.detectors.injection_words import WORDS
from processors.builtin.detectors.lexicon import Lexicon, Needles, sentences
from processors.builtin.detectors.views import View, views

DISGUISED: Final = 0.3
"""Weight of saying anything suspicious through an encoding."""
TOGETHER: Final = 1_500
"""Characters within which signs add up."""
MOST_SIGNS: Final = 300
REWRITTEN: Final = frozenset({"rot13", "backwards", "leet"})
"""Readings that every text has; they are judged only if they have words in them."""
TELLING: Final = frozenset({"override", "instructions", "secret", "system_prompt", "dan", "mode"})


@dataclass(frozen=True, slots=True)
class Sign:
    """One sign of an attack. start, end: raw characters. view: the reading it was seen in."""

    start: int
    end: int
    rule: str
    type: str
    weight: float
    view: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """score: 0 to 1; signs that do not depend on each other add up. signs: those of the reading with the highest score."""

    score: float
    signs: tuple[Sign, ...]

    @property
    def types(self) -> list[str]:
        return list(dict.fromkeys(sign.type for sign in sorted(self.signs, key=lambda sign: -sign.weight)))


@cache
def _lexicon() -> Lexicon:
    return Lexicon(WORDS)


@cache
def _needles() -> Needles:
    return Needles({need for phrase in PHRASE_RULES for need in phrase.needs})


def judge(
    text: str, *, decode: bool = True, types: Iterable[str] | None = None, from_tool: bool = False
) -> Verdict:
    """The verdict on a text.

    decode: also judge encoded and rewritten readings. types: kinds of attack that count. from_tool: the text is what a
    tool returned, where words to the model weigh more.
    """
    wanted = set(types) if types is not None else None
    best = Verdict(0.0, ())
    for view in views(text, decode=decode):
        signs = [
            sign for sign in signs_in(view, from_tool=from_tool) if wanted is None or sign.type in wanted
        ]
        if not signs:
            continue
        score, near = _strongest(signs[:MOST_SIGNS], disguised=view.name not in ("plain", *REWRITTEN))
        if score > best.score:
            best = Verdict(score, tuple(near))
    return best


def _strongest(signs: list[Sign], *, disguised: bool) -> tuple[float, list[Sign]]:
    """The highest score of signs that stand together. In a long text, weak signs far apart do not add up."""
    best: tuple[float, list[Sign]] = (0.0, [])
    for first in signs:
        near = [sign for sign in signs if first.start <= sign.start <= first.start + TOGETHER]
        weights: dict[str, float] = {}
        for sign in near:
            weights[sign.rule] = max(weights.get(sign.rule, 0.0), sign.weight)
        left = 1.0 - (DISGUISED if disguised else 0.0)
        for weight in weights.values():
            left *= 1.0 - weight
        best = max(best, (round(1.0 - left, 3), near), key=lambda pair: pair[0])
    return best


def signs_in(view: View, *, from_tool: bool = False) -> list[Sign]:
    """The signs of one reading."""
    text = view.text
    found: list[Sign] = []

    def add(rule: str, kind: str, weight: float, span: tuple[int, int]) -> None:
        start, end = view.raw_span(*span)
        found.append(Sign(start, end, rule, kind, weight, view.name))

    words = _lexicon().hits(text)
    if view.name in REWRITTEN and TELLING.isdisjoint({hit.category for hit in words}):
        return []
    for begin, end, hits in sentences(text, words):
        categories = {hit.category for hit in hits}
        for rule in SENTENCE_RULES:
            if rule.needs <= categories and (span := rule.find(hits, text[begin:end])) is not None:
                add(rule.name, rule.type, rule.weight, span)
    present = _needles().in_text(text)
    for phrase in PHRASE_RULES:
        if not present.isdisjoint(phrase.needs) and (match := phrase.pattern.search(text)) is not None:
            weight = IN_TOOL_RESULTS.get(phrase.name, phrase.weight) if from_tool else phrase.weight
            add(phrase.name, phrase.type, weight, match.span())
    if view.name == "plain" and (match := REPEATED.search(text)) is not None:
        add("repeated-token", "injection", 0.7, match.span())
    return found
