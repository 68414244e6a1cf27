"""Word lists of any size in any script: Aho-Corasick over folded text, findings in the original's characters.

Folding makes spellings equal that people read as the same word: case, full width and composed forms, runs of blanks, and
characters that show nothing. With `look_alikes` also letters of other scripts that look like Latin ones, and accents.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, Final

import ahocorasick

from processors.builtin.detectors.findings import Finding
from processors.builtin.detectors.look_alikes import LATIN_LOOK_ALIKES

_SIMPLE: Final = re.compile(r"[\x21-\x7e]+(?: [\x21-\x7e]+)*")
_ACCENTS: Final = range(0x300, 0x370)
_INVISIBLE: Final = re.compile("[\u034f\u115f\u1160\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Fillers, joiners and variation selectors: they show nothing and are no format characters."""


class Folding:
    """Folds characters one by one, so that folding a piece of a text is a piece of the folded text.

    accents: keep them. Left out, they go when look-alikes are folded. between_words: everything that is no letter, digit
    or apostrophe counts as a blank.
    """

    def __init__(
        self, *, look_alikes: bool = True, accents: bool | None = None, between_words: bool = False
    ) -> None:
        self._look_alikes = look_alikes
        self._between_words = between_words
        self._strip_accents = look_alikes if accents is None else not accents
        self._table: dict[str, str] = {}

    def fold(self, text: str) -> tuple[str, list[int] | None]:
        """(folded text, for each folded character the position it came from). None: the positions are the same."""
        if (
            not self._between_words
            and text.isascii()
            and _SIMPLE.fullmatch(text.strip(" "))
            and "  " not in text
        ):
            return text.lower(), None
        table, pieces, places = self._table, [], []
        blank = False
        for place, character in enumerate(text):
            folded = table.get(character)
            if folded is None:
                folded = table[character] = self._fold_one(character)
            if folded == " ":
                if blank:
                    continue
                blank = True
            elif folded:
                blank = False
            pieces.append(folded)
            places += (place,) * len(folded)
        return "".join(pieces), places

    def _fold_one(self, character: str) -> str:
        if character.isspace():
            return " "
        if unicodedata.category(character) in ("Cf", "Cc") or _INVISIBLE.match(character):
            return ""
        if self._between_words and not (
            character.isalnum() or character == "'" or unicodedata.category(character)[0] == "M"
        ):
            return "'" if character == "’" else " "
        if self._look_alikes and character in LATIN_LOOK_ALIKES:
            return LATIN_LOOK_ALIKES[character]
        folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", character).casefold()).casefold()
        if self._look_alikes:
            folded = "".join(LATIN_LOOK_ALIKES.get(piece, piece) for piece in folded)
        if self._strip_accents:
            folded = "".join(piece for piece in folded if ord(piece) not in _ACCENTS)
        return folded if not folded.isspace() else " "


