"""What a message may consist of when it arrives."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Sequence
from typing import Any, Final

from agents.services.refusals import RunRefused
from audit.storable import storable_text

MOST_FILES: Final = 10
LARGEST: Final = 8_000_000
"""Bytes of all files of a message together, as base64."""
MIME: Final = re.compile(r"[a-z]+/[a-z0-9.+-]{1,80}")


def message_parts(text: str, extra: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The parts of a new user message: its text, then files with their data in the message itself. Raises RunRefused.

    A file by address is refused: nobody's browser or server is sent to an address that a stranger chose.
    """
    parts: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    if len(extra) > MOST_FILES:
        raise RunRefused("too_long", f"A message can have at most {MOST_FILES} files.")
    total = 0
    for one in extra:
        kind = one.get("type") if isinstance(one, dict) else None
        if kind == "text" and isinstance(one.get("text"), str):
            parts.append({"type": "text", "text": storable_text(one["text"])})
        elif kind == "file":
            part = _file(one)
            total += len(part["data"])
            parts.append(part)
        else:
            raise RunRefused("bad_request", "Parts of a message must be texts or files with their data.")
    if total > LARGEST:
        raise RunRefused("too_long", "The files are larger than 8 MB together.")
    return parts


def _file(one: dict[str, Any]) -> dict[str, Any]:
    data, mime = one.get("data"), one.get("mimeType")
    if not isinstance(data, str) or not isinstance(mime, str) or not MIME.fullmatch(mime):
        raise RunRefused(
            "bad_request", "A file needs its data in base64 and its mimeType; an address is not accepted."
        )
    if len(data) > LARGEST:
        raise RunRefused("too_long", "The files are larger than 8 MB together.")
    try:
        b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise RunRefused("bad_request", "The data of a file is no base64.") from None
    part = {"type": "file", "mimeType": mime, "data": data}
    if isinstance(one.get("name"), str):
        part["name"] = storable_text(one["name"])[:200]
    return part
