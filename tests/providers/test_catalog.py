"""A model's name and a credential lead to the right client, or to a sentence that says what is missing."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest

from agents.providers import catalog
from agents.providers.catalog import Credential, build_model, list_models, register_script
from agents.providers.litellm_client import ALLOWED_OPTIONS, LiteLLMModel
from agents.providers.local import LocalModel
from agents.providers.openai_compatible import OpenAICompatibleModel
from agents.providers.retrying import RetryingModel
from agents.providers.scripted import ScriptedModel, says
from processors.engine.errors import ConfigError
from processors.engine.ports import ModelRequest
from tests.providers.asking import HELLO, answer, text_of
from tests.providers.server import ModelServer, ends

JSON = {"content-type": "application/json"}
on_the_wire = pytest.mark.asyncio(loop_scope="package")


@pytest.mark.parametrize(
    ("model_id", "credential", "client"),
    [
        ("openai/gpt-5", {"provider": "openai", "secret": "k"}, OpenAICompatibleModel),
        ("openai-compatible/m", {"provider": "openai-compatible", "base_url": "https://m.example/v1"},
         OpenAICompatibleModel),
        ("anthropic/claude", {"provider": "anthropic", "secret": "k"}, LiteLLMModel),
        ("groq/llama", {"provider": "litellm", "secret": "k"}, LiteLLMModel),
        ("local/smollm2", None, LocalModel),
    ],
)  # fmt: skip
def test_the_name_and_the_credential_choose_the_client(
    model_id: str, credential: dict[str, Any] | None, client: type
) -> None:
    model = build_model(model_id, credential, local_base_url="http://127.0.0.1:1")
    assert type(model) is client
    assert model.id == model_id


@pytest.mark.parametrize(
    ("model_id", "credential", "sentence"),
    [
        ("smollm2", None, "provider/name"), ("/m", None, "provider/name"), ("openai/", None, "provider/name"),
        ("openai/m", None, "no credential for 'openai/m'"), ("local/m", None, "not installed"),
        ("scripted/nobody", None, "no scripted model 'nobody'"),
        ("openai/m", {"provider": "openai"}, "no key"), ("openai/m", {"provider": "acme"}, "unknown provider"),
        ("groq/m", {"provider": "openai", "secret": "k"}, "cannot reach"),
        ("openai/m", {"provider": "anthropic", "secret": "k"}, "cannot reach"),
        ("openai-compatible/m", {"provider": "openai-compatible"}, "needs the service's address"),
        ("openai-compatible/m", {"provider": "openai-compatible", "base_url": "http://10.0.0.1/v1"}, "must not reach"),
        ("azure/m", {"provider": "litellm", "base_url": "http://8.8.8.8/"}, "must begin with https"),
        ("azure/m", {"provider": "litellm", "base_url": "https://127.0.0.1/"}, "must not reach"),
        ("openai/m", {"provider": "openai", "secret": "k\r\nx-evil: 1"}, "Copy it again"),
        ("openai/m", {"provider": "openai", "secret": "schlüssel"}, "Copy it again"),
    ],
)  # fmt: skip
def test_what_is_missing_is_said_in_a_sentence(
    model_id: str, credential: dict[str, Any] | None, sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        build_model(model_id, credential)


@pytest.mark.asyncio
async def test_a_registered_script_can_be_chosen() -> None:
    register_script("greeter", lambda: ScriptedModel("scripted/greeter", [says("Hello, Bob.")]))
    assert text_of(await answer(build_model("scripted/greeter"))) == "Hello, Bob."


def test_retries_are_put_around_the_client() -> None:
    assert isinstance(
        build_model("openai/m", {"provider": "openai", "secret": "k"}, max_retries=2), RetryingModel
    )


def test_the_secret_does_not_show_in_a_repr() -> None:
    credential = {"provider": "openai", "secret": "sk-1"}
    assert "sk-1" not in repr(Credential.read(credential)) + repr(build_model("openai/m", credential))


@on_the_wire
async def test_a_compatible_service_is_asked_for_its_models(server: ModelServer) -> None:
    server.plays(json.dumps({"data": [{"id": "b"}, {"id": "a"}]}).encode(), headers=JSON)
    credential = {"provider": "openai-compatible", "base_url": server.url, "secret": "k"}
    names = await asyncio.to_thread(list_models, credential, allow_private=True)
    assert names == ["openai-compatible/a", "openai-compatible/b"]
    assert (server.last.path, server.last.headers["authorization"]) == ("/v1/models", "Bearer k")


@on_the_wire
@pytest.mark.parametrize(
    ("status", "body", "ok", "sentence"),
    [
        (200, {"data": [{"id": "a"}]}, True, "offers 1 model."), (200, {"data": []}, True, "offers 0 models."),
        (401, {"error": {"message": "Wrong key."}}, False, "refused the key"),
        (404, {}, True, "does not list its models"), (200, "text", False, "something else than a list"),
        (500, {}, False, "has a problem"),
    ],
)  # fmt: skip
async def test_a_connection_is_tried_and_told_in_a_sentence(
    server: ModelServer, status: int, body: Any, ok: bool, sentence: str
) -> None:
    server.plays(json.dumps(body).encode(), status=status, headers=JSON)
    credential = {"provider": "openai-compatible", "base_url": server.url}
    result = await asyncio.to_thread(catalog.test_connection, credential, allow_private=True)
    assert result[0] is ok
    assert sentence in result[1]


@pytest.mark.parametrize(
    ("credential", "sentence"),
    [
        ({"provider": "openai-compatible", "base_url": "http://127.0.0.1:1/v1"}, "must not reach"),
        ({"provider": "openai-compatible"}, "needs the service's address"), ({}, "unknown provider"),
        ({"provider": "openai"}, "no key"), ({"provider": "anthropic"}, "no key"),
        ({"provider": "litellm", "base_url": "ftp://x"}, "must begin with"),
    ],
)  # fmt: skip
def test_a_bad_credential_is_a_sentence_not_an_exception(credential: dict[str, Any], sentence: str) -> None:
    ok, said = catalog.test_connection(credential)
    assert not ok
    assert sentence in said


@on_the_wire
@pytest.mark.parametrize(
    "option", ["api_base", "api_key", "mock_response", "custom_llm_provider", "extra_headers"]
)
async def test_provider_options_cannot_steer_litellm(server: ModelServer, option: str) -> None:
    credential = {"provider": "litellm", "base_url": server.url, "secret": "k"}
    request = ModelRequest(HELLO.prompt, provider_options={"openai": {option: "x"}})
    with pytest.raises(ConfigError, match=f"cannot set {option}"):
        await answer(build_model("openai/m", credential, allow_private=True), request)
    assert server.exchanges == []
    assert option not in ALLOWED_OPTIONS


@on_the_wire
async def test_litellm_lists_the_models_it_knows(litellm: Any) -> None:
    names = list_models({"provider": "litellm", "secret": "k"})
    assert "anthropic/claude-sonnet-4-5" in names
    assert names == sorted(set(names))
    assert all("/" in name for name in names)


@on_the_wire
async def test_a_model_built_for_a_compatible_service_answers(server: ModelServer) -> None:
    server.plays(b'data: {"choices": [{"delta": {"content": "Hello."}}]}\n\n', ends())
    credential = {"provider": "openai-compatible", "base_url": server.url}
    model = build_model("openai-compatible/org/m", credential, allow_private=True)
    assert text_of(await answer(model)) == "Hello."
    assert server.last.body["model"] == "org/m"
    assert "authorization" not in server.last.headers


def test_litellm_is_not_imported_before_it_is_needed() -> None:
    code = (
        "import sys; from agents.providers.catalog import build_model; "
        "build_model('groq/m', {'provider': 'litellm', 'secret': 'k'}); "
        "print([name for name in ('litellm', 'openai', 'django', 'httpx') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
