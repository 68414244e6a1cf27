"""Formats of our own: a pattern proposes, a check decides. The patterns run on `re` and are written to stay linear.

A check may look at the text before a candidate (`look_back` characters) and inside it, and may shorten it; it never looks
behind its end, so that streaming and whole texts agree. What must follow belongs into the pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from processors.builtin.detectors.findings import Finding
from processors.builtin.detectors.pattern_shape import longest_match, parse, unfinished_pattern

Span: TypeAlias = tuple[int, int]
Check: TypeAlias = Callable[[str, int, int], Span | None]

LOOK_BACK: Final = 48
"""Characters before a candidate that a check may read."""


SHORT: Final = 256
"""Characters up to which the gate is quicker than asking every group."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A format. needs: a pattern that each match of the format contains, at its left or right border at most; only text
    near it is searched.

    check: (text, start, end) → the finding's span or None. It may read `LOOK_BACK` characters before start.
    group: the group of the pattern that is the finding; the rest is what must follow.
    """

    type: str
    name: str
    pattern: str
    check: Check | None = None
    needs: str = r"\d"
    group: int = 0


class CandidateMatcher:
    """Several formats as one matcher.

    word_run: the characters that an unfinished match without any of `signs` consists of, if that is all it can be; the
    stream then needs no more than the last word (and what `begins` says).
    gate: something that every match contains, quick to look for in a short text.
    """

    look_back = LOOK_BACK

    def __init__(
        self,
        candidates: Sequence[Candidate],
        *,
        signs: str = "",
        word: str = "",
        begins: str = "",
        gate: str = "",
    ) -> None:
        nodes = [parse(candidate.pattern) for candidate in candidates]
        lengths = [longest_match(node) for node in nodes]
        unlimited = [candidate.name for candidate, n in zip(candidates, lengths, strict=True) if n is None]
        if unlimited:
            raise ValueError(f"Candidates need a longest match: {', '.join(unlimited)}.")
        self._tail = max((length or 0 for length in lengths), default=0) + 1
        self._groups = [
            _Group(need, [(c, n or 0) for c, n in zip(candidates, lengths, strict=True) if c.needs == need])
            for need in sorted({candidate.needs for candidate in candidates})
        ]
        self._gate = re.compile(gate) if gate else None
        unfinished = dict.fromkeys(unfinished_pattern(node) for node in nodes)
        self._unfinished = re.compile(f"(?:{'|'.join(f'(?:{one})' for one in unfinished)})\\Z")
        self._signs = re.compile(signs) if signs else None
        self._word = re.compile(f"{word}*\\Z") if word else None
        self._begins = re.compile(f"(?:{begins})\\Z") if begins else None

    def find(self, text: str, start: int) -> list[Finding]:
        if self._gate is not None and len(text) - start < SHORT and self._gate.search(text, start) is None:
            return []
        found: list[Finding] = []
        for group in self._groups:
            group.find(text, start, found)
        return found

    def open_from(self, text: str, start: int) -> int:
        size = len(text)
        tail = max(start, size - self._tail)
        if self._word is not None and self._signs is not None and self._signs.search(text, tail) is None:
            blank = text.rfind(" ", tail) + 1
            if size - blank <= 64 and (blank or tail == 0):
                tail = max(tail, blank)
                if self._begins is None or (begun := self._begins.search(text, start)) is None:
                    word = self._word.search(text, tail)
                    return word.start() if word is not None else size
                tail = min(tail, begun.start())
        match = self._unfinished.search(text, tail)
        return match.start() if match is not None else size


class _Group:
    """Formats that need the same thing. They are searched near that thing only."""

    def __init__(self, needs: str, candidates: list[tuple[Candidate, int]]) -> None:
        self.needs = re.compile(needs)
        self.patterns = [(candidate, re.compile(candidate.pattern)) for candidate, _ in candidates]
        self.reach = max(length for _, length in candidates) + 2

    def find(self, text: str, start: int, found: list[Finding]) -> None:
        reach, low, high = self.reach, -1, -1
        for need in self.needs.finditer(text, start):
            if high < 0 or need.start() - reach > high:
                if high >= 0:
                    self._search(text, low, high, found)
                low = max(start, need.start() - reach)
            high = need.end() + reach
        if high >= 0:
            self._search(text, low, high, found)

    def _search(self, text: str, low: int, high: int, found: list[Finding]) -> None:
        for candidate, pattern in self.patterns:
            found += _matches(candidate, pattern, text, low, high)


def _matches(
    candidate: Candidate, pattern: re.Pattern[str], text: str, low: int, high: int
) -> Iterable[Finding]:
    at, check, group = low, candidate.check, candidate.group
    while (match := pattern.search(text, at, high)) is not None:
        span: Span | None = match.span(group)
        if check is not None:
            span = check(text, *match.span(group))
        if span is None:
            at = match.start() + 1
            continue
        yield Finding(span[0], span[1], candidate.type, candidate.name, begin=match.start())
        at = max(span[1], match.start() + 1)


def before(text: str, start: int) -> str:
    """The text that a check may read before a candidate, in small letters."""
    return text[max(0, start - LOOK_BACK) : start].lower()
