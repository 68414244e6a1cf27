"""Leaves old tool calls and their results out of the prompt: they are long, and rarely needed again."""

from __future__ import annotations

import json
from typing import Any, Final

from pydantic import Field

from processors.engine.hooks import ProcessLLMRequestArgs
from processors.engine.ports import BuildContext, Prompt, PromptMessage
from processors.engine.processor import Processor
from processors.engine.registry import Options, ProcessorKind, Registry

SLUG: Final = "tool-call-filter"
LONGEST_NOTE: Final = 2000
"""Characters of a result that stay when calls become text."""


class ToolCallFilterOptions(Options):
    """Which calls are left out."""

    exclude: list[str] | None = Field(None, title="Tools", description="Calls of these tools are left out. Empty: of all tools.", max_length=500)  # fmt: skip
    filter_after_tool_steps: int | None = Field(None, title="Steps of this run that stay", description="Keep only the calls of the last so many steps of the running answer. Empty: keep all of them.", ge=0, le=1000)  # fmt: skip
    preserve_model_output: bool = Field(False, title="Keep a note", description="Put one line of text in place of a call and its result instead of leaving both out.")  # fmt: skip


class ToolCallFilter(Processor):
    """Changes the prompt of one call only; what is stored and shown stays as it is."""

    def __init__(self, id: str, options: ToolCallFilterOptions) -> None:
        super().__init__(id)
        self.options = options

    def process_llm_request(self, args: ProcessLLMRequestArgs) -> dict[str, Prompt] | None:
        kept = self._current_calls(args)
        gone = {
            part["toolCallId"]
            for message in args.prompt if message["role"] == "assistant"
            for part in message["content"]
            if part.get("type") == "tool-call" and part["toolCallId"] not in kept and self._excluded(part["toolName"])
        }  # fmt: skip
        if not gone:
            return None
        notes = _results(args.prompt, gone) if self.options.preserve_model_output else {}
        prompt: Prompt = []
        for message in args.prompt:
            _append(prompt, _without(message, gone, notes))
        return {"prompt": prompt}

    def _excluded(self, name: str) -> bool:
        return self.options.exclude is None or name in self.options.exclude

    def _current_calls(self, args: ProcessLLMRequestArgs) -> set[str]:
        limit = self.options.filter_after_tool_steps
        if limit is not None:
            steps = [step for step in args.steps if step.tool_calls]
            return {
                call.tool_call_id for step in steps[max(0, len(steps) - limit) :] for call in step.tool_calls
            }
        return {
            part["toolInvocation"]["toolCallId"]
            for message in args.message_list.response
            for part in message.content.parts if part.get("type") == "tool-invocation"
        }  # fmt: skip


def _results(prompt: Prompt, gone: set[str]) -> dict[str, str]:
    """A line of text for each call that goes."""
    results = {
        part["toolCallId"]: part
        for message in prompt
        if message["role"] == "tool"
        for part in message["content"]
    }
    notes: dict[str, str] = {}
    for message in prompt:
        for part in message["content"] if message["role"] == "assistant" else ():
            if part.get("type") == "tool-call" and part["toolCallId"] in gone:
                value = results.get(part["toolCallId"], {}).get("result")
                notes[part["toolCallId"]] = (
                    f"[{part['toolName']}({_short(part.get('args'))}) gave {_short(value)}]\n"
                )
    return notes


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST_NOTE else text[:LONGEST_NOTE] + "…"


def _without(message: PromptMessage, gone: set[str], notes: dict[str, str]) -> PromptMessage | None:
    """The message without the calls and results that go; None if nothing is left."""
    if message["role"] not in ("assistant", "tool"):
        return message
    content = []
    for part in message["content"]:
        if part.get("type") not in ("tool-call", "tool-result") or part["toolCallId"] not in gone:
            content.append(part)
        elif part["type"] == "tool-call" and part["toolCallId"] in notes:
            content.append({"type": "text", "text": notes[part["toolCallId"]]})
    return {**message, "content": content} if content else None


def _append(prompt: Prompt, message: PromptMessage | None) -> None:
    """Add a message; an assistant's message that now follows another becomes part of it, as providers want turns."""
    if message is None:
        return
    if prompt and message["role"] == "assistant" == prompt[-1]["role"]:
        prompt[-1] = {**prompt[-1], "content": [*prompt[-1]["content"], *message["content"]]}
    else:
        prompt.append(message)


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> ToolCallFilter:
        return ToolCallFilter(id, options)

    registry.register(ProcessorKind(
        slug=SLUG, title="Leave out old tool calls", description="Takes tool calls of earlier answers, with their results, out of what the model is sent.",
        options=ToolCallFilterOptions, factory=build, stages=frozenset({"input"}), group="Plumbing",
    ))  # fmt: skip
