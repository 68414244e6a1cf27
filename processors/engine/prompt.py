"""From messages to the provider's prompt, and what is never sent to a model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from processors.engine.messages import Message, Part, SystemMessage
from processors.engine.ports import Prompt, PromptMessage


def excluded(message: Message) -> bool:
    """Messages of blocked and failed runs are shown to people and sent to no model again."""
    return message.blocked or message.withheld or bool(message.content.metadata.get("failed"))


def prompt_of(systems: Iterable[SystemMessage], messages: Iterable[Message]) -> Prompt:
    """The prompt for one call, in the shape of `ports.PromptMessage`."""
    prompt: Prompt = [{"role": "system", "content": system.text} for system in systems if system.text]
    messages = list(messages)
    answered = _Answered(messages)
    for message in messages:
        if excluded(message):
            continue
        if message.role == "user":
            content = _user_content(message)
            if content:
                prompt.append({"role": "user", "content": content})
        elif message.role == "assistant":
            prompt.extend(_assistant_messages(message, answered))
    return prompt


class _Answered:
    """The ids of calls that have an outcome somewhere: the client may bring it in a later message."""

    def __init__(self, messages: list[Message]) -> None:
        self._messages = messages
        self._ids: set[str] | None = None

    def __contains__(self, id: str) -> bool:
        if self._ids is None:
            self._ids = {
                part["toolInvocation"]["toolCallId"]
                for message in self._messages
                if not excluded(message)
                for part in message.content.parts
                if part.get("type") == "tool-invocation" and part["toolInvocation"].get("state") != "call"
            }
        return id in self._ids


def _user_content(message: Message) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    has_text = False
    for part in message.content.parts:
        kind = part.get("type")
        if kind == "text":
            has_text = True
            if part.get("text"):
                content.append({"type": "text", "text": part["text"]})
        elif kind == "file":
            content.append(dict(part))
    if not has_text and message.content.legacy:
        content.insert(0, {"type": "text", "text": message.content.legacy})
    return content


def _assistant_messages(message: Message, answered: _Answered) -> list[PromptMessage]:
    said: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    out: list[PromptMessage] = []

    def flush() -> None:
        if said:
            out.append({"role": "assistant", "content": list(said)})
        if results:
            out.append({"role": "tool", "content": list(results)})
        said.clear()
        results.clear()

    parts = message.content.parts
    if message.content.legacy and not any(part.get("type") == "text" for part in parts):
        said.append({"type": "text", "text": message.content.legacy})
    for part in parts:
        kind = part.get("type")
        if kind in ("text", "reasoning"):
            if results:
                flush()
            if part.get("text"):
                said.append({"type": kind, "text": part["text"]})
        elif kind == "tool-invocation":
            if (
                part["toolInvocation"].get("state") == "call"
                and part["toolInvocation"]["toolCallId"] in answered
            ):
                continue
            call, result = _tool_entries(part)
            said.append(call)
            results.append(result)
    flush()
    return out


def _tool_entries(part: Part) -> tuple[dict[str, Any], dict[str, Any]]:
    """The call and its result. A call without a result is closed with an error, as providers demand a pair."""
    invocation = part["toolInvocation"]
    names = {"toolCallId": invocation["toolCallId"], "toolName": invocation["toolName"]}
    call = {"type": "tool-call", **names, "args": invocation.get("args")}
    state = invocation.get("state")
    if state == "result":
        return call, {"type": "tool-result", **names, "result": invocation.get("result")}
    words = invocation.get("errorText") or "The tool did not finish."
    return call, {"type": "tool-result", **names, "result": words, "isError": True}
