"""What JSON columns and text columns of Postgres can hold."""

from __future__ import annotations

import math
from datetime import datetime
from enum import Enum
from typing import Any

DEEPEST = 40


def storable(value: Any, *, depth: int = 0) -> Any:
    """The value as plain JSON that Postgres stores and gives back unchanged.

    Text loses NUL and half surrogate pairs (Postgres refuses both), numbers that are no JSON become text, a whole float becomes
    an integer (JSONB does that on its own terms), anything unknown becomes its text, and nesting ends at 40 levels.
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str) and not isinstance(value, Enum):
        return storable_text(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            return str(value)
        return int(value) if value.is_integer() else value
    if depth >= DEEPEST:
        return storable_text(str(value))[:200]
    if isinstance(value, dict):
        return {storable_text(str(key)): storable(one, depth=depth + 1) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [storable(one, depth=depth + 1) for one in value]
    if isinstance(value, Enum):
        return storable(value.value, depth=depth)
    if isinstance(value, datetime):
        return value.isoformat()
    return storable_text(str(value))


def storable_text(text: str) -> str:
    """The text without NUL and half surrogate pairs."""
    if "\x00" in text:
        text = text.replace("\x00", "")
    if text.isascii():
        return text
    return (
        text.encode("utf-8", "replace").decode() if any("\ud800" <= one <= "\udfff" for one in text) else text
    )
