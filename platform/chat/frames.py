"""The frames of the chat's WebSocket: what comes in, read strictly; what goes out, in one place.

client → server   message.send, run.resume, run.stop, tool.decide, ping
server → client   run.started, chunk, run.ended, thread.run, error, pong
"""

from __future__ import annotations

import json
import time
from typing import Any, Final

from agents.services.runs import longest_text
from processors.engine.errors import GatehouseError

FRAMES_PER_SECOND: Final = 20
BURST: Final = 40
ECHOED: Final = ("clientMessageId", "runId", "toolCallId")


class BadFrame(GatehouseError):
    """The frame cannot be read; the message says what is wrong."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def longest_frame() -> int:
    """Characters of one frame: the longest message, escaped, and room for the rest."""
    return 4 * longest_text() + 65_536


def parsed(text: str | None, data: bytes | None) -> dict[str, Any]:
    """A frame as an object with a type. Raises BadFrame."""
    if text is None:
        raise BadFrame("bad_frame", f"Send text frames; this one was binary ({len(data or b'')} bytes).")
    if len(text) > longest_frame():
        raise BadFrame(
            "too_long", f"The frame has {len(text):,} characters; at most {longest_frame():,} are possible."
        )
    try:
        frame = json.loads(text)
    except (ValueError, RecursionError):
        raise BadFrame("bad_frame", "The frame is not JSON.") from None
    if not isinstance(frame, dict) or not isinstance(frame.get("type"), str):
        raise BadFrame("bad_frame", "A frame must be a JSON object with a “type”.")
    return frame


def written(frame: dict[str, Any]) -> str:
    """A frame as text."""
    return json.dumps(frame, ensure_ascii=False, separators=(",", ":"))


def error_frame(
    code: str, message: str, *, retryable: bool = False, about: dict[str, Any] | None = None
) -> dict[str, Any]:
    """An error. The ids that the client's frame named are repeated, so that the client knows what failed."""
    frame: dict[str, Any] = {"type": "error", "code": code, "message": message, "retryable": retryable}
    frame.update({key: about[key][:200] for key in ECHOED if about and isinstance(about.get(key), str)})
    return frame


def number_of(frame: dict[str, Any], name: str) -> int:
    """A sequence number; 0 when left out. Raises BadFrame."""
    value = frame.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**53:
        raise BadFrame("bad_frame", f"“{name}” is the number of the last chunk seen, 0 for none.")
    return value


class FloodGate:
    """Lets a burst through, and then so many frames a second."""

    def __init__(self) -> None:
        self._left, self._at = float(BURST), time.monotonic()

    def is_shut(self) -> bool:
        """Count one frame. True when it is one too many."""
        now = time.monotonic()
        self._left = min(BURST, self._left + (now - self._at) * FRAMES_PER_SECOND) - 1
        self._at = now
        return self._left < 0
