"""The live list of a run's messages (contract section 3).

Look-ups go by id and cost the same for ten messages as for ten thousand; nothing is ever sorted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from processors.engine.messages import (
    Message,
    MessageContent,
    Part,
    Role,
    SystemMessage,
    assistant_message,
    user_message,
)
from processors.engine.ports import Prompt
from processors.engine.prompt import prompt_of

Source: TypeAlias = Literal["memory", "input", "response", "context"]


class MessageList:
    """All messages of a run in order, each with its source.

    Sources: memory (earlier messages), input (new from the caller), response (of this run), context (for this run
    only, never stored). System messages are kept apart.
    """

    def __init__(self) -> None:
        self._messages: dict[str, Message] = {}
        self._sources: dict[str, Source] = {}
        self.system_messages: list[SystemMessage] = []

    # ── views ──────────────────────────────────────────────────────────────
    @property
    def all(self) -> list[Message]:
        """Every message, oldest first. The list is a copy, the messages are live."""
        return list(self._messages.values())

    @property
    def input(self) -> list[Message]:
        return self.of_source("input")

    @property
    def response(self) -> list[Message]:
        return self.of_source("response")

    @property
    def remembered(self) -> list[Message]:
        return self.of_source("memory")

    def of_source(self, *sources: Source) -> list[Message]:
        """The messages of some sources, in order."""
        return [message for id, message in self._messages.items() if self._sources[id] in sources]

    def get(self, id: str) -> Message | None:
        return self._messages.get(id)

    def source_of(self, id: str) -> Source | None:
        return self._sources.get(id)

    def __len__(self) -> int:
        return len(self._messages)

    def to_prompt(self) -> Prompt:
        """The provider's prompt for the list as it stands."""
        return prompt_of(self.system_messages, self._messages.values())

    # ── changes ────────────────────────────────────────────────────────────
    def add(self, messages: Message | str | Iterable[Message | str], source: Source = "response") -> None:
        """Add messages at the end. A message whose id is known replaces the one that is there, in its place and source."""
        if isinstance(messages, Message | str):
            messages = [messages]
        make = assistant_message if source == "response" else user_message
        for given in messages:
            message = make(given) if isinstance(given, str) else given
            if message.role == "system":
                self.add_system(message.text)
                continue
            self._messages[message.id] = message
            self._sources.setdefault(message.id, source)

    def add_system(self, text: str, tag: str | None = None) -> None:
        """Add a system message. Its effect lasts as the contract says: a step's additions end with the step."""
        self.system_messages.append(SystemMessage(text, tag))

    def remove_by_ids(self, ids: Iterable[str]) -> None:
        """Remove messages; unknown ids are passed over."""
        for id in list(ids):
            if self._messages.pop(id, None) is not None:
                del self._sources[id]

    def find_tool_invocation(self, tool_call_id: str) -> Part | None:
        """The part that holds a tool call, newest first."""
        for message in reversed(self._messages.values()):
            for part in message.content.parts:
                if (
                    part.get("type") == "tool-invocation"
                    and part["toolInvocation"]["toolCallId"] == tool_call_id
                ):
                    return part
        return None

    def update_tool_invocation(
        self, part: Part | None = None, *, tool_call_id: str | None = None, result: Any = None
    ) -> bool:
        """Replace a call's result: with a whole part as the founding page shows it, or by id and value.

        The call keeps its name and arguments. False if no such call is in the list.
        """
        if part is not None:
            given = part.get("toolInvocation", part)
            tool_call_id, result = given.get("toolCallId"), given.get("result")
        found = self.find_tool_invocation(tool_call_id) if tool_call_id is not None else None
        if found is None:
            return False
        found["toolInvocation"] = {**found["toolInvocation"], "state": "result", "result": result}
        found["toolInvocation"].pop("errorText", None)
        return True

    def reconcile(self, view: Sequence[Message], returned: Sequence[Message], source: Source) -> None:
        """Make the list say what a hook returned for its view: gone, changed and new messages, in the order returned.

        Messages outside the view keep their places; a returned one keeps the source it had, a new one gets `source`.
        """
        arriving: dict[str, Message] = {}
        for message in returned:
            if message.role == "system":
                self.add_system(message.text)
            else:
                arriving[message.id] = message
        sources = {id: self._sources.get(id, source) for id in arriving}
        seen = {message.id for message in view} | set(arriving)
        places = [id for id in self._messages if id in seen]
        last, coming = (places[-1] if places else None), iter(arriving.values())
        order: dict[str, Message] = {}
        for id, message in self._messages.items():
            if id not in seen:
                order[id] = message
                continue
            placed = next(coming, None)
            if placed is not None:
                order[placed.id] = placed
            if id == last:
                order.update((rest.id, rest) for rest in coming)
        order.update((rest.id, rest) for rest in coming)
        self._sources = {id: sources.get(id) or self._sources[id] for id in order}
        self._messages = order

    # ── rolling back ───────────────────────────────────────────────────────
    def ids(self) -> set[str]:
        """The ids of all messages."""
        return set(self._messages)

    def checkpoint(self) -> Checkpoint:
        """The list as it is, to come back to. Later edits in place don't reach it."""
        kept = [(message, message.role, _copied(message.content)) for message in self._messages.values()]
        systems = [SystemMessage(system.text, system.tag) for system in self.system_messages]
        return Checkpoint(kept, dict(self._sources), systems)

    def restore(self, mark: Checkpoint) -> None:
        """Come back to a checkpoint: the same message objects, with the content they had."""
        for message, role, content in mark.messages:
            message.role = role
            message.content.parts[:] = content.parts
            message.content.legacy, message.content.metadata = content.legacy, content.metadata
        self._messages = {message.id: message for message, _, _ in mark.messages}
        self._sources = dict(mark.sources)
        self.system_messages = mark.systems


@dataclass(slots=True, frozen=True)
class Checkpoint:
    """What `MessageList.checkpoint` keeps. It is used up by `restore`."""

    messages: list[tuple[Message, Role, MessageContent]]
    sources: dict[str, Source]
    systems: list[SystemMessage]


def _copied(content: MessageContent) -> MessageContent:
    """A copy with parts of its own. A tool call is one level deeper; all other values are replaced, never edited."""
    parts = [dict(part) for part in content.parts]
    for part in parts:
        if "toolInvocation" in part:
            part["toolInvocation"] = dict(part["toolInvocation"])
    return MessageContent(parts, legacy=content.legacy, metadata=dict(content.metadata))
