"""A stored message as the console shows it: plain paragraphs and short lines for everything that is no text."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from memory.models import Message

LONGEST_VALUE = 2000


@dataclass(slots=True)
class Shown:
    """side: "person", "agent" or "note". lines: (kind, text), kind one of text, reasoning, tool, file, data."""

    side: str
    who: str
    message: Message
    lines: list[tuple[str, str]]


def readable(message: Message) -> Shown:
    """What stands in a message's parts, in order."""
    side, who = {"user": ("person", _("Person")), "assistant": ("agent", _("Agent"))}.get(
        message.role, ("note", message.role)
    )
    return Shown(side, who, message, [line for part in message.parts for line in _lines(part) if line[1]])


def _lines(part: dict[str, Any]) -> list[tuple[str, str]]:
    kind = str(part.get("type", ""))
    if kind == "text":
        return [("text", str(part.get("text", "")))]
    if kind == "reasoning":
        return [("reasoning", str(part.get("text") or part.get("reasoning") or ""))]
    if kind == "tool-invocation":
        call = part.get("toolInvocation") or part
        lines = [
            (
                "tool",
                _("Tool %(name)s was called with %(args)s")
                % {"name": call.get("toolName", ""), "args": brief(call.get("args"))},
            )
        ]
        if "result" in call:
            lines.append(("tool", _("It returned %(result)s") % {"result": brief(call["result"])}))
        return lines
    if kind == "file":
        return [("file", _("File: %(type)s") % {"type": part.get("mimeType") or part.get("mediaType") or ""})]
    if kind.startswith("data-"):
        return [("data", f"{kind.removeprefix('data-')}: {brief(part.get('data'))}")]
    return []


def brief(value: Any) -> str:
    """A value on one line, cut when long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "…"
