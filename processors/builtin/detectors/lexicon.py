"""Finds words of several categories in one pass, and categories that stand near each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import ahocorasick

from processors.builtin.detectors.words import Folding

_FOLD: Final = Folding(look_alikes=False, accents=False)
_SENTENCE_END: Final = re.compile(r"[!?\n。！？؟।;]|\.(?!\w)")


@dataclass(frozen=True, slots=True)
class Hit:
    """A word of a category in folded text."""

    start: int
    end: int
    category: str


class Lexicon:
    """Categories of words. Entries are split at ";"; one that ends with $ must end where a word ends."""

    def __init__(self, categories: Mapping[str, str]) -> None:
        entries: dict[str, list[tuple[str, bool]]] = {}
        for category, words in categories.items():
            for entry in words.split(";"):
                whole = entry.strip().endswith("$")
                word = _FOLD.fold(entry.strip().removesuffix("$"))[0]
                if word:
                    entries.setdefault(word, []).append((category, whole))
        self._automaton: Any = ahocorasick.Automaton()
        for word, uses in entries.items():
            self._automaton.add_word(word, (len(word), tuple(dict.fromkeys(uses))))
        self._automaton.make_automaton()

    def hits(self, folded: str) -> list[Hit]:
        """All words found, by their end. A word must begin where a word begins, except in scripts without blanks."""
        found: list[Hit] = []
        for last, (length, uses) in self._automaton.iter(folded):
            start = last - length + 1
            if start and _same_word(folded[start - 1], folded[start]):
                continue
            open_end = last + 1 < len(folded) and _same_word(folded[last], folded[last + 1])
            found += [Hit(start, last + 1, category) for category, whole in uses if not (whole and open_end)]
        return found


class Needles:
    """Which of many short texts occur, in one pass."""

    def __init__(self, needles: Iterable[str]) -> None:
        self._automaton: Any = ahocorasick.Automaton()
        for needle in needles:
            self._automaton.add_word(needle, needle)
        self._automaton.make_automaton()

    def in_text(self, text: str) -> set[str]:
        return {needle for _, needle in self._automaton.iter(text)}


def _same_word(before: str, after: str) -> bool:
    return before.isalnum() and after.isalnum() and ord(after) < 0x0E00 and ord(before) < 0x0E00


def sentences(folded: str, hits: list[Hit], *, longest: int = 300) -> list[tuple[int, int, list[Hit]]]:
    """The hits by sentence: (start, end, hits). A sentence ends at its punctuation or after `longest` characters."""
    groups: list[tuple[int, int, list[Hit]]] = []
    ordered = sorted(hits, key=lambda hit: hit.start)
    at = 0
    start = 0
    while at < len(ordered):
        start = ordered[at].start
        end = _sentence_end(folded, start, longest)
        here = []
        while at < len(ordered) and ordered[at].start < end:
            here.append(ordered[at])
            at += 1
        groups.append((start, end, here))
    return groups


def _sentence_end(folded: str, start: int, longest: int) -> int:
    limit = min(len(folded), start + longest)
    match = _SENTENCE_END.search(folded, start, limit)
    return match.end() if match is not None else limit


def nearest(hits: list[Hit], first: str, second: str, reach: int) -> tuple[int, int] | None:
    """The span of a `first` and a `second` at most `reach` characters apart, in any order, not overlapping."""
    ones = [hit for hit in hits if hit.category == first]
    others = [hit for hit in hits if hit.category == second]
    for one in ones:
        for other in others:
            gap = max(other.start - one.end, one.start - other.end)
            if 0 <= gap <= reach:
                return min(one.start, other.start), max(one.end, other.end)
    return None
