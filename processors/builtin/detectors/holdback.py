"""The one hold-back mechanism: text is released as soon as no later text can turn it into part of a match, and not before.

A `Matcher` says what matches and where a match may still be under way. From that, `HoldBack` makes a stream that gives,
for every way of cutting a text, exactly what the whole text gives at once:

- `open_from` names the earliest place from which later text could still complete a match. Every match that begins before
  it is final, because all attempts that began there have ended.
- Released text is never searched again; only a few characters of it are kept as context for word borders.
- A final match that reaches into undecided text stays with it, so that overlapping matches merge before anything is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

from processors.builtin.detectors.findings import Finding, Region, merge, replace_regions

LONG_REGION: Final = 2048
"""Held characters from which held text is searched again only after it has grown by a quarter: a match without end, or
a chain of overlapping ones, would cost quadratic time otherwise."""

Replace: TypeAlias = Callable[[Region, str], str]


class Matcher(Protocol):
    """Finds matches in text. Holds configuration only, so one matcher serves all streams."""

    look_back: int
    """Characters before a match that may decide about it (word borders, context words)."""

    def find(self, text: str, start: int) -> list[Finding]:
        """Matches that begin at `start` or later, as if `text` ended here. Characters before `start` are context."""
        ...

    def open_from(self, text: str, start: int) -> int:
        """The earliest position >= start where a match may have begun that only later text decides; len(text) if none."""
        ...


class HoldBack:
    """One block of text on its way through a matcher. Not for use by two blocks.

    regions: what was found since the caller last emptied the list; positions count from the start of the block.
    """

    __slots__ = (
        "_base",
        "_buffer",
        "_held_at",
        "_matcher",
        "_replace",
        "_rescan_at",
        "excerpt_text",
        "regions",
    )

    def __init__(self, matcher: Matcher, replace: Replace | None = None) -> None:
        self._matcher, self._replace = matcher, replace
        self._buffer = ""
        self._held_at = 0  # where the held text begins in the buffer; before it is context
        self._base = 0  # position of the buffer's first character in the block
        self._rescan_at = 0
        self.regions: list[Region] = []
        self.excerpt_text: tuple[str, int] = ("", 0)
        """The text around the last regions and its position in the block, for a masked excerpt."""

    @property
    def held(self) -> str:
        """The text that waits for a decision."""
        return self._buffer[self._held_at :]

    @property
    def released(self) -> int:
        """Characters of the block that are decided."""
        return self._base + self._held_at

    def feed(self, delta: str) -> str:
        """Take in a piece and return what is safe to show now, redacted. May be empty."""
        buffer, held_at, matcher = self._buffer + delta, self._held_at, self._matcher
        if len(buffer) < self._rescan_at:
            self._buffer = buffer
            return ""
        cut = matcher.open_from(buffer, held_at)
        if cut <= held_at:
            self._buffer = buffer
            if (held := len(buffer) - held_at) > LONG_REGION:
                self._rescan_at = len(buffer) + held // 4
            return ""
        found = matcher.find(buffer, held_at)
        if found:
            return self._release_found(buffer, cut, [finding for finding in found if finding.opened < cut])
        return self._release(buffer, cut)

    def finish(self) -> str:
        """Release what is held: the block has ended."""
        buffer = self._buffer
        if len(buffer) == self._held_at:
            return ""
        self._rescan_at = 0
        return self._release_found(buffer, len(buffer), self._matcher.find(buffer, self._held_at))

    def _release(self, buffer: str, cut: int) -> str:
        ready = buffer[self._held_at : cut]
        keep = max(0, cut - self._matcher.look_back)
        self._buffer, self._held_at = buffer[keep:], cut - keep
        self._base += keep
        self._rescan_at = 0
        return ready

    def _release_found(self, buffer: str, cut: int, found: list[Finding]) -> str:
        regions = merge(found)
        while regions and regions[-1].end > cut:
            cut = min(cut, *(member.opened for member in regions.pop().members))
            if len(buffer) - cut > LONG_REGION:
                self._rescan_at = (
                    len(buffer) - max(0, cut - self._matcher.look_back) + (len(buffer) - cut) // 4
                )
        rescan_at, held_at, base = self._rescan_at, self._held_at, self._base
        ready = self._release(buffer, cut)
        self._rescan_at = rescan_at
        if not regions:
            return ready
        for region in regions:
            self.regions.append(_moved(region, base))
        self.excerpt_text = (buffer[:cut], base)
        if self._replace is None:
            return ready
        return replace_regions(ready, regions, self._replace, offset=held_at)


def _moved(region: Region, by: int) -> Region:
    """The same region counted from the start of the block."""
    if by == 0:
        return region
    members = tuple(
        Finding(m.start + by, m.end + by, m.type, m.rule, m.replacement, m.score) for m in region.members
    )
    owner = members[region.members.index(region.owner)]
    return Region(region.start + by, region.end + by, owner, members)


def screen_text(matcher: Matcher, text: str, replace: Replace | None = None) -> tuple[str, list[Region]]:
    """A whole text at once: (redacted text, regions). Equal to feeding it in any pieces."""
    regions = merge(matcher.find(text, 0)) if text else []
    if not regions or replace is None:
        return text, regions
    return replace_regions(text, regions, replace), regions