class WordMatcher:
    """Finds the words and phrases of a list.

    whole_words: a match must not stand inside a longer word. Scripts without blanks between words (Han, Kana, Thai …)
    have no such borders, so there it never asks for one.
    """

    look_back = 8
    """Enough to see the character before a match through a few that show nothing."""

    def __init__(
        self, words: Iterable[str] | Mapping[str, str], *, whole_words: bool = True, look_alikes: bool = True,
        type: str = "word", allowed: Iterable[str] = (), between_words: bool = False,
    ) -> None:  # fmt: skip
        self._folding = Folding(look_alikes=look_alikes, between_words=between_words)
        self._whole_words, self._type = whole_words, type
        self._trie: Any = ahocorasick.Automaton()
        labels = words if isinstance(words, Mapping) else {word: word for word in words}
        self._longest = 0
        for word, label in labels.items():
            folded = self._folding.fold(word.strip())[0].strip()
            if folded:
                self._trie.add_word(folded, (len(folded), label))
                self._longest = max(self._longest, len(folded))
        self._empty = self._longest == 0
        firsts = {word[0] for word in self._trie} if not self._empty else set()
        self._first = re.compile(f"[{''.join(map(re.escape, sorted(firsts)))}]") if firsts else None
        if not self._empty:
            self._trie.make_automaton()
        allowed = [word for word in allowed if word.strip()]
        self._allowed = (
            WordMatcher(allowed, whole_words=whole_words, look_alikes=look_alikes) if allowed else None
        )

    def __len__(self) -> int:
        return len(self._trie)

    def find(self, text: str, start: int) -> list[Finding]:
        if self._empty or len(text) <= start:
            return []
        base = max(0, start - self.look_back)
        folded, places = self._folding.fold(text[base:])
        found: list[Finding] = []
        for last, (length, label) in self._trie.iter(folded):
            first = last - length + 1
            if self._whole_words and not (self._begins(folded, places, first) and _border(folded, last + 1)):
                continue
            begin = base + (first if places is None else places[first])
            end = base + (last if places is None else places[last]) + 1
            if begin >= start:
                found.append(Finding(begin, end, self._type, label))
        if found and self._allowed is not None:
            exceptions = self._allowed.find(text, base)
            found = [f for f in found if not any(e.start <= f.start and f.end <= e.end for e in exceptions)]
        return found

    def open_from(self, text: str, start: int) -> int:
        if self._empty:
            return len(text)
        base = max(0, start - self.look_back)
        folded, places = self._folding.fold(text[base:])
        at = self._first_open(folded, places, 0 if places is None else _index_of(places, start - base))
        if places is None:
            at = max(at, start - base)
            opened = base + at
        else:
            opened = base + places[at] if at < len(places) else len(text)
        if self._allowed is not None:
            opened = min(opened, self._allowed.open_from(text, start))
        return max(start, opened)

    def _begins(self, folded: str, places: list[int] | None, at: int) -> bool:
        """Whether a word may begin here, seen from no further than `look_back`: a stream remembers no more."""
        if places is not None and at > 0 and places[at] - places[at - 1] > self.look_back:
            return True
        return _border(folded, at)

    def _first_open(self, folded: str, places: list[int] | None, low: int) -> int:
        """The first place in the folded text from which the rest begins a word of the list and its end is open."""
        size, trie = len(folded), self._trie
        at = max(low, size - self._longest)
        while self._first is not None and (found := self._first.search(folded, at)) is not None:
            at = found.start()
            rest = folded[at:]
            if self._whole_words:
                if self._begins(folded, places, at) and trie.match(rest):
                    return at  # the beginning of a word, or a whole one whose end is open
            elif trie.match(rest) and (not trie.exists(rest) or self._continues(rest)):
                return at
            at += 1
        return size

    def _continues(self, word: str) -> bool:
        """Whether a longer word of the list begins with this one."""
        return len(list(itertools.islice(self._trie.keys(word), 2))) > 1


def _index_of(places: list[int], position: int) -> int:
    """The first folded character that came from `position` or later."""
    low, high = 0, len(places)
    while low < high:
        middle = (low + high) // 2
        if places[middle] < position:
            low = middle + 1
        else:
            high = middle
    return low


def _border(folded: str, at: int) -> bool:
    """Whether a word may begin or end between `at - 1` and `at`."""
    if at <= 0 or at >= len(folded):
        return True
    before, after = folded[at - 1], folded[at]
    return not (_joins(before) and _joins(after)) or _unspaced(before) or _unspaced(after)


def _joins(character: str) -> bool:
    """Letters, digits and the marks that belong to them: nothing of a word ends between two of these."""
    return character.isalnum() or character == "_" or unicodedata.category(character)[0] == "M"


def _unspaced(character: str) -> bool:
    """Scripts written without blanks between words."""
    code = ord(character)
    return (
        0x0E00 <= code <= 0x0EFF  # Thai, Lao
        or 0x1000 <= code <= 0x109F  # Myanmar
        or 0x1780 <= code <= 0x17FF  # Khmer
        or 0x3040 <= code <= 0x30FF  # Kana
        or 0x3400 <= code <= 0x9FFF  # Han
        or 0x20000 <= code <= 0x3FFFF
    )
