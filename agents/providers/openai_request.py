"""From our prompt to the body of an OpenAI-compatible `/chat/completions` call. litellm takes the same shapes.

The format: https://platform.openai.com/docs/api-reference/chat/create
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, Final, TypeAlias

from processors.engine.errors import ConfigError, ModelAPIError
from processors.engine.ports import ModelRequest, Prompt, PromptMessage, ToolChoice

JSON: TypeAlias = dict[str, Any]

SETTINGS: Final = {
    "temperature": "temperature", "topP": "top_p", "top_p": "top_p", "seed": "seed", "stop": "stop",
    "stopSequences": "stop", "stop_sequences": "stop",
    "presencePenalty": "presence_penalty", "presence_penalty": "presence_penalty",
    "frequencyPenalty": "frequency_penalty", "frequency_penalty": "frequency_penalty",
    "maxOutputTokens": "max_tokens", "max_output_tokens": "max_tokens",
    "maxTokens": "max_tokens", "max_tokens": "max_tokens",
}  # fmt: skip
OWN_KEYS: Final = frozenset({
    "model", "messages", "stream", "stream_options", "tools", "functions", "n", "response_format",
})  # fmt: skip
"""What provider options must not set: it would bypass what guardrails saw, or break the reply's reading."""
AUDIO_FORMATS: Final = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}


def request_body(
    request: ModelRequest, *, model: str, option_keys: tuple[str, ...]
) -> tuple[JSON, list[JSON]]:
    """(body, warnings). Warnings name the settings that this format does not know.

    option_keys: the keys of `provider_options` that are meant for this client.
    Raises ConfigError for options that are ours, ModelAPIError for a file that cannot be sent.
    """
    body: JSON = {
        "model": model,
        "messages": messages_of(request.prompt),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    warnings: list[JSON] = []
    for name, value in request.settings.items():
        if value is None:
            continue
        if name in SETTINGS:
            body[SETTINGS[name]] = value
        else:
            warnings.append({"type": "unsupported-setting", "setting": name})
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": t.name, "description": t.description, "parameters": t.parameters},
            }
            for t in request.tools
        ]
        body["tool_choice"] = _tool_choice(request.tool_choice)
    if request.response_schema is not None:
        body["response_format"] = _response_format(request.response_schema)
    for key in option_keys:
        options = request.provider_options.get(key) or {}
        if not isinstance(options, dict):
            raise ConfigError(f"The provider options for {key!r} must be an object of names and values.")
        if refused := OWN_KEYS & options.keys():
            raise ConfigError(f"Provider options cannot set {', '.join(sorted(refused))}. Remove that.")
        body.update(options)
    return body, warnings


def messages_of(prompt: Prompt) -> list[JSON]:
    """The prompt's messages in OpenAI's shape. Reasoning stays out: services refuse or ignore it."""
    messages: list[JSON] = []
    for message in prompt:
        role = message["role"]
        if role == "system":
            messages.append({"role": "system", "content": message["content"]})
        elif role == "user":
            messages.append({"role": "user", "content": _user_content(message["content"])})
        elif role == "assistant":
            messages.append(_assistant(message))
        elif role == "tool":
            messages.extend(
                {"role": "tool", "tool_call_id": part["toolCallId"], "content": _text(part.get("result"))}
                for part in message["content"]
                if part.get("type") == "tool-result"
            )
        else:
            raise ConfigError(f"A prompt has messages of system, user, assistant and tool, not {role!r}.")
    return messages


def _assistant(message: PromptMessage) -> JSON:
    parts = message["content"]
    if isinstance(parts, str):
        return {"role": "assistant", "content": parts}
    text = "".join(part["text"] for part in parts if part.get("type") == "text")
    calls = [
        {
            "id": part["toolCallId"],
            "type": "function",
            "function": {"name": part["toolName"], "arguments": json.dumps(part.get("args") or {})},
        }
        for part in parts
        if part.get("type") == "tool-call"
    ]
    if not calls:
        return {"role": "assistant", "content": text}
    return {"role": "assistant", "content": text or None, "tool_calls": calls}


def _user_content(parts: Any) -> str | list[JSON]:
    if isinstance(parts, str):
        return parts
    # Plain text goes as a string: small servers know nothing else.
    if len(parts) == 1 and parts[0].get("type") == "text":
        return str(parts[0]["text"])
    return [_user_part(part) for part in parts]


def _user_part(part: JSON) -> JSON:
    if part.get("type") == "text":
        return {"type": "text", "text": part["text"]}
    if part.get("type") != "file":
        raise ConfigError(f"A user message has text and files, not {part.get('type')!r}.")
    mime = str(part.get("mimeType") or "application/octet-stream")
    if mime.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": _address(part, mime)}}
    if mime in AUDIO_FORMATS and part.get("data"):
        return {"type": "input_audio", "input_audio": {"data": _base64(part), "format": AUDIO_FORMATS[mime]}}
    if mime == "application/pdf" and part.get("data"):
        name = str(part.get("name") or "document.pdf")
        return {"type": "file", "file": {"filename": name, "file_data": _address(part, mime)}}
    if mime.startswith("text/") and part.get("data"):
        try:
            return {"type": "text", "text": base64.b64decode(_base64(part), validate=True).decode("utf-8")}
        except (binascii.Error, UnicodeDecodeError):
            pass
    raise ModelAPIError(
        f"A file of the type {mime} cannot be sent to this model. Send text, an image, sound or a PDF.",
        provider_code="unsupported_file",
    )


def _address(part: JSON, mime: str) -> str:
    """A data URL of the file's own bytes, or the web address the service shall load it from."""
    if part.get("data"):
        return f"data:{mime};base64,{_base64(part)}"
    url = str(part.get("url") or "")
    if url.startswith(("https://", "http://", "data:")):
        return url
    raise ModelAPIError(
        "A file has neither data nor a web address. Attach it again.", provider_code="unsupported_file"
    )


def _base64(part: JSON) -> str:
    data = part["data"]
    if isinstance(data, bytes):
        return base64.b64encode(data).decode("ascii")
    return str(data).rpartition(";base64,")[2]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _tool_choice(choice: ToolChoice) -> str | JSON:
    if isinstance(choice, str):
        return choice
    return {"type": "function", "function": {"name": choice["toolName"]}}


def _response_format(schema: JSON) -> JSON:
    return {
        "type": "json_schema",
        "json_schema": {"name": "reply", "schema": schema, "strict": allows_strict(schema)},
    }


def allows_strict(schema: Any) -> bool:
    """Whether OpenAI's strict mode takes the schema: closed objects whose properties are all required."""
    if isinstance(schema, list):
        return all(map(allows_strict, schema))
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        names = set(schema.get("properties", {}))
        if schema.get("additionalProperties") is not False or names != set(schema.get("required", ())):
            return False
        return all(map(allows_strict, schema.get("properties", {}).values()))
    return all(map(allows_strict, (v for k, v in schema.items() if k not in ("enum", "const", "default"))))
