"""One line of the benchmark's table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class Row:
    """A measured figure. floor: what it is held against, in words; ratio: the figure against that, if there is one."""

    name: str
    value: float
    unit: str
    floor: str = ""
    ratio: float | None = None
