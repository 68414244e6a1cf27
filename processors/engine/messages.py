"""Messages as processors see them and as the database keeps them (contract section 3).

`message.content` is never a string: it holds `parts`, plain dictionaries in the wire's camelCase that go into JSONB
as they are. Processors may edit parts in place.

Part shapes (key `type` tells them apart):
    text             {"type": "text", "text": str}
    reasoning        {"type": "reasoning", "text": str}
    tool-invocation  {"type": "tool-invocation", "toolInvocation": {"state": "call" | "result" | "error" | "denied",
                      "toolCallId": str, "toolName": str, "args": object, "result"?: any, "errorText"?: str},
                      "providerExecuted"?: bool}
    file             {"type": "file", "mimeType": str, "data" | "url": str, "name"?: str}
    source           {"type": "source", "url": str, "title"?: str}
    error            {"type": "error", "error": {"name": str, "message": str}}   never sent to a model
    notice           {"type": "notice", "reason": str, "processorId": str}        a blocked run's trace, never sent
    data-*           {"type": "data-…", "data": any}                              never sent to a model
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

Part: TypeAlias = dict[str, Any]
Role: TypeAlias = Literal["user", "assistant", "system"]


class MessageContent:
    """What a message says. `parts` is the truth; `content` is derived from it.

    legacy: the flat text of older records, read only when there is no text part.
    """

    __slots__ = ("legacy", "metadata", "parts")

    def __init__(
        self,
        parts: list[Part] | None = None,
        *,
        legacy: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        self.parts: list[Part] = parts if parts is not None else []
        self.legacy = legacy
        self.metadata: dict[str, Any] = metadata if metadata is not None else {}

    @property
    def content(self) -> str:
        """The flat text: the text parts joined, else the flat text of an older record, else empty."""
        texts = [
            part["text"]
            for part in self.parts
            if part.get("type") == "text" and isinstance(part.get("text"), str)
        ]
        return "".join(texts) or (self.legacy or "")


@dataclass(slots=True)
class Message:
    """One message of a thread.

    blocked: it belongs to a blocked run; shown to people, never sent to a model again.
    withheld: its text was refused and is not kept.
    """

    role: Role
    content: MessageContent = field(default_factory=MessageContent)
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    created_at: datetime | None = None
    thread_id: str | None = None
    resource_id: str | None = None
    blocked: bool = False
    withheld: bool = False

    @property
    def text(self) -> str:
        """The message's text, read as the contract says: text parts first, the older flat text otherwise."""
        return self.content.content

    def set_text(self, text: str) -> None:
        """Replace all text by `text` at the place of the first text part. Parts of other kinds stay in place."""
        kept: list[Part] = []
        placed = False
        for part in self.content.parts:
            if part.get("type") != "text":
                kept.append(part)
            elif not placed:
                placed = True
                kept.append({**part, "text": text})
        self.content.parts[:] = kept if placed else [{"type": "text", "text": text}, *kept]
        self.content.legacy = None

    def text_parts(self) -> list[Part]:
        """The text parts, editable in place. An older record's flat text becomes a part first."""
        parts = [part for part in self.content.parts if part.get("type") == "text"]
        if not parts and self.content.legacy:
            parts = [{"type": "text", "text": self.content.legacy}]
            self.content.parts[:0] = parts
            self.content.legacy = None
        return parts

    def copy(self) -> Message:
        """A copy with the same id whose parts can be edited without touching this message (nested values shared)."""
        content = MessageContent([dict(part) for part in self.content.parts], legacy=self.content.legacy,
                                 metadata=dict(self.content.metadata))  # fmt: skip
        return Message(self.role, content, self.id, self.created_at, self.thread_id, self.resource_id,
                       self.blocked, self.withheld)  # fmt: skip


def user_message(text: str, **values: Any) -> Message:
    """A user message of one text part."""
    return Message("user", MessageContent([{"type": "text", "text": text}]), **values)


def assistant_message(text: str, **values: Any) -> Message:
    """An assistant message of one text part."""
    return Message("assistant", MessageContent([{"type": "text", "text": text}]), **values)


def texts_of(messages: Iterable[Message]) -> str:
    """The texts of the messages, joined by newlines."""
    return "\n".join(message.text for message in messages)


@dataclass(slots=True)
class SystemMessage:
    """A system message. `tag` names its origin (None: the agent's instructions and what processors add)."""

    text: str
    tag: str | None = None
