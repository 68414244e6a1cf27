"""The client of the small model that is part of every installation (SmolLM2-135M-Instruct on this machine).

The model is real and weak: fluent English, little knowledge, no tools. Without a system prompt it drifts into other
languages, above a temperature of 0.2 into nonsense, and it reads about 170 tokens a second: hence the limits here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final, cast

from agents.providers.endpoint import endpoint_check
from agents.providers.openai_compatible import OpenAICompatibleModel
from agents.providers.timeouts import Timeouts
from processors.engine.chunks import Chunk
from processors.engine.errors import GatehouseError, ModelAPIError
from processors.engine.ports import AbortSignal, ModelRequest, Prompt, PromptMessage

SYSTEM_PROMPT: Final = "You are a helpful assistant. Answer in English."
HIGHEST_TEMPERATURE: Final = 0.2
DEFAULT_TOKENS: Final = 80
MOST_CHARACTERS: Final = 6_000
"""Of the prompt: about 1,500 tokens, which it reads in some nine seconds."""
TOKEN_NAMES: Final = ("maxOutputTokens", "max_output_tokens", "maxTokens", "max_tokens")


class LocalModel:
    """A `LanguageModel` over the embedded model's server.

    base_url: where it answers, with or without /v1, or a callable that starts the server if need be and says where
    (it may block; it runs in a thread, once per call).
    """

    def __init__(
        self, id: str, *, name: str, base_url: Callable[[], str] | str, timeouts: Timeouts | None = None
    ) -> None:
        self._id, self._name, self._base_url, self._timeouts = id, name, base_url, timeouts

    @property
    def id(self) -> str:
        return self._id

    async def stream(
        self, request: ModelRequest, *, signal: AbortSignal | None = None
    ) -> AsyncIterator[Chunk]:
        """One call. Raises ModelAPIError, retryable while the local server does not answer."""
        endpoint = endpoint_check(await self._address(), allow_private=True)
        if not endpoint.path:
            endpoint = replace(endpoint, path="/v1")
        client = OpenAICompatibleModel(self._id, name=self._name, endpoint=endpoint, timeouts=self._timeouts)
        source = cast("Any", client.stream(fitted(request), signal=signal))
        try:
            async with aclosing(source):
                async for chunk in source:
                    if chunk.type == "finish" and chunk.payload is not None:
                        # Its server names the weights' file, a path of this machine that is nobody's business.
                        chunk.payload["response"]["modelId"] = self._name
                    yield chunk
        except ModelAPIError as problem:
            if problem.provider_code == "connection_failed":
                raise ModelAPIError(
                    "The local model does not answer. Wait a moment, or restart the installation.",
                    retryable=True, provider_code="connection_failed",
                ) from problem  # fmt: skip
            raise

    async def _address(self) -> str:
        if isinstance(self._base_url, str):
            return self._base_url
        try:
            return await asyncio.to_thread(self._base_url)
        except GatehouseError:
            raise
        except Exception as problem:
            # Whoever starts the server says in a sentence why it cannot.
            raise ModelAPIError(
                f"The local model cannot be started. {problem}", retryable=True, provider_code="local_model"
            ) from problem


def fitted(request: ModelRequest) -> ModelRequest:
    """The request as the small model can take it: no tools, sober, short, the latest messages only."""
    settings = {**request.settings}
    settings["temperature"] = min(float(settings.get("temperature") or 0.0), HIGHEST_TEMPERATURE)
    if not any(settings.get(name) for name in TOKEN_NAMES):
        settings["max_tokens"] = DEFAULT_TOKENS
    return ModelRequest(shortened(request.prompt), settings=settings, response_schema=request.response_schema)


def shortened(prompt: Prompt) -> Prompt:
    """System text first, then as many of the latest messages as fit, as plain text. The last one always stays."""
    system = "\n".join(str(message["content"]) for message in prompt if message["role"] == "system")
    system = system[: MOST_CHARACTERS // 2] or SYSTEM_PROMPT
    room, kept = MOST_CHARACTERS - len(system), list[PromptMessage]()
    for message in reversed(prompt):
        text = "" if message["role"] == "system" else _plain(message)
        if not text:
            continue
        if len(text) > room and kept:
            break
        text = text[-room:]
        room -= len(text)
        role = "assistant" if message["role"] == "assistant" else "user"
        kept.append({"role": role, "content": [{"type": "text", "text": text}]})
    return [{"role": "system", "content": system}, *reversed(kept)]


def _plain(message: PromptMessage) -> str:
    if isinstance(message["content"], str):
        return message["content"]
    texts = []
    for part in message["content"]:
        if part.get("type") == "text":
            texts.append(str(part["text"]))
        elif part.get("type") == "tool-result":
            texts.append(f"{part.get('toolName')} returned: {part.get('result')}")
    return "\n".join(texts)
