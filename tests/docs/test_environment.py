"""The README explains every variable that the code reads."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ("platform", "agents", "processors", "memory")


def test_every_variable_stands_in_the_readme() -> None:
    read: set[str] = set()
    for source in SOURCES:
        for file in ROOT.joinpath(source).rglob("*.py"):
            read |= set(re.findall(r"\bGATEHOUSE_[A-Z_]+\b", file.read_text(encoding="utf-8")))
    readme = ROOT.joinpath("README.md").read_text(encoding="utf-8")
    assert sorted(name for name in read if f"`{name}`" not in readme) == []
