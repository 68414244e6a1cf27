"""Gathers a streamed answer into windows that are judged as one, cut at the same places however the text arrives."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import Final

from processors.engine.chunks import Chunk

CONTEXT: Final = 400
"""Characters before a window that a judge is shown, so that it understands the window."""
GROWTH: Final = 8
"""The last windows are this many times as long as the first."""
SENTENCE_END: Final = re.compile(r"[.!?…][\"'”’)\]]*\s|[。！？]|\n")


@dataclass(slots=True)
class Window:
    """Text to judge at once. start: characters of the block before it. chunks: what releases exactly this text."""

    text: str
    start: int
    context: str
    chunks: list[Chunk]
    done: bool = False


class StreamWindows:
    """The open block of a stream: what is held, and where the next window ends.

    size: characters of the first window, which ends with the first sentence after them, at twice the size at the latest.
    seconds: how long text is held at most while the model goes on talking.
    """

    __slots__ = ("_block", "_chunks", "_context", "_first", "_kind", "_now", "_seconds", "_since", "_size", "_start", "_text")  # fmt: skip

    def __init__(self, size: int, seconds: float) -> None:
        self._first, self._seconds = size, seconds
        self._now = time.monotonic
        self.forget()

    def forget(self) -> None:
        """Begin anew: what was held belongs to a reply that is withdrawn, or over."""
        self._kind, self._block = "", None
        self._size = self._first
        self._context = ""
        self._reset()

    def _reset(self) -> None:
        self._text, self._start = "", 0
        self._chunks: list[Chunk] = []
        self._since = 0.0

    def belongs(self, part: Chunk) -> bool:
        """Whether a delta goes on with the open block."""
        return part.type == self._kind and (part.payload or {}).get("id") == self._block

    def open(self, part: Chunk) -> None:
        """Begin a block with its first delta."""
        self._reset()
        self._kind, self._block = part.type, (part.payload or {}).get("id")
        self._context = ""
        self.take(part)

    def take(self, part: Chunk) -> None:
        """Hold a delta."""
        if not self._chunks:
            self._since = self._now()
        self._text += part.text
        self._chunks.append(part)

    def full(self) -> list[Window]:
        """The windows that are complete now."""
        windows: list[Window] = []
        while (end := self._end()) is not None:
            windows.append(self._cut(end))
        if not windows and self._text and self._now() - self._since >= self._seconds:
            windows.append(self._cut(_word_end(self._text, 0, len(self._text))))
        return windows

    def _end(self) -> int | None:
        if len(self._text) <= self._size:
            return None
        found = SENTENCE_END.search(self._text, self._size, 2 * self._size)
        if found is not None:
            return found.end()
        return (
            _word_end(self._text, self._size, 2 * self._size) if len(self._text) >= 2 * self._size else None
        )

    def rest(self) -> list[Window]:
        """What is left when the block ends."""
        windows = [self._cut(len(self._text))] if self._text else []
        self._kind, self._block = "", None
        self._reset()
        return windows

    def give_up(self) -> list[Chunk]:
        """The deltas that are held, unjudged; they are not held any longer."""
        chunks = self._chunks
        self._start += len(self._text)
        self._text, self._chunks = "", []
        return chunks

    def _cut(self, end: int) -> Window:
        text, start, context = self._text[:end], self._start, self._context
        chunks: list[Chunk] = []
        left = end
        while self._chunks and left >= len(self._chunks[0].text):
            chunk = self._chunks.pop(0)
            left -= len(chunk.text)
            chunks.append(chunk)
        if left:
            chunk = self._chunks[0]
            chunks.append(chunk.with_text(chunk.text[:left]))
            self._chunks[0] = chunk.with_text(chunk.text[left:])
        self._text, self._start = self._text[end:], start + end
        self._context = (context + text)[-CONTEXT:]
        self._size = min(self._size * 2, self._first * GROWTH)
        self._since = self._now()
        return Window(text, start, context, chunks)


def _word_end(text: str, low: int, high: int) -> int:
    """The last place between two words in text[low:high], so that no word is judged in halves; `high` if there is none."""
    at = max(text.rfind(" ", low, high), text.rfind("\n", low, high))
    return at + 1 if at >= low else high
