"""Tools of the house: arithmetic without evaluating code, and a clock."""

from __future__ import annotations

from typing import Any

import pytest

from agents.tools import ToolKind, tool_kind, tool_kinds, tool_register
from agents.tools.calculator import calculate
from agents.tools.clock import tell_time
from processors.engine.errors import ConfigError, ToolFailed

NO_JOB: Any = None


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("7 / 2", 3.5),
        ("2 ** 10", 1024),
        ("-3 % 5", 2),
        ("6 ÷ 3 × 2 − 1", 3),
        ("1e3", 1000),
    ],
)
def test_it_calculates(expression, result) -> None:
    assert calculate({"expression": expression}, {}, NO_JOB) == {"result": result}


@pytest.mark.parametrize(
    "expression",
    ["", "2 +", "__import__('os')", "a", "9 ** 9 ** 9", "1 / 0", "2 ** 1e9", "(" * 150, "[1]", "1 if 2 else 3", "lambda: 1", "'a' * 9", "True + 1", "10 ** 64 * 10 ** 64", "1j"],
)  # fmt: skip
def test_it_refuses_everything_else_with_a_sentence(expression) -> None:
    with pytest.raises(ToolFailed, match=r"\.$"):
        calculate({"expression": expression}, {}, NO_JOB)


def test_the_clock_knows_zones() -> None:
    assert tell_time({"zone": "Europe/Berlin"}, {}, NO_JOB)["time"].endswith(("+01:00", "+02:00"))
    assert tell_time({}, {}, NO_JOB)["zone"] == "UTC"
    for wrong in ("Mars/Olympus", "../../etc/passwd", "x" * 60):
        with pytest.raises(ToolFailed, match="no time zone"):
            tell_time({"zone": wrong}, {}, NO_JOB)


def test_kinds_are_registered_once_and_known_by_name() -> None:
    assert {"calculator", "clock", "order-lookup", "order-refund", "slow-report"} <= {
        kind.slug for kind in tool_kinds()
    }
    with pytest.raises(ConfigError, match="registered twice"):
        tool_register(ToolKind("clock", "Clock", "", {}, tell_time))
    with pytest.raises(ConfigError, match="not installed"):
        tool_kind("teleport")
