"""How well the personal data guardrail finds what has a format: precision, recall and F1 per type, by span."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

from eval.tables import Figure, rows_of
from processors import builtin
from processors.engine.ports import BuildContext
from processors.engine.registry import Registry
from processors.engine.testing import check_input

TYPES: Final = {
    "CREDIT_CARD": "credit-card", "EMAIL_ADDRESS": "email", "IBAN_CODE": "iban", "IP_ADDRESS": "ip-address",
    "PHONE_NUMBER": "phone", "US_SSN": "ssn",
}  # fmt: skip
"""The data's names of types that have a checksum or a format → ours."""


def guardrail() -> Any:
    """The guardrail, reporting only."""
    registry = Registry()
    builtin.register_all(registry)
    options = {"strategy": "warn", "detection_types": sorted(set(TYPES.values()))}
    return registry.build("pii-detector", "pii", options, BuildContext())


def found_in(processor: Any, text: str) -> set[tuple[str, int, int]]:
    """The spans that the guardrail reports: (type, start, end)."""
    outcome = asyncio.run(check_input([processor], text))
    return {
        (match["type"], match["start"], match["end"])
        for entry in outcome.entries
        for match in (entry.violation.detail or {}).get("matches", [])
    }


def figures(data: Path) -> list[Figure]:
    """A figure per type, and the cost."""
    rows, processor = rows_of(data / "pii_even.jsonl"), guardrail()
    right: dict[str, int] = defaultdict(int)
    wanted: dict[str, int] = defaultdict(int)
    given: dict[str, int] = defaultdict(int)
    start = time.perf_counter()
    for row in rows:
        spans = {(TYPES[s["type"]], s["start"], s["end"]) for s in row["spans"] if s["type"] in TYPES}
        found = found_in(processor, row["text"])
        for kind, begin, end in spans:
            wanted[kind] += 1
            right[kind] += any(k == kind and b < end and e > begin for k, b, e in found)
        for kind, begin, end in found:
            given[kind] += 1 if any(k == kind and b < end and e > begin for k, b, e in spans) else 0
            given[f"{kind} wrong"] += (
                0 if any(k == kind and b < end and e > begin for k, b, e in spans) else 1
            )
    seconds = time.perf_counter() - start
    size = sum(len(row["text"].encode()) for row in rows) / 1024
    out = [one_type(kind, wanted[kind], right[kind], given[f"{kind} wrong"]) for kind in sorted(wanted)]
    cost = seconds * 1000 / size
    return [*out, Figure("Personal data: cost", "milliseconds per KB", f"{cost:.2f}", cost)]


def one_type(kind: str, wanted: int, right: int, wrong: int) -> Figure:
    """Precision, recall and F1 of one type."""
    precision = right / (right + wrong) if right + wrong else 1.0
    recall = right / wanted if wanted else 1.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    value = f"P {precision:.2f} R {recall:.2f} F1 {f1:.3f}"
    return Figure(
        "Personal data, by overlapping span", f"{kind} ({wanted} in the data)", value, f1, "F1 ≥ 0.97"
    )
