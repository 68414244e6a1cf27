"""Scores a text's likeness to an attack on a model's instructions, over all its readings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final

from processors.builtin.detectors.injection_rules import PHRASE_RULES, REPEATED, SENTENCE_RULES
from processors.builtin.detectors.injection_words import WORDS
from processors.builtin.detectors.lexicon import Lexicon, sentences
from processors.builtin.detectors.views import View, views

DISGUISED: Final = 0.3
"""Weight of saying anything suspicious through an encoding."""


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


def judge(text: str, *, decode: bool = True, types: Iterable[str] | None = None) -> Verdict:
    """The verdict on a text. decode: also judge encoded and rewritten readings. types: kinds of attack that count."""
    wanted = set(types) if types is not None else None
    best = Verdict(0.0, ())
    for view in views(text, decode=decode):
        signs = [sign for sign in signs_in(view) if wanted is None or sign.type in wanted]
        if not signs:
            continue
        score = _combined(signs, disguised=view.name not in ("plain", "rot13", "backwards", "leet"))
        if score > best.score:
            best = Verdict(score, tuple(signs))
    return best


def _combined(signs: list[Sign], *, disguised: bool) -> float:
    weights: dict[str, float] = {}
    for sign in signs:
        weights[sign.rule] = max(weights.get(sign.rule, 0.0), sign.weight)
    left = 1.0 - (DISGUISED if disguised else 0.0)
    for weight in weights.values():
        left *= 1.0 - weight
    return round(1.0 - left, 3)


def signs_in(view: View) -> list[Sign]:
    """The signs of one reading."""
    text = view.text
    found: list[Sign] = []

    def add(rule: str, kind: str, weight: float, span: tuple[int, int]) -> None:
        start, end = view.raw_span(*span)
        found.append(Sign(start, end, rule, kind, weight, view.name))

    for begin, end, hits in sentences(text, _lexicon().hits(text)):
        sentence = text[begin:end]
        for rule in SENTENCE_RULES:
            if (span := rule.find(hits, sentence)) is not None:
                add(rule.name, rule.type, rule.weight, span)
    for phrase in PHRASE_RULES:
        if any(need in text for need in phrase.needs) and (match := phrase.pattern.search(text)) is not None:
            add(phrase.name, phrase.type, phrase.weight, match.span())
    if view.name == "plain" and (match := REPEATED.search(text)) is not None:
        add("repeated-token", "injection", 0.7, match.span())
    return found
