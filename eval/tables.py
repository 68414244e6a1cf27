"""Rows of the evaluation and how they are printed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(slots=True, frozen=True)
class Figure:
    """One measured figure. group: the table it stands in; value: as printed; goal: what it is held against, if anything."""

    group: str
    name: str
    value: str
    number: float
    goal: str = ""


def rows_of(file: Path) -> list[dict[str, Any]]:
    """The rows of a JSON-lines file. Raises FileNotFoundError."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def printed(figures: Iterable[Figure]) -> str:
    """The tables as text."""
    lines: list[str] = []
    group = ""
    for figure in figures:
        if figure.group != group:
            group = figure.group
            lines += ["", group, "-" * len(group)]
        lines.append(f"{figure.name:<48} {figure.value:>22}  {figure.goal}")
    return "\n".join(lines)


def as_json(figures: Iterable[Figure]) -> str:
    """The figures as JSON."""
    return json.dumps([asdict(figure) for figure in figures], ensure_ascii=False, indent=1)
