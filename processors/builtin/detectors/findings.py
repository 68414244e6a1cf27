"""What a detector found, and how findings that overlap become one region."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

EXCERPT_AROUND = 24
"""Characters of context on each side of an excerpt's finding."""


@dataclass(slots=True, frozen=True)
class Finding:
    """One match.

    start, end: characters in the text that was searched. type: what it is, such as "email". rule: which rule found it.
    replacement: what this rule puts in its place; None: the processor decides. score: 0 to 1.
    begin: where the match began, if that was before the finding ("password: " before the password); -1: at `start`.
    """

    start: int
    end: int
    type: str
    rule: str
    replacement: str | None = None
    score: float = 1.0
    begin: int = -1

    @property
    def opened(self) -> int:
        """Where the match began."""
        return self.begin if self.begin >= 0 else self.start


@dataclass(slots=True, frozen=True)
class Region:
    """Findings that overlap. `owner` is the longest of them (the earliest rule wins a tie) and decides the redaction."""

    start: int
    end: int
    owner: Finding
    members: tuple[Finding, ...]


def merge(findings: Iterable[Finding]) -> list[Region]:
    """Regions in order of the text. Findings that only touch stay apart."""
    ordered = sorted(findings, key=lambda finding: (finding.start, -finding.end))
    regions: list[Region] = []
    members: list[Finding] = []
    end = -1
    for finding in ordered:
        if members and finding.start >= end:
            regions.append(_region(members, end))
            members = []
        end = max(end, finding.end) if members else finding.end
        members.append(finding)
    if members:
        regions.append(_region(members, end))
    return regions


def _region(members: list[Finding], end: int) -> Region:
    owner = max(members, key=lambda finding: finding.end - finding.start)
    return Region(members[0].start, end, owner, tuple(members))


def replace_regions(text: str, regions: Sequence[Region], replacement: Any, *, offset: int = 0) -> str:
    """The text with each region replaced by `replacement(region, its text)`. offset: where `text` begins in the
    positions of the regions."""
    pieces: list[str] = []
    at = 0
    for region in regions:
        start, end = region.start - offset, region.end - offset
        pieces += (text[at:start], replacement(region, text[start:end]))
        at = end
    pieces.append(text[at:])
    return "".join(pieces)


def keyed_hash(key: bytes, text: str) -> str:
    """A keyed hash of a secret: equal secrets can be recognised, none can be guessed without the key. 16 hex digits."""
    return hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:16]


def masked_excerpt(text: str, regions: Sequence[Region], *, offset: int = 0) -> str:
    """A little of the text around the first region, every region shown as its type. Holds no matched character."""
    if not regions:
        return ""
    first = regions[0]
    low, high = first.start - offset - EXCERPT_AROUND, first.end - offset + EXCERPT_AROUND
    pieces, at = [], max(0, low)
    for region in regions:
        start, end = region.start - offset, region.end - offset
        if start >= high:
            break
        pieces += (text[at:start], f"‹{region.owner.type}›")
        at = end
    pieces.append(text[at : max(at, high)])
    return ("…" if low > 0 else "") + "".join(pieces).replace("\n", " ") + ("…" if high < len(text) else "")
