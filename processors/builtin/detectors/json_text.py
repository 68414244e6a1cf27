"""Walks JSON values: the same shape back, only texts changed (and keys and long numbers, where they are what was found)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

LONG_NUMBER: Final = 9
"""Digits from which a number is read as text too: a card number may come as a number."""
MAX_DEPTH: Final = 200

Change = Callable[[str], str]


def change_texts(value: Any, change: Change, *, depth: int = 0) -> Any:
    """The value with `change` applied to every text in it. Unchanged parts are the same objects.

    Raises ValueError when the value is nested deeper than 200 levels: nobody could read it, so nobody may pass it.
    """
    if isinstance(value, str):
        return change(value) if value else value
    if isinstance(value, bool) or value is None or isinstance(value, float):
        return value
    if isinstance(value, int):
        return _change_number(value, change)
    if depth > MAX_DEPTH:
        raise ValueError(f"The value is nested deeper than {MAX_DEPTH} levels and can't be screened.")
    if isinstance(value, dict):
        return _change_object(value, change, depth)
    if isinstance(value, (list, tuple)):
        items = [change_texts(item, change, depth=depth + 1) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    text = str(value)  # no JSON value: it would be written as its text
    changed = change(text)
    return value if changed == text else changed


def _change_number(value: int, change: Change) -> Any:
    text = str(value)
    if len(text) < LONG_NUMBER:
        return value
    changed = change(text)
    return value if changed == text else changed


def _change_object(value: dict[Any, Any], change: Change, depth: int) -> dict[Any, Any]:
    changed: dict[Any, Any] = {}
    same = True
    for key, item in value.items():
        new_key = change(key) if isinstance(key, str) and key else key
        new_item = change_texts(item, change, depth=depth + 1)
        while new_key is not key and new_key in changed:
            new_key = f"{new_key}_"
        same = same and new_key is key and new_item is item
        changed[new_key] = new_item
    return value if same else changed
