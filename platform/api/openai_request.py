"""What an OpenAI-shaped request asks for, as arguments of the run service.

The agent's instructions, tools, guardrails and limits cannot be changed by a call. What cannot be honoured is refused by name rather
than dropped silently.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from agents.services.runs import RunRefused

SAME_NAME: Final = ("temperature", "top_p", "seed", "stop", "presence_penalty", "frequency_penalty")
NOT_OFFERED: Final[dict[str, str]] = {
    "tools": "An agent's tools are chosen in the console; a call cannot bring its own.",
    "functions": "An agent's tools are chosen in the console; a call cannot bring its own.",
    "logprobs": "Log probabilities are not available.",
    "logit_bias": "A call cannot bias tokens.",
    "audio": "Audio is not available.",
}
DATA_URL: Final = re.compile(
    r"data:(?P<mime>[a-z]+/[a-z0-9.+-]{1,80});base64,(?P<data>[A-Za-z0-9+/=]+)", re.ASCII
)


@dataclass(slots=True, frozen=True)
class Asked:
    """A checked request. `start`: keyword arguments of `run_start`."""

    model: str
    stream: bool
    with_usage: bool
    start: dict[str, Any]


def asked_of(body: Any) -> Asked:
    """Read a request's body. Raises RunRefused."""
    if not isinstance(body, dict):
        raise RunRefused("bad_request", "The body must be a JSON object.")
    for name, why in NOT_OFFERED.items():
        if body.get(name):
            raise RunRefused("bad_request", f"“{name}”: {why}")
    if body.get("n") not in (None, 1):
        raise RunRefused("bad_request", "“n”: one answer per call is possible.")
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise RunRefused("bad_request", "“model”: name an agent by its short name.")
    text, files, history, system = _conversation(body.get("messages"))
    settings = {name: body[name] for name in SAME_NAME if body.get(name) is not None}
    limit = body.get("max_completion_tokens") or body.get("max_tokens")
    if limit is not None:
        settings["max_output_tokens"] = limit
    overrides = {
        "system": system or None, "history": history or None, "model_settings": settings or None,
        "tool_choice": body.get("tool_choice"), "structured_output": _schema(body.get("response_format")),
    }  # fmt: skip
    options = body.get("stream_options")
    usage = bool(options.get("include_usage")) if isinstance(options, dict) else False
    return Asked(
        model, bool(body.get("stream")), usage,
        {"agent_slug": model, "text": text, "parts": files or None, "overrides": overrides},
    )  # fmt: skip


def _conversation(messages: Any) -> tuple[str, list[dict[str, Any]], list[dict[str, str]], str]:
    """The last message's text and files, the earlier messages, and the system text."""
    if not isinstance(messages, list) or not messages or not all(isinstance(one, dict) for one in messages):
        raise RunRefused("bad_request", "“messages” must be a list with at least one message.")
    last = messages[-1]
    if last.get("role") != "user":
        raise RunRefused("bad_request", "“messages”: the last message must be the user's.")
    system, history = [], []
    for one in messages[:-1]:
        role = one.get("role")
        text, files = _content(one.get("content"))
        if files:
            raise RunRefused("bad_request", "“messages”: only the last message may bring files.")
        if role in ("system", "developer"):
            system.append(text)
        elif role in ("user", "assistant"):
            history.append({"role": str(role), "text": text})
        else:
            raise RunRefused("bad_request", f"“messages”: the role {str(role)[:40]!r} is not possible here.")
    text, files = _content(last.get("content"))
    return text, files, history, "\n".join(system)


def _content(content: Any) -> tuple[str, list[dict[str, Any]]]:
    """A message's text and files: a string, or a list of text and image parts."""
    if content is None or isinstance(content, str):
        return content or "", []
    if not isinstance(content, list):
        raise RunRefused("bad_request", "“content” must be a text or a list of parts.")
    texts, files = [], []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text" and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif kind == "image_url":
            files.append(_image(part.get("image_url")))
        else:
            raise RunRefused(
                "bad_request", f"“content”: a part of the type {str(kind)[:40]!r} is not possible here."
            )
    return "".join(texts), files


def _image(value: Any) -> dict[str, Any]:
    address = value.get("url") if isinstance(value, dict) else None
    found = DATA_URL.fullmatch(address) if isinstance(address, str) else None
    if found is None:
        raise RunRefused(
            "bad_request", "“image_url”: send the image itself as a data: address; others are not fetched."
        )
    return {"type": "file", "mimeType": found["mime"], "data": found["data"]}


def _schema(format: Any) -> dict[str, Any] | None:
    """`response_format` as a JSON Schema."""
    if format is None:
        return None
    kind = format.get("type") if isinstance(format, dict) else None
    if kind == "text":
        return None
    if kind == "json_object":
        return {"schema": {"type": "object"}}
    schema = (format.get("json_schema") or {}).get("schema") if kind == "json_schema" else None
    if not isinstance(schema, dict):
        raise RunRefused(
            "bad_request", "“response_format” must be text, json_object, or json_schema with a schema."
        )
    return {"schema": schema}
