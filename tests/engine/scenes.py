"""A small scene for each hook: a script in which the hook is called, and how it can change something there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agents.providers.scripted import Call, says, tool_call
from processors.engine.errors import ModelAPIError
from processors.engine.hooks import HOOKS
from processors.engine.messages import user_message


@dataclass(slots=True, frozen=True)
class Scene:
    """script: what the model does. again: what it does after a refused attempt. text: what it comes to undisturbed.

    neutral: what the hook returns to change nothing. change: a change, and `shows` tells whether a run has it.
    wrong: returns that break the contract.
    """

    hook: str
    script: tuple[Call, ...]
    text: str
    change: Callable[[Any], Any]
    shows: Callable[[Any], bool]
    wrong: tuple[Any, ...]
    again: tuple[Call, ...] = (says("Second try, Alice."),)
    neutral: Callable[[Any], Any] = lambda args: None

    @property
    def retried_text(self) -> str:
        return "Second try, Alice."


ANSWER = "Hello, Alice. "
HELLO = (says(ANSWER),)
WITH_TOOL = ([*says(ANSWER), tool_call("echo", {"who": "charlie"})], says("Done."))


def _busy() -> Call:
    return [ModelAPIError("busy", status=503, retryable=True)]


def _prompt_text(played: Any) -> str:
    return repr([request.prompt for request in played.model.requests])


def _upper_part(args: Any) -> Any:
    return args.part.with_text(args.part.text.upper()) if args.part.type == "text-delta" else args.part


def _upper_messages(args: Any) -> Any:
    changed = [message.copy() for message in args.messages]
    for message in changed:
        if message.role == "assistant":
            message.set_text(message.text.upper())
    return changed


def _hidden_result(args: Any) -> Any:
    args.message_list.update_tool_invocation(tool_call_id=args.tool_call_id, result="hidden")
    return args.message_list


def _instead(args: Any) -> Any:
    return [user_message("Instead.", id=args.messages[-1].id)]


def _shows_upper(played: Any) -> bool:
    return bool(played.result.text == ANSWER.upper() and ("assistant", ANSWER.upper()) in played.thread.texts)


NO_MESSAGES: tuple[Any, ...] = (
    7,
    "text",
    {"message": []},
    [1],
    {"messages": "x"},
    {"messages": [], "message_list": None, "other": 1},
)
SCENES: dict[str, Scene] = {
    scene.hook: scene
    for scene in (
        Scene("process_input", HELLO, ANSWER, _instead,
              lambda p: "Instead." in _prompt_text(p) and "from Bob" not in _prompt_text(p), NO_MESSAGES),
        Scene("process_input_step", HELLO, ANSWER, lambda a: {"model_settings": {"temperature": 0.5}},
              lambda p: p.model.requests[0].settings == {"temperature": 0.5},
              (7, [1], {"modle": 1}, {"tools": "echo"}, {"active_tools": "echo"}, {"model_settings": 3}, {"model": 5},
               {"messages": [], "message_list": None})),
        Scene("process_llm_request", HELLO, ANSWER,
              lambda a: {"prompt": [*a.prompt, {"role": "system", "content": "Whisper."}]},
              lambda p: "Whisper." in _prompt_text(p) and "Whisper." not in p.thread.everything,
              (7, "text", [], {"prompts": []}, {"prompt": "x"}, {"response": "x"})),
        Scene("process_llm_response", HELLO, ANSWER, lambda a: a.state.setdefault("seen", len(a.chunks)) and None,
              lambda p: p.result.text == ANSWER, (7, [], {"chunks": []})),
        Scene("process_output_stream", HELLO, ANSWER, _upper_part, _shows_upper,
              (7, "text", True, {"type": "text-delta"}, [1]), neutral=lambda args: args.part),
        Scene("process_output_step", HELLO, ANSWER, _upper_messages, _shows_upper, NO_MESSAGES),
        Scene("process_tool_result", WITH_TOOL, f"{ANSWER}Done.", _hidden_result,
              lambda p: p.result.tool_results[0].result == "hidden" and "hidden" in p.thread.everything
              and "hidden" in repr(p.model.requests[1].prompt), NO_MESSAGES),
        Scene("process_output_result", HELLO, ANSWER, _upper_messages, _shows_upper, NO_MESSAGES),
        Scene("process_api_error", (_busy(), says(ANSWER)), "", lambda a: {"retry": True},
              lambda p: p.result.text == ANSWER, (7, [], "retry", {"again": True}), again=(says("Second try, Alice."),)),
    )
}  # fmt: skip
assert tuple(SCENES) == HOOKS, "every hook has a scene"
