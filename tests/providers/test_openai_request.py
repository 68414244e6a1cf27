"""Our prompt in the words of an OpenAI-compatible service."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from agents.providers.openai_request import allows_strict, messages_of, request_body
from processors.engine.errors import ConfigError, ModelAPIError
from processors.engine.ports import ModelRequest, Prompt

PICTURE = base64.b64encode(b"picture").decode()


def body_of(request: ModelRequest) -> dict[str, Any]:
    return request_body(request, model="m", option_keys=("openai",))[0]


def user_with(**part: Any) -> Prompt:
    return [{"role": "user", "content": [{"type": "text", "text": "See:"}, {"type": "file", **part}]}]


def test_a_conversation_with_tools_keeps_its_order_and_ids() -> None:
    prompt: Prompt = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
        {"role": "assistant", "content": [
            {"type": "reasoning", "text": "I look it up."}, {"type": "text", "text": "One moment."},
            {"type": "tool-call", "toolCallId": "c1", "toolName": "weather", "args": {"city": "Paris"}},
            {"type": "tool-call", "toolCallId": "c2", "toolName": "time", "args": {}},
        ]},
        {"role": "tool", "content": [
            {"type": "tool-result", "toolCallId": "c1", "toolName": "weather", "result": {"sky": "blau, schön"}},
            {"type": "tool-result", "toolCallId": "c2", "toolName": "time", "result": "noon"},
        ]},
    ]  # fmt: skip
    messages = messages_of(prompt)
    assert messages[0] == {"role": "system", "content": "Be kind."}
    assert messages[1] == {"role": "user", "content": "Weather?"}
    assert messages[2]["content"] == "One moment."
    assert [one["function"] for one in messages[2]["tool_calls"]] == [
        {"name": "weather", "arguments": '{"city": "Paris"}'}, {"name": "time", "arguments": "{}"}
    ]  # fmt: skip
    assert messages[3:] == [
        {"role": "tool", "tool_call_id": "c1", "content": '{"sky": "blau, schön"}'},
        {"role": "tool", "tool_call_id": "c2", "content": "noon"},
    ]
    assert "I look it up." not in json.dumps(messages)


@pytest.mark.parametrize(
    ("part", "sent"),
    [
        ({"mimeType": "image/png", "data": PICTURE},
         {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}),
        ({"mimeType": "image/png", "data": f"data:image/png;base64,{PICTURE}"},
         {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}),
        ({"mimeType": "image/png", "url": "https://example.com/a.png"},
         {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}),
        ({"mimeType": "audio/wav", "data": PICTURE},
         {"type": "input_audio", "input_audio": {"data": PICTURE, "format": "wav"}}),
        ({"mimeType": "application/pdf", "data": PICTURE, "name": "a.pdf"},
         {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PICTURE}"}}),
        ({"mimeType": "text/plain", "data": base64.b64encode("schön".encode()).decode()},
         {"type": "text", "text": "schön"}),
    ],
)  # fmt: skip
def test_files_travel_in_the_form_a_service_knows(part: dict[str, Any], sent: dict[str, Any]) -> None:
    (message,) = messages_of(user_with(**part))
    assert message["content"] == [{"type": "text", "text": "See:"}, sent]


@pytest.mark.parametrize(
    "part",
    [
        {"mimeType": "application/zip", "data": PICTURE}, {"mimeType": "image/png"}, {"data": PICTURE},
        {"mimeType": "image/png", "url": "file:///etc/passwd"}, {"mimeType": "text/plain", "data": "//8="},
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_sent_is_refused_not_lost(part: dict[str, Any]) -> None:
    with pytest.raises(ModelAPIError) as caught:
        messages_of(user_with(**part))
    assert (caught.value.provider_code, caught.value.retryable) == ("unsupported_file", False)


def test_settings_that_the_service_does_not_know_are_reported() -> None:
    settings = {"topP": 0.9, "stopSequences": ["END"], "topK": 4, "seed": None}
    body, warnings = request_body(ModelRequest([], settings=settings), model="m", option_keys=())
    assert (body["top_p"], body["stop"]) == (0.9, ["END"])
    assert "seed" not in body
    assert warnings == [{"type": "unsupported-setting", "setting": "topK"}]


@pytest.mark.parametrize("key", ["messages", "model", "stream", "tools", "n", "response_format"])
def test_provider_options_cannot_get_past_the_guardrails(key: str) -> None:
    with pytest.raises(ConfigError, match=f"cannot set {key}"):
        body_of(ModelRequest([], provider_options={"openai": {key: []}}))


def test_options_for_another_provider_are_not_sent() -> None:
    assert "thinking" not in body_of(ModelRequest([], provider_options={"anthropic": {"thinking": {}}}))


def test_without_tools_nothing_is_said_about_them() -> None:
    assert not {"tools", "tool_choice"} & body_of(ModelRequest([], tool_choice="required")).keys()


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False},
         True),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, False),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}, False),
        ({"type": "array", "items": {"type": "object", "properties": {}}}, False),
        ({"type": "array", "items": {"type": "string", "enum": ["a"]}}, True),
    ],
)  # fmt: skip
def test_a_schema_is_strict_only_where_strictness_is_possible(schema: dict[str, Any], strict: bool) -> None:
    body = body_of(ModelRequest([], response_schema=schema))
    assert body["response_format"] == {
        "type": "json_schema", "json_schema": {"name": "reply", "schema": schema, "strict": strict}
    }  # fmt: skip
    assert allows_strict(schema) is strict
