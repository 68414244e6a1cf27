"""Makes a conversation's history fit a provider that is stricter than the one that wrote it."""

from __future__ import annotations

import re
from typing import Any, Final

from pydantic import Field

from processors.engine.errors import ModelAPIError
from processors.engine.hooks import ProcessAPIErrorArgs, ProcessLLMRequestArgs
from processors.engine.ports import BuildContext, Prompt, PromptMessage
from processors.engine.processor import Processor
from processors.engine.registry import Options, ProcessorKind, Registry

SLUG: Final = "provider-history"
NOT_IN_IDS: Final = re.compile(r"[^A-Za-z0-9_-]")
ABOUT_REASONING: Final = re.compile(r"thinking|reasoning|signature", re.IGNORECASE)


class ProviderHistoryOptions(Options):
    """What is put right before each call."""

    tool_call_ids: bool = Field(True, title="Plain call ids", description="Write tool call ids with letters, digits, _ and - only, at most 40 of them.")  # fmt: skip
    pair_tools: bool = Field(True, title="Calls with results", description="Leave out results whose call is gone and close calls that have no result.")  # fmt: skip
    drop_reasoning: bool = Field(False, title="Leave out reasoning", description="Don't send what models thought aloud in earlier steps.")  # fmt: skip
    join_turns: bool = Field(
        True, title="Strict turns", description="Join neighbouring messages of the same role."
    )


class ProviderHistory(Processor):
    """Changes prompts only; in the error chain it leaves out remembered reasoning once, when a provider complains about it."""

    def __init__(self, id: str, options: ProviderHistoryOptions) -> None:
        super().__init__(id)
        self.options = options

    def process_llm_request(self, args: ProcessLLMRequestArgs) -> dict[str, Prompt] | None:
        prompt = [_copied(message) for message in args.prompt]
        if self.options.drop_reasoning or args.state.get("drop_reasoning"):
            prompt = [_without_reasoning(message) for message in prompt]
        if self.options.tool_call_ids:
            _rename_calls(prompt)
        if self.options.pair_tools:
            prompt = _paired(prompt)
        prompt = [message for message in prompt if message["content"]]
        if self.options.join_turns:
            prompt = _joined(prompt)
        return {"prompt": prompt} if prompt != args.prompt else None

    def process_api_error(self, args: ProcessAPIErrorArgs) -> dict[str, bool] | None:
        error = args.error
        if not isinstance(error, ModelAPIError) or error.status not in (400, 422) or not ABOUT_REASONING.search(str(error)):  # fmt: skip
            return None
        if args.state.get("drop_reasoning"):
            return None
        args.state["drop_reasoning"] = True
        changed = False
        for message in args.message_list.remembered:
            kept = [part for part in message.content.parts if part.get("type") != "reasoning"]
            changed = changed or len(kept) < len(message.content.parts)
            message.content.parts[:] = kept
        return {"retry": True} if changed else None


def _copied(message: PromptMessage) -> PromptMessage:
    content = message["content"]
    return {**message, "content": content if isinstance(content, str) else [dict(part) for part in content]}


def _without_reasoning(message: PromptMessage) -> PromptMessage:
    if message["role"] != "assistant":
        return message
    return {**message, "content": [part for part in message["content"] if part.get("type") != "reasoning"]}


def _rename_calls(prompt: Prompt) -> None:
    """Give odd ids a plain form; different ids stay different."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for message in prompt:
        for part in message["content"] if message["role"] in ("assistant", "tool") else ():
            given = part.get("toolCallId")
            if given is None:
                continue
            if given not in names:
                plain = NOT_IN_IDS.sub("_", str(given))[:40] or "call"
                number = 1
                while plain in taken:
                    number += 1
                    plain = f"{plain[:34]}-{number}"
                names[given] = plain
                taken.add(plain)
            part["toolCallId"] = names[given]


def _paired(prompt: Prompt) -> Prompt:
    """Every call is followed by its result, every result has its call."""
    out: Prompt = []
    for at, message in enumerate(prompt):
        if message["role"] == "tool":
            calls = _calls(prompt[at - 1]) if at else {}
            out.append(
                {**message, "content": [part for part in message["content"] if part["toolCallId"] in calls]}
            )
            continue
        out.append(message)
        calls = _calls(message)
        following = prompt[at + 1] if at + 1 < len(prompt) else None
        answered = {part["toolCallId"] for part in following["content"]} if following and following["role"] == "tool" else set()  # fmt: skip
        missing = [part for id, part in calls.items() if id not in answered]
        if missing:
            closed = [{"type": "tool-result", "toolCallId": part["toolCallId"], "toolName": part["toolName"], "result": "The tool did not finish.", "isError": True} for part in missing]  # fmt: skip
            if answered and following is not None:
                following["content"] = [*closed, *following["content"]]
            else:
                out.append({"role": "tool", "content": closed})
    return out


def _calls(message: PromptMessage) -> dict[str, dict[str, Any]]:
    if message["role"] != "assistant":
        return {}
    return {part["toolCallId"]: part for part in message["content"] if part.get("type") == "tool-call"}


def _joined(prompt: Prompt) -> Prompt:
    out: Prompt = []
    for message in prompt:
        if out and message["role"] == out[-1]["role"] and message["role"] != "system" and not _calls(out[-1]):
            out[-1] = {**out[-1], "content": [*out[-1]["content"], *message["content"]]}
        else:
            out.append(message)
    return out


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> ProviderHistory:
        return ProviderHistory(id, options)

    registry.register(ProcessorKind(
        slug=SLUG, title="History for strict providers", description="Puts call ids, tool pairs and turns right, so that a conversation can go on with another provider.",
        options=ProviderHistoryOptions, factory=build, stages=frozenset({"input", "error"}), group="Plumbing",
    ))  # fmt: skip
