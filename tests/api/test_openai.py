"""The official OpenAI client talks to agents."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import openai
import pytest
from openai import OpenAI

from accounts.models import User
from agents.models import Run
from agents.providers.scripted import Pause, says
from memory.models import Message
from processors.engine.errors import ModelAPIError
from tests.agents.conftest import Scripts, forbids, guardrail, published
from tests.api.conftest import key_of

pytestmark = pytest.mark.django_db(transaction=True)
HI: list[Any] = [{"role": "user", "content": "Hi"}]


@pytest.fixture
def ai(living_server: str) -> Iterator[Callable[[User], OpenAI]]:
    """Official clients with a person's API key."""
    opened: list[OpenAI] = []

    def open_client(user: User) -> OpenAI:
        opened.append(OpenAI(base_url=f"{living_server}/v1", api_key=key_of(user), max_retries=0, timeout=20))
        return opened[-1]

    yield open_client
    for one in opened:
        one.close()


def test_models_are_the_agents_one_may_chat_with(alice: User, script: Scripts, ai: Any) -> None:
    published()
    published("secret", access="groups")
    client = ai(alice)
    assert [model.id for model in client.models.list()] == ["helper"]
    assert client.models.retrieve("helper").owned_by == "gatehouse"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("secret")


def test_it_completes(alice: User, script: Scripts, ai: Any) -> None:
    script(says("Hello, Alice."))
    published()
    made = ai(alice).chat.completions.create(model="helper", messages=HI)
    assert (made.choices[0].message.content, made.choices[0].finish_reason) == ("Hello, Alice.", "stop")
    assert (made.usage.prompt_tokens, made.usage.completion_tokens, made.usage.total_tokens) == (10, 5, 15)
    assert made.id == f"chatcmpl-{Run.objects.get().pk}"


def test_it_streams_with_usage(alice: User, script: Scripts, ai: Any) -> None:
    script(says("Hello, Alice."), cut=4)
    published()
    options = {"include_usage": True}
    chunks = list(
        ai(alice).chat.completions.create(model="helper", messages=HI, stream=True, stream_options=options)
    )
    texts = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    assert [text for text in texts if text] == ["Hell", "o, A", "lice", "."]
    assert chunks[-2].choices[0].finish_reason == "stop" and chunks[-1].usage.total_tokens == 15


def test_the_caller_brings_history_and_a_system_text(alice: User, script: Scripts, ai: Any) -> None:
    script(says("You said tea."))
    published(instructions="Be kind.")
    messages = [
        {"role": "system", "content": "Answer in one sentence."}, {"role": "user", "content": "I like tea."},
        {"role": "assistant", "content": "Noted."}, {"role": "user", "content": [{"type": "text", "text": "What do I like?"}]},
    ]  # fmt: skip
    ai(alice).chat.completions.create(
        model="helper", messages=messages, temperature=0.5, max_tokens=50, stop="END"
    )
    request = script.models[-1].requests[-1]
    stored = Message.objects.order_by("position").values_list("role", "parts__0__text")
    assert list(stored) == [
        ("user", "I like tea."),
        ("assistant", "Noted."),
        ("user", "What do I like?"),
        ("assistant", "You said tea."),
    ]
    assert [(m["role"], m["content"] if m["role"] == "system" else m["content"][0]["text"]) for m in request.prompt] == [
        ("system", "Be kind."), ("system", "Answer in one sentence."), ("user", "I like tea."), ("assistant", "Noted."),
        ("user", "What do I like?"),
    ]  # fmt: skip
    assert request.settings == {"temperature": 0.5, "max_output_tokens": 50, "stop": ["END"]}


def test_earlier_messages_of_the_caller_pass_the_input_chain(alice: User, script: Scripts, ai: Any) -> None:
    script(says("Never asked."))
    published(chain={"input": [forbids("persimmon")]})
    messages = [{"role": "user", "content": "A persimmon"}, {"role": "user", "content": "Explain the above"}]
    made = ai(alice).chat.completions.create(model="helper", messages=messages)
    assert made.choices[0].finish_reason == "content_filter"
    assert "persimmon" not in str(list(Message.objects.values_list("parts", flat=True)))


def test_a_blocked_answer_is_a_content_filter_with_a_refusal(alice: User, script: Scripts, ai: Any) -> None:
    script(says("A persimmon."))
    published(chain={"output": [forbids("persimmon", public_message="No fruit.")]})
    client = ai(alice)
    made = client.chat.completions.create(model="helper", messages=HI).choices[0]
    assert (made.finish_reason, made.message.content, made.message.refusal) == (
        "content_filter",
        None,
        "No fruit.",
    )
    chunks = list(client.chat.completions.create(model="helper", messages=HI, stream=True))
    assert chunks[-1].choices[0].finish_reason == "content_filter"
    assert "".join(chunk.choices[0].delta.refusal or "" for chunk in chunks) == "No fruit."


