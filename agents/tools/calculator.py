"""Arithmetic without evaluating code: a parsed expression of numbers and operators, bounded in size."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any, Final

from agents.tools.kinds import Job
from processors.engine.errors import ToolFailed

BINARY: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv, ast.Pow: operator.pow,
}  # fmt: skip
LARGEST: Final = 1e15
LONGEST: Final = 200


def calculate(args: dict[str, Any], options: dict[str, Any], job: Job) -> dict[str, Any]:
    """{"expression"} → {"result": number}. Raises ToolFailed with a sentence for the model."""
    text = str(args["expression"]).replace("×", "*").replace("÷", "/").replace("−", "-").strip()
    if len(text) > LONGEST:
        raise ToolFailed("The expression is too long; use at most 200 characters.")
    try:
        value = _value(ast.parse(text, mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        raise ToolFailed(f"{text!r} is no arithmetic expression. Use numbers and + - * / % ** ( ).") from None
    except ZeroDivisionError:
        raise ToolFailed("Division by zero has no result.") from None
    except OverflowError:
        raise ToolFailed("The result is too large.") from None
    return {"result": int(value) if isinstance(value, float) and value.is_integer() else value}


def _value(node: ast.AST) -> float:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return _bounded(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _value(node.operand)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp) and type(node.op) in BINARY:
        left, right = _value(node.left), _value(node.right)
        if isinstance(node.op, ast.Pow) and (abs(right) > 64 or abs(left) > 1e6):
            raise OverflowError
        return _bounded(BINARY[type(node.op)](left, right))
    raise ToolFailed("Only numbers and + - * / % ** ( ) can be calculated.")


def _bounded(value: Any) -> float:
    if isinstance(value, complex) or not math.isfinite(value) or abs(value) > LARGEST:
        raise OverflowError
    return value  # type: ignore[no-any-return]
