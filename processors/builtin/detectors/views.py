"""What a text says to a model that reads through disguises: folded, hidden, spelled apart, leet, reversed and encoded views.

Each view knows where in the raw text it came from. Views are searched; what people see is never rewritten. Depth and
size are bounded: hostile text costs linear time.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from processors.builtin.detectors.encodings import RUNS, SIGNS, decoded
from processors.builtin.detectors.look_alikes import LATIN_LOOK_ALIKES
from processors.builtin.detectors.words import Folding

MAX_DEPTH: Final = 2
MAX_DECODED: Final = 100_000
"""Characters of all decoded views together."""
LONG_TEXT: Final = 20_000
"""Characters above which the rewritten views (leet, reversed, rot13 …) are left out; their words would have stood out."""


@dataclass(frozen=True, slots=True)
class View:
    """A reading of the text. name: "plain", "hidden", "decoded:base64" … places: raw position of each character, or
    None if the whole view came from raw characters `start` to `end`."""

    name: str
    text: str
    start: int
    end: int
    places: list[int] | None = None

    def raw_span(self, start: int, end: int) -> tuple[int, int]:
        """Where in the raw text a part of the view came from."""
        if self.places is None or not self.places:
            return self.start, self.end
        first, last = self.places[start], self.places[min(end, len(self.places)) - 1]
        return min(first, last), max(first, last) + 1


_FOLD: Final = Folding(look_alikes=False, accents=False)
_MIXED: Final = re.compile(
    "[A-Za-z][\u0370-\u052f\u0531-\u058f]|[\u0370-\u052f\u0531-\u058f][A-Za-z]|[\u1d00-\u1d2f\u0250-\u02af]"
)
_SPACED: Final = re.compile(r"(?<![^\W_])(?:[^\W\d_][ .\-_*|]){3,60}[^\W\d_](?![^\W_])")
_LEET_WORD: Final = re.compile(r"[a-z0-9@$!|]*[a-z][a-z0-9@$!|]*")
_LEET: Final = str.maketrans("013456789@$!|", "oieasgtbgasil")
_ROT13: Final = str.maketrans(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "nopqrstuvwxyzabcdefghijklmNOPQRSTUVWXYZABCDEFGHIJKLM",
)
_PIG: Final = re.compile(r"\b([a-z]*?)([a-z]{0,3})ay\b")
_TAGS: Final = re.compile("[\U000e0020-\U000e007e]{4,}")
_SELECTORS: Final = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}")


def views(text: str, *, decode: bool = True) -> Iterator[View]:
    """All readings of a text, the folded one first."""
    folded, places = _FOLD.fold(text)
    yield View("plain", folded, 0, len(text), places if places is not None else list(range(len(folded))))
    if not text.isascii():
        if _MIXED.search(text):
            yield _look_alikes(text)
        yield from _hidden(text)
    if not decode:
        return
    yield from _decoded_runs(text, 0, len(text), 1, [MAX_DECODED])
    if len(text) <= LONG_TEXT:
        yield from _rewritten(folded, places)


def _look_alikes(text: str) -> View:
    """Words of mixed scripts in Latin letters."""
    latin = "".join(LATIN_LOOK_ALIKES.get(character, character) for character in text)
    folded, places = _FOLD.fold(latin)
    return View(
        "look-alikes", folded, 0, len(text), places if places is not None else list(range(len(folded)))
    )


def _hidden(text: str) -> Iterator[View]:
    """Text in tag characters or in variation selectors, which show nothing."""
    for match in _TAGS.finditer(text):
        hidden = "".join(chr(ord(character) - 0xE0000) for character in match.group())
        yield View("hidden:tags", _FOLD.fold(hidden)[0], match.start(), match.end())
    for match in _SELECTORS.finditer(text):
        codes = bytes(ord(c) - 0xFE00 if ord(c) < 0xFE10 else ord(c) - 0xE0100 + 16 for c in match.group())
        yield View(
            "hidden:selectors", _FOLD.fold(codes.decode("utf-8", "replace"))[0], match.start(), match.end()
        )


def _decoded_runs(text: str, start: int, end: int, depth: int, left: list[int]) -> Iterator[View]:
    """Encoded runs, decoded; what comes out is decoded once more."""
    for name, run in RUNS.items():
        if not SIGNS[name].search(text):
            continue
        for match in run.finditer(text):
            plain = decoded(name, match.group())
            if plain is None or left[0] <= 0:
                continue
            plain = plain[: left[0]]
            left[0] -= len(plain)
            span = (match.start(), match.end()) if depth == 1 else (start, end)
            yield View(f"decoded:{name}", _FOLD.fold(plain)[0], *span)
            if depth < MAX_DEPTH:
                yield from _decoded_runs(plain, *span, depth + 1, left)


def _rewritten(folded: str, places: list[int] | None) -> Iterator[View]:
    """Readings of the whole text: letters apart, leet, rot13, backwards, pig Latin."""
    raw = places if places is not None else list(range(len(folded)))
    if _SPACED.search(folded):
        yield _joined(folded, raw)
    if any(character in folded for character in "013457@$"):
        leet = _LEET_WORD.sub(lambda match: match.group().translate(_LEET), folded)
        if leet != folded:
            yield View("leet", leet, 0, 0, raw)
    if folded.isascii() and folded:
        yield View("rot13", folded.translate(_ROT13), 0, 0, raw)
        yield View("backwards", folded[::-1], 0, 0, raw[::-1])
    if folded.count("ay ") * 2 >= folded.count(" ") > 2:
        turned = _PIG.sub(_unpigged, folded)
        yield View("pig-latin", turned, raw[0], raw[-1] + 1)


def _unpigged(match: re.Match[str]) -> str:
    word = match.group()[:-2]
    for size in (3, 2, 1):
        head = word[-size:]
        if len(word) > size and not set(head) & set("aeiou"):
            return head + word[:-size]
    return word.removesuffix("y").removesuffix("w")


def _joined(folded: str, raw: list[int]) -> View:
    """Letters that stand apart, together again."""
    pieces: list[str] = []
    kept: list[int] = []
    at = 0
    for match in _SPACED.finditer(folded):
        pieces.append(folded[at : match.start()])
        kept += raw[at : match.start()]
        letters = range(match.start(), match.end(), 2)
        pieces.append("".join(folded[place] for place in letters))
        kept += [raw[place] for place in letters]
        at = match.end()
    pieces.append(folded[at:])
    return View("spaced", "".join(pieces), 0, 0, kept + raw[at:])


def fold_pattern(pattern: str) -> str:
    """A pattern for folded text: accents taken off its letters, everything else as it is."""
    parts = unicodedata.normalize("NFKD", pattern)
    return "".join(part for part in parts if not "\u0300" <= part <= "\u036f")
