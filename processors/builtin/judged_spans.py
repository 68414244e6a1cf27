"""Places in a text that a judge named: found again in the text itself, merged, and replaced."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from processors.builtin.detectors.findings import (
    Finding,
    Region,
    keyed_hash,
    masked_excerpt,
    merge,
    replace_regions,
)
from processors.builtin.judging import Refusal

Method = Literal["placeholder", "mask", "hash", "remove"]
METHOD_LABELS = {"placeholder": "[NAME]", "mask": "****", "hash": "[HASH:1a2b3c4d]", "remove": "Nothing"}
MASK_LENGTH = 4
"""Stars of a mask, whatever the length of what it hides."""


class CategoryScore(BaseModel):
    """type: what it is. score: how sure that is, 0 to 1."""

    type: str
    score: float = Field(ge=0, le=1)


class Detection(BaseModel):
    """type: what it is. value: exactly as it stands in the text. confidence: 0 to 1. start: where it begins, if known."""

    type: str
    value: str
    confidence: float = Field(1.0, ge=0, le=1)
    start: int | None = None


def findings_in(text: str, detections: list[Detection]) -> tuple[list[Finding], list[str]]:
    """Every occurrence of each value, and the types of values that do not occur in the text.

    A judge counts characters badly, so its positions are not used.
    """
    findings: list[Finding] = []
    missing: list[str] = []
    for one in detections:
        places = _occurrences(text, one.value.strip())
        if not places:
            missing.append(one.type)
        findings += [
            Finding(at, at + len(one.value.strip()), one.type, one.type, score=one.confidence)
            for at in places
        ]
    return findings, missing


def _occurrences(text: str, value: str) -> list[int]:
    places: list[int] = []
    at = text.find(value) if value else -1
    while at != -1:
        places.append(at)
        at = text.find(value, at + len(value))
    return places


def redacted(text: str, regions: list[Region], method: Method, key: bytes, placeholder: str = "") -> str:
    """The text with every region hidden. placeholder: used instead of the type's own, such as [NAME]."""

    def hidden(region: Region, found: str) -> str:
        if method == "mask":
            return "*" * MASK_LENGTH
        if method == "hash":
            return f"[HASH:{keyed_hash(key, found)[:8]}]"
        if method == "remove":
            return ""
        return placeholder or f"[{region.owner.type.upper().replace('-', '_')}]"

    return replace_regions(text, regions, hidden)


def refusal_of(
    text: str,
    detections: list[Detection],
    *,
    method: Method,
    key: bytes,
    placeholder: str = "",
    words: str = "",
) -> Refusal:
    """The refusal with its redaction. There is none if the judge named something that is not in the text."""
    findings, missing = findings_in(text, detections)
    regions = merge(findings)
    types = list(dict.fromkeys(one.type for one in sorted(detections, key=lambda one: -one.confidence)))
    extra: dict[str, Any] = {"missing": missing} if missing else {}
    if regions:
        extra["matches"] = [
            {"type": f.type, "rule": f.rule, "start": f.start, "end": f.end} for f in findings[:50]
        ]
        extra["excerpt"] = masked_excerpt(text, regions)
    shown = redacted(text, regions, method, key, placeholder) if regions and not missing else None
    score = max((one.confidence for one in detections), default=None)
    return Refusal(types, score, words=words, replacement=shown, extra=extra)
