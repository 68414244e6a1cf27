"""Server-sent events from bytes: only the data of each event, with as little work per event as Python allows.

The format: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

from typing import Final

from agents.providers.failures import broken

LONGEST_EVENT: Final = 4 * 1024 * 1024
"""Bytes. A service that sends more without an empty line is not speaking this protocol."""

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
"""Allowed before the first event."""


class EventReader:
    """Collects bytes, cut anywhere, and gives the data of the events that are complete.

    Events without data (comments that keep a connection alive) give nothing.
    """

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The data of each event that `data` completes. Raises ModelAPIError for an endless event."""
        if self._rest:
            data = self._rest + data
        if b"\r" in data:
            # A CR at the very end may be half of a CRLF: it waits for what follows.
            held = data[-1:] if data.endswith(b"\r") else b""
            data = data[: len(data) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        else:
            held = b""
        blocks = data.split(b"\n\n")
        self._rest = blocks.pop() + held
        if len(self._rest) > LONGEST_EVENT:
            raise broken("The model's service sent an event without an end.", "malformed_stream")
        events = []
        for block in blocks:
            if block.startswith(b"data: ") and b"\n" not in block:
                events.append(block[6:])
            elif (event := _data_of(block)) is not None:
                events.append(event)
        return events

    def flush(self) -> list[bytes]:
        """The data of a last event that the service ended with the connection instead of an empty line."""
        rest, self._rest = self._rest.rstrip(b"\r\n"), b""
        event = _data_of(rest) if rest else None
        return [] if event is None else [event]


def _data_of(block: bytes) -> bytes | None:
    """The joined data lines of one event; None if it has none."""
    lines = []
    for line in block.split(b"\n"):
        if line.startswith((b"data:", BYTE_ORDER_MARK + b"data:")):
            value = line.partition(b":")[2]
            lines.append(value[1:] if value.startswith(b" ") else value)
    return b"\n".join(lines) if lines else None
