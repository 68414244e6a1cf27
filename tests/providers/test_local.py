"""The small model of this machine gets what it can take."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from agents.providers.local import MOST_CHARACTERS, SYSTEM_PROMPT, LocalModel, fitted, shortened
from processors.engine.errors import ConfigError, ModelAPIError
from processors.engine.ports import ModelRequest, Prompt, ToolSpec
from tests.providers.asking import HELLO, answer, of_type, text_of
from tests.providers.server import ModelServer, ends, event, says

on_the_wire = pytest.mark.asyncio(loop_scope="package")


def talk(count: int, length: int) -> Prompt:
    roles = ["user", "assistant"]
    return [
        {"role": roles[number % 2], "content": [{"type": "text", "text": f"{number} ".ljust(length, "x")}]}
        for number in range(count)
    ]


@on_the_wire
async def test_its_address_is_asked_in_a_thread_at_the_call(server: ModelServer) -> None:
    asked: list[Any] = []

    def base_url() -> str:
        asked.append(threading.current_thread())
        return server.url.removesuffix("/v1")

    model = LocalModel("local/smollm2", name="smollm2", base_url=base_url)
    assert asked == []
    server.plays(says("Hello."), ends())
    assert text_of(await answer(model)) == "Hello."
    assert asked[0] is not threading.main_thread()
    assert server.last.path == "/v1/chat/completions"


@on_the_wire
async def test_it_is_asked_soberly_and_briefly(server: ModelServer) -> None:
    server.plays(says("Hello."), ends())
    request = ModelRequest(HELLO.prompt, tools=[ToolSpec("clock")], settings={"temperature": 1.5})
    await answer(LocalModel("local/smollm2", name="smollm2", base_url=server.url), request)
    body = server.last.body
    assert (body["temperature"], body["max_tokens"]) == (0.2, 80)
    assert "tools" not in body
    assert body["messages"][0] == {"role": "system", "content": SYSTEM_PROMPT}


@on_the_wire
async def test_the_path_of_its_weights_is_not_told(server: ModelServer) -> None:
    server.plays(event({"model": "/models/weights.gguf", "choices": [{"delta": {"content": "Hi."}}]}), ends())
    chunks = await answer(LocalModel("local/smollm2", name="smollm2", base_url=server.url))
    assert of_type(chunks, "finish")[0]["response"]["modelId"] == "smollm2"


@on_the_wire
async def test_a_local_server_that_is_down_says_what_to_do(server: ModelServer) -> None:
    await server.stop()
    with pytest.raises(ModelAPIError, match="restart the installation") as caught:
        await answer(LocalModel("local/smollm2", name="smollm2", base_url=server.url))
    assert caught.value.retryable


@on_the_wire
async def test_a_local_server_that_cannot_start_says_why() -> None:
    def base_url() -> str:
        raise RuntimeError("The weights are not installed.")

    with pytest.raises(ModelAPIError, match=r"cannot be started\. The weights") as caught:
        await answer(LocalModel("local/smollm2", name="smollm2", base_url=base_url))
    assert caught.value.provider_code == "local_model"


@on_the_wire
async def test_its_address_is_checked_too() -> None:
    with pytest.raises(ConfigError, match="must begin with"):
        await answer(LocalModel("local/smollm2", name="smollm2", base_url="unix:///run/model"))


def test_a_long_conversation_keeps_its_latest_messages() -> None:
    kept = shortened([{"role": "system", "content": "Be kind."}, *talk(40, 500)])
    assert kept[0] == {"role": "system", "content": "Be kind."}
    assert kept[-1]["content"][0]["text"].startswith("39 ")
    assert sum(len(str(one["content"])) for one in kept) < MOST_CHARACTERS * 1.2
    assert [one["role"] for one in kept[-2:]] == ["user", "assistant"]


def test_a_message_that_is_too_long_is_kept_by_its_end() -> None:
    (system, message) = shortened(talk(1, 50_000))
    assert len(system["content"]) + len(message["content"][0]["text"]) == MOST_CHARACTERS


def test_what_tools_returned_becomes_plain_text() -> None:
    result = {"type": "tool-result", "toolCallId": "c1", "toolName": "clock", "result": "noon"}
    call = {"type": "tool-call", "toolCallId": "c1", "toolName": "clock", "args": {}}
    prompt: Prompt = [
        *HELLO.prompt, {"role": "assistant", "content": [call]}, {"role": "tool", "content": [result]}
    ]  # fmt: skip
    assert [one["content"][0]["text"] for one in shortened(prompt)[1:]] == ["Hello", "clock returned: noon"]


def test_an_agents_own_token_limit_is_kept() -> None:
    assert "max_tokens" not in fitted(ModelRequest([], settings={"maxOutputTokens": 30})).settings
