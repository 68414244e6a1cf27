"""One line of the table, and the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """A figure. value: 0 to 1. counts: what it was made of. cost: milliseconds per KB."""

    name: str
    figure: str
    value: float
    counts: str = ""
    cost: float | None = None


def as_text(rows: Sequence[Row]) -> str:
    """The rows as aligned text."""
    lines = [("what", "figure", "value", "counts", "ms/KB")]
    lines += [
        (row.name, row.figure, f"{row.value:.3f}", row.counts, "" if row.cost is None else f"{row.cost:.2f}")
        for row in rows
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
