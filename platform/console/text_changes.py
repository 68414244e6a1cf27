"""Two texts side by side, in pieces that are the same, gone or new."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import TypeAlias

Pieces: TypeAlias = list[tuple[str, str]]
"""("same" | "gone" | "new", text)"""

WORDS = re.compile(r"\s+|\w+|[^\w\s]")
MOST_WORDS = 4000
"""Longer texts are shown as wholly replaced: finding the differences would take longer than reading."""


def changed_pieces(before: str, after: str | None) -> tuple[Pieces, Pieces]:
    """The pieces of the first and of the second text."""
    if after is None:
        return ([("gone", before)] if before else []), []
    if before == after:
        return [("same", before)], [("same", after)]
    old, new = WORDS.findall(before), WORDS.findall(after)
    if len(old) + len(new) > MOST_WORDS:
        return [("gone", before)], [("new", after)]
    left: Pieces = []
    right: Pieces = []
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if a < b:
            left.append(("same" if kind == "equal" else "gone", "".join(old[a:b])))
        if c < d:
            right.append(("same" if kind == "equal" else "new", "".join(new[c:d])))
    return left, right
