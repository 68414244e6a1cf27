"""What an action of a probe looks at: its conditions and its subject."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from processors.engine.messages import Message, texts_of


def prompt_texts(prompt: list[dict[str, Any]]) -> list[str]:
    """All texts of a prompt, in order."""
    texts: list[str] = []
    for message in prompt:
        content = message["content"]
        if isinstance(content, str):
            texts.append(content)
        else:
            texts.extend(part["text"] for part in content if part.get("type") == "text")
    return texts


def subject_of(hook: str, args: Any) -> str:
    """The text that the text conditions look at."""
    if hook == "process_output_stream":
        part = args.part
        if part.payload and isinstance(part.payload.get("text"), str):
            return str(part.payload["text"])
        return json.dumps(part.data) if part.is_data else ""
    if hook == "process_output_step":
        return str(args.text)
    if hook == "process_output_result":
        return str(args.result.text)
    if hook == "process_tool_result":
        return args.result if isinstance(args.result, str) else json.dumps(args.result)
    if hook == "process_api_error":
        return str(args.error)
    if hook == "process_llm_request":
        return "\n".join(prompt_texts(args.prompt))
    if hook == "process_llm_response":
        return "".join(chunk["payload"]["text"] for chunk in args.chunks if chunk["type"] == "text-delta")
    return texts_of(args.messages)


def chosen(messages: list[Message], select: dict[str, Any] | None) -> list[Message]:
    """The messages that a selection names."""
    select = select or {}
    found = list(messages)
    if "role" in select:
        found = [m for m in found if m.role == select["role"]]
    if "text_contains" in select:
        found = [m for m in found if select["text_contains"] in m.text]
    if "index" in select:
        at = select["index"]
        found = [found[at]] if -len(found) <= at < len(found) else []
    if "from" in select or "to" in select:
        found = found[select.get("from") : select.get("to")]
    return found


def edited(text: str, edit: dict[str, Any]) -> str:
    """A text after an edit."""
    if "set" in edit:
        return str(edit["set"])
    if edit.get("upper"):
        return text.upper()
    if edit.get("lower"):
        return text.lower()
    if "replace" in edit:
        rule = edit["replace"]
        flags = re.IGNORECASE if "i" in rule.get("flags", "") else 0
        return re.sub(rule["pattern"], rule["with"].replace("\\", "\\\\"), text, flags=flags)
    return f"{edit.get('prefix', '')}{text}{edit.get('suffix', '')}"


def tool_name_of(args: Any) -> Any:
    name = getattr(args, "tool_name", None)
    if name is None and getattr(args, "part", None) is not None:
        name = (args.part.payload or {}).get("toolName")
    return name


CHECKS: dict[str, Callable[[Any, str, Any, int], bool]] = {
    "step_number": lambda args, hook, want, nth: args.step_number == want,
    "step_number_gte": lambda args, hook, want, nth: args.step_number >= want,
    "step_number_lt": lambda args, hook, want, nth: args.step_number < want,
    "retry_count": lambda args, hook, want, nth: args.retry_count == want,
    "retry_count_lt": lambda args, hook, want, nth: args.retry_count < want,
    "retry_count_gte": lambda args, hook, want, nth: args.retry_count >= want,
    "chunk_type": lambda args, hook, want, nth: args.part.type in ([want] if isinstance(want, str) else want),
    "tool_name": lambda args, hook, want, nth: tool_name_of(args) == want,
    "text_contains": lambda args, hook, want, nth: want in subject_of(hook, args),
    "text_lacks": lambda args, hook, want, nth: want not in subject_of(hook, args),
    "text_matches": lambda args, hook, want, nth: bool(
        re.search(want, subject_of(hook, args), re.IGNORECASE)
    ),
    "nth": lambda args, hook, want, nth: nth == want,
    "nth_lt": lambda args, hook, want, nth: nth < want,
    "state_has": lambda args, hook, want, nth: want in args.state,
    "state_lacks": lambda args, hook, want, nth: want not in args.state,
    "state_gte": lambda args, hook, want, nth: all(args.state.get(k, 0) >= n for k, n in want.items()),
    "state_equals": lambda args, hook, want, nth: all(args.state.get(k) == v for k, v in want.items()),
    "from_cache": lambda args, hook, want, nth: args.from_cache == want,
    "finish_reason": lambda args, hook, want, nth: args.finish_reason == want,
    "has_tool_calls": lambda args, hook, want, nth: bool(args.tool_calls) == want,
    "message_count_gt": lambda args, hook, want, nth: len(args.messages) > want,
    "error_status": lambda args, hook, want, nth: getattr(args.error, "status", None) == want,
}


def holds(when: dict[str, Any], hook: str, args: Any, nth: int) -> bool:
    """Whether all conditions hold."""
    return all(CHECKS[name](args, hook, want, nth) for name, want in when.items())
