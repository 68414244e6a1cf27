"""The digest that ties each violation to the one before it."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any, Final

from audit.models import TrailHead, Violation

LEFT_OUT: Final = frozenset({"chain_digest"})


def row_digest(key: bytes, before: str, row: Violation) -> str:
    """HMAC-SHA256 over the digest of the row before and every column of this row."""
    values = {
        field.attname: _plain(getattr(row, field.attname))
        for field in row._meta.concrete_fields
        if field.attname not in LEFT_OUT
    }
    text = json.dumps(values, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hmac.new(key, f"{before}\n{text}".encode(), hashlib.sha256).hexdigest()


def head_seal(key: bytes, head: TrailHead) -> str:
    """HMAC-SHA256 over the head's values."""
    return hmac.new(key, f"head\n{head.rows}\n{head.last_digest}".encode(), hashlib.sha256).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if value is None or isinstance(value, str | int | float | bool | dict | list):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
