"""Runs every benchmark and prints one table. `make bench`, or `python -m bench providers engine` for some of them.

Each module of this package with a function `rows() -> list[Row]` is a benchmark. JSON=FILE also writes the rows there.
Figures move with the machine; ratios to a floor measured beside them hold.
"""

from __future__ import annotations

import json
import os
import pkgutil
import sys
import time
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from bench.row import Row


def benchmarks(names: list[str]) -> list[str]:
    """The modules to run: those that are named, else all that measure something. Raises SystemExit for a wrong name."""
    modules = [module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)])]
    if unknown := set(names) - set(modules):
        raise SystemExit(
            f"There is no benchmark {', '.join(sorted(unknown))}. Choose from: {', '.join(modules)}."
        )
    wanted = names or [name for name in modules if name != "__main__"]
    return [name for name in wanted if hasattr(import_module(f"bench.{name}"), "rows")]


def table(rows: list[Row]) -> str:
    """The rows as aligned text."""
    lines = [("what", "value", "unit", "ratio", "held against")]
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        digits = 0 if abs(row.value) >= 1_000 else 3 if abs(row.value) < 10 else 1
        lines.append((row.name, f"{row.value:,.{digits}f}", row.unit, ratio, row.floor))
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    right = {1, 3}
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def main(names: list[str]) -> int:
    """Run, print and write. The exit code tells whether every benchmark could be run."""
    results: dict[str, list[Row]] = {}
    for name in benchmarks(names):
        start = time.monotonic()
        results[name] = import_module(f"bench.{name}").rows()
        print(f"\n{name} ({time.monotonic() - start:.0f} s)\n{table(results[name])}", flush=True)
    if target := os.environ.get("JSON"):
        flat = [{"benchmark": name, **asdict(row)} for name, rows in results.items() for row in rows]
        Path(target).write_text(json.dumps(flat, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
