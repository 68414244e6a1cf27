"""How many tokens a text has: a quick estimate that needs nothing, or the exact count of OpenAI's vocabulary.

The estimate reads a text from left to right in pieces of at most a few characters, so the count of a text is the same
however it arrives, and the place of its n-th token is known as soon as it is there.
"""

from __future__ import annotations

import os
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

Method: TypeAlias = Literal["estimate", "exact"]

PIECE: Final = re.compile(
    r" ?[A-Za-z'’\u00c0-\u024f]{1,7}"  # a short word, or a part of a long one
    r"|[0-9]{1,3}"
    r"|[ \t]{1,8}|[\r\n]{1,4}"
    r"|[\u0370-\u1fff]{1,3}"  # Greek, Cyrillic, Arabic, Indic and others take more tokens
    r"|.",  # ideographs, emoji, punctuation: one each
    re.DOTALL,
)
FILE_TOKENS: Final = 765
"""What providers charge for a picture of ordinary size."""


def estimate(text: str) -> int:
    """About how many tokens a text has, within a fifth for prose."""
    return sum(1 for _ in PIECE.finditer(text))


@cache
def _encoding() -> Any:
    """OpenAI's vocabulary, from the copy that the model client package brings along; nothing is fetched."""
    if "TIKTOKEN_CACHE_DIR" not in os.environ:
        spec = find_spec("litellm")
        if spec is not None and spec.origin:
            folder = Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"
            os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    import tiktoken

    return tiktoken.get_encoding("o200k_base")


def count(text: str, method: Method = "estimate") -> int:
    """Tokens of a text."""
    if method == "exact":
        return len(_encoding().encode(text, disallowed_special=()))
    return estimate(text)


class RunningCount:
    """Counts a text that arrives in pieces. Every way of cutting it gives the same count after each character."""

    __slots__ = ("_tail", "tokens")

    def __init__(self) -> None:
        self.tokens = 0
        self._tail = ""

    def add(self, text: str, limit: float) -> int:
        """Count on. Returns how many characters of `text` lie within the first `limit` tokens."""
        joined = self._tail + text
        before = len(self._tail)
        counted = self.tokens - (1 if self._tail else 0)
        start = 0
        for piece in PIECE.finditer(joined):
            counted += 1
            start = piece.start()
            if counted > limit:
                self.tokens, self._tail = counted, ""
                return max(0, start - before)
        self.tokens, self._tail = counted, joined[start:]
        return len(text)
