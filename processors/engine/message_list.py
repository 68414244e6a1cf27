"""The live list of a run's messages (contract section 3).

Look-ups go by id and cost the same for ten messages as for ten thousand; nothing is ever sorted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

from processors.engine.messages import Message, Part, SystemMessage, assistant_message, user_message
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
        for message in messages:
            if isinstance(message, str):
                message = assistant_message(message) if source == "response" else user_message(message)
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
                if part.get("type") == "tool-invocation" and part["toolInvocation"]["toolCallId"] == tool_call_id:
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
        """Make the list say what a hook returned for its view: gone, changed and new messages, in the order returned."""
        seen = {message.id for message in view}
        kept = [message for message in returned if message.role != "system"]
        for message in returned:
            if message.role == "system":
                self.add_system(message.text)
        sources = {m.id: self._sources.get(m.id, source) for m in kept}
        order: dict[str, Message] = {}
        placed = False
        arriving = {message.id for message in kept}
        for id, message in self._messages.items():
            if id in seen or id in arriving:
                if not placed and id in seen:
                    placed = True
                    order.update((m.id, m) for m in kept)
                continue
            order[id] = message
        if not placed:
            order.update((m.id, m) for m in kept)
        self._sources = {id: sources.get(id) or self._sources[id] for id in order}
        self._messages = order