def test_a_second_try_leaves_no_word_of_the_first(alice: User, script: Scripts, ai: Any) -> None:
    """This wire cannot withdraw text, so a step's text waits until no guardrail asks for another try."""
    script(
        lambda request: says(
            "Good."
            if "feedback" in str(request.prompt) or len(script.models[-1].requests) > 1
            else "Bad persimmon."
        )
    )
    rule = guardrail("block-list", "again", options={"words": ["persimmon"], "strategy": "retry"})
    published(chain={"output": [rule]}, max_processor_retries=2)
    chunks = list(ai(alice).chat.completions.create(model="helper", messages=HI, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Good."


def test_a_provider_that_breaks_off_ends_the_stream_with_an_error(
    alice: User, script: Scripts, ai: Any
) -> None:
    script([*says("Half an "), ModelAPIError("Broken off.", status=503, retryable=True)])
    published()
    with pytest.raises(openai.APIError, match="Broken off"):
        list(ai(alice).chat.completions.create(model="helper", messages=HI, stream=True))
    with pytest.raises(openai.InternalServerError) as failure:
        ai(alice).chat.completions.create(model="helper", messages=HI)
    assert failure.value.status_code == 502 and failure.value.code == "model_api"


def test_a_client_that_leaves_stops_its_run(alice: User, script: Scripts, ai: Any) -> None:
    script([*says("Begun. "), Pause(30), *says("Never.")])
    published()
    stream = ai(alice).chat.completions.create(model="helper", messages=HI, stream=True)
    for chunk in stream:
        if chunk.choices[0].delta.content:
            break
    stream.close()
    deadline = time.monotonic() + 10
    while (run := Run.objects.get()).status not in Run.FINAL and time.monotonic() < deadline:
        time.sleep(0.05)
    assert run.status == "cancelled" and run.text == "Begun. "


def test_with_a_key_the_run_goes_on_and_is_found_again(alice: User, script: Scripts, ai: Any) -> None:
    script([*says("Begun. "), Pause(0.5), *says("Done.")])
    published()
    client, headers = ai(alice), {"Idempotency-Key": "job-1"}
    stream = client.chat.completions.create(model="helper", messages=HI, stream=True, extra_headers=headers)
    next(iter(stream))
    stream.close()
    made = client.chat.completions.create(model="helper", messages=HI, extra_headers=headers)
    assert made.choices[0].message.content == "Begun. Done." and Run.objects.count() == 1


@pytest.mark.parametrize(
    "body",
    [
        {"model": "helper"},
        {"model": "helper", "messages": []},
        {"model": "helper", "messages": ["Hi"]},
        {"model": "helper", "messages": [{"role": "assistant", "content": "Hi"}]},
        {"model": "helper", "messages": [{"role": "tool", "content": "x"}, *HI]},
        {"model": "helper", "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x/y.png"}}]}]},
        {"model": 5, "messages": HI},
        {"model": "helper", "messages": HI, "n": 2},
        {"model": "helper", "messages": HI, "tools": [{"type": "function"}]},
        {"model": "helper", "messages": HI, "temperature": 9},
        {"model": "helper", "messages": HI, "response_format": {"type": "json_schema"}},
        ["no object"],
    ],
)  # fmt: skip
def test_what_cannot_be_honoured_is_refused_by_name(
    alice: User, script: Scripts, living_server: str, body: Any
) -> None:
    published()
    headers = {"Authorization": f"Bearer {key_of(alice)}"}
    answer = httpx.post(f"{living_server}/v1/chat/completions", json=body, headers=headers, trust_env=False)
    error = answer.json()["error"]
    assert (answer.status_code, error["type"], error["code"]) == (400, "invalid_request_error", "bad_request")
    assert error["message"].endswith(".") and Run.objects.count() == 0


def test_errors_have_the_shape_that_clients_know(
    alice: User, script: Scripts, ai: Any, living_server: str
) -> None:
    with pytest.raises(openai.NotFoundError, match="no agent"):
        ai(alice).chat.completions.create(model="nobody", messages=HI)
    stranger = OpenAI(base_url=f"{living_server}/v1", api_key="gh_wrong", max_retries=0)
    with stranger, pytest.raises(openai.AuthenticationError) as refused:
        stranger.models.list()
    assert refused.value.code == "invalid_api_key"


def test_a_structured_answer_follows_its_schema(alice: User, script: Scripts, ai: Any) -> None:
    script(says('{"colour": "blue"}'))
    published()
    schema = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}
    format = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    made = ai(alice).chat.completions.create(model="helper", messages=HI, response_format=format)
    assert made.choices[0].message.content == '{"colour": "blue"}'
    assert script.models[-1].requests[-1].response_schema == schema
