"""The client for every provider that litellm knows.

litellm takes seconds to import and half a millisecond per chunk, so it is loaded at the first call only, and the direct
client is used wherever it can be.
"""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import AsyncIterator, Awaitable, Mapping
from functools import cache
from typing import Any, Final, TypeVar

from agents.providers.endpoint import checked_addresses, endpoint_check
from agents.providers.failures import (
    HOPELESS,
    MEANINGS,
    QUOTA_CODES,
    RETRYABLE,
    broken,
    described,
    retry_after,
)
from agents.providers.openai_request import request_body
from agents.providers.reply import Reply
from agents.providers.timeouts import Timeouts
from processors.engine.chunks import Chunk
from processors.engine.errors import ConfigError, GatehouseError, ModelAPIError, RunCancelled
from processors.engine.ports import AbortSignal, ModelRequest

T = TypeVar("T")

GUARDS: Final = {
    "LITELLM_OFFLINE_MODE": "true",  # no cost map, headers or posts fetched at import
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_MODE": "PRODUCTION",  # no .env read from the working directory
    "HF_HUB_OFFLINE": "1",  # no tokenizer fetched
}
LAST_SECONDS: Final = 3_600.0
"""litellm's own time limit, out of the way of ours, which are finer."""
LEAVE_SECONDS: Final = 0.2
"""How long a cancelled step of litellm may take to leave."""
ALLOWED_OPTIONS: Final = frozenset({
    "reasoning_effort", "thinking", "verbosity", "parallel_tool_calls", "service_tier", "user", "metadata", "top_k",
    "logit_bias", "logprobs", "top_logprobs", "safety_settings", "web_search_options", "modalities", "prediction",
    "max_completion_tokens",
})  # fmt: skip
"""Provider options that may be passed on. Others steer litellm itself: its address, its key, its mocks."""
STREAM_BREAKS: Final = frozenset({"MidStreamFallbackError", "APIConnectionError"})


@cache
def load_litellm() -> Any:
    """Import litellm without its phoning home, its .env and its banners. Takes 4 seconds or more the first time."""
    for name, value in GUARDS.items():
        os.environ.setdefault(name, value)
    litellm: Any = importlib.import_module("litellm")
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    return litellm


class LiteLLMModel:
    """A `LanguageModel` over litellm.

    id: `provider/name` as shown. name: the name litellm knows, with its provider.
    base_url: empty for the provider's own address.
    api_key: empty lets litellm use the provider's environment, such as a cloud role.
    It never repeats a call (see `retrying.RetryingModel`).
    """

    def __init__(
        self, id: str, *, name: str, base_url: str = "", api_key: str = "", allow_private: bool = False,
        timeouts: Timeouts | None = None,
    ) -> None:  # fmt: skip
        self._id, self._name, self._api_key = id, name, api_key
        self._timeouts = timeouts or Timeouts()
        self._base_url = base_url
        self._endpoint = endpoint_check(base_url, allow_private) if base_url else None
        if self._endpoint is not None and not self._endpoint.tls and not allow_private:
            # litellm resolves the name itself. Only a certificate then proves that it reached the host we checked.
            raise ConfigError("The address of a service reached through litellm must begin with https://.")
        self._option_keys = tuple(dict.fromkeys(("litellm", name.partition("/")[0], id.partition("/")[0])))

    @property
    def id(self) -> str:
        return self._id

    def __repr__(self) -> str:
        return f"LiteLLMModel({self._id!r})"

    async def stream(
        self, request: ModelRequest, *, signal: AbortSignal | None = None
    ) -> AsyncIterator[Chunk]:
        """One call. See `LanguageModel`; raises ModelAPIError, or RunCancelled when `signal` is set."""
        body, warnings = request_body(request, model=self._name, option_keys=self._option_keys)
        self._check_options(request)
        if signal is not None and signal.aborted:
            raise RunCancelled(f"The run was stopped: {signal.reason}.")
        if self._endpoint is not None:
            await self._next(checked_addresses(self._endpoint), self._timeouts.connect, None, None)
        litellm = await asyncio.to_thread(load_litellm)
        stopped = None if signal is None else asyncio.ensure_future(signal.wait())
        source: Any = None
        reply, limit = Reply(secret=self._api_key), self._timeouts.first_byte
        try:
            source = await self._next(
                litellm.acompletion(**body, **self._call_options()), limit, stopped, signal
            )
            while True:
                try:
                    event = await self._next(anext(source), limit, stopped, signal)
                except StopAsyncIteration:
                    break
                limit = self._timeouts.between
                for chunk in reply.event(plain_event(event)):
                    yield chunk
            # litellm ends its own stream when the service's ended cleanly; it has no [DONE] to show.
            for chunk in reply.end(warnings):
                yield chunk
        finally:
            if stopped is not None:
                stopped.cancel()
            if source is not None:
                await source.aclose()

    def _check_options(self, request: ModelRequest) -> None:
        given = {name for key in self._option_keys for name in request.provider_options.get(key) or ()}
        if refused := given - ALLOWED_OPTIONS:
            raise ConfigError(
                f"Provider options cannot set {', '.join(sorted(refused))} through litellm. Remove that."
            )

    def _call_options(self) -> dict[str, Any]:
        options: dict[str, Any] = {
            "num_retries": 0, "max_retries": 0, "timeout": LAST_SECONDS, "no-log": True, "drop_params": True,
        }  # fmt: skip
        if self._api_key:
            options["api_key"] = self._api_key
        if self._base_url:
            options["api_base"] = self._base_url
        return options

    async def _next(
        self,
        step: Awaitable[T],
        limit: float,
        stopped: asyncio.Future[None] | None,
        signal: AbortSignal | None,
    ) -> T:
        """Await one step of litellm within `limit` seconds, unless the run is stopped; translate its errors."""
        task = asyncio.ensure_future(_awaited(step))
        waits: set[asyncio.Future[Any]] = {task} if stopped is None else {task, stopped}
        wanted = False
        try:
            await asyncio.wait(waits, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if stopped is not None and stopped.done() and signal is not None:
                raise RunCancelled(f"The run was stopped: {signal.reason}.")
            if not task.done():
                raise broken("The model's service did not answer in time.", "timeout", status=408)
            result = task.result()
            wanted = True
            return result
        except (GatehouseError, StopAsyncIteration, asyncio.CancelledError):
            raise
        except Exception as problem:
            raise translated(problem, secret=self._api_key) from problem
        finally:
            if not wanted:
                await _discard(task)


async def _discard(task: asyncio.Future[Any]) -> None:
    """End a step that nobody waits for any more; a stream that it opened all the same is closed."""
    task.cancel()
    await asyncio.wait({task}, timeout=LEAVE_SECONDS)
    if task.done() and not task.cancelled() and task.exception() is None:
        close = getattr(task.result(), "aclose", None)
        if close is not None:
            await close()


async def _awaited(step: Awaitable[T]) -> T:
    return await step


def plain_event(event: Any) -> dict[str, Any]:
    """The parts of litellm's event that a reply reads, as plain values."""
    plain: dict[str, Any] = {"id": event.id, "model": event.model, "choices": []}
    usage = getattr(event, "usage", None)
    if usage is not None:
        plain["usage"] = usage.model_dump()
    for choice in event.choices:
        delta = choice.delta
        values: dict[str, Any] = {}
        if delta is not None:
            values = {
                name: value
                for name in ("content", "reasoning_content", "refusal", "annotations")
                if (value := getattr(delta, name, None))
            }
            if calls := getattr(delta, "tool_calls", None):
                values["tool_calls"] = [
                    call if isinstance(call, dict) else call.model_dump() for call in calls
                ]
        plain["choices"].append({
            "index": choice.index, "delta": values, "finish_reason": choice.finish_reason,
        })  # fmt: skip
    return plain


def translated(problem: Exception, *, secret: str = "") -> GatehouseError | Exception:
    """Our error for one of litellm's, told apart by class and status. Other exceptions stay as they are."""
    status = getattr(problem, "status_code", None)
    name = type(problem).__name__
    if not isinstance(status, int) and "litellm" not in type(problem).__module__:
        if isinstance(problem, OSError):
            return broken("The model's service cannot be reached.", "connection_failed")
        return problem
    detail, code = _told(problem)
    if secret:
        detail = detail.replace(secret, "[key]")
    if name in STREAM_BREAKS:
        retryable = not any(mark in (code or "") for mark in HOPELESS)
        return broken(
            f"The model's service broke off its answer. It said: {detail}",
            "disconnected",
            retryable=retryable,
        )
    if status == 500 and "Connection error" in detail:
        return broken("The model's service cannot be reached.", "connection_failed")
    if name == "ContextWindowExceededError":
        code = "context_length_exceeded"
    elif name == "Timeout":
        code = "timeout"
    meaning = (
        MEANINGS[402]
        if code in QUOTA_CODES
        else MEANINGS.get(status or 0, "The model's service has a problem.")
    )
    return ModelAPIError(
        f"{meaning} It said: {detail}",
        status=status,
        retryable=(status in RETRYABLE or name == "Timeout") and code not in QUOTA_CODES,
        retry_after=retry_after(_headers(problem)),
        provider_code=code,
    )


def _told(problem: BaseException) -> tuple[str, str | None]:
    """(detail, code) as the provider said them, which litellm keeps in the exceptions underneath its own."""
    cause: BaseException | None = problem
    while cause is not None:
        detail, code = described(getattr(cause, "body", None))
        if detail or code:
            return detail, code
        cause = cause.__cause__ or cause.__context__
    text = " ".join(str(getattr(problem, "message", "") or problem).split())
    return text[:300], next((code for code in QUOTA_CODES if code in text), None)


def _headers(problem: Exception) -> Mapping[str, str]:
    response = getattr(problem, "response", None)
    found = getattr(problem, "litellm_response_headers", None) or getattr(response, "headers", None) or {}
    return {str(name).lower(): str(value) for name, value in dict(found).items()}


def known_models(provider: str = "") -> list[str]:
    """The chat models in litellm's own table, as `provider/name`; all of them without a provider."""
    litellm = load_litellm()
    names = set()
    for name, facts in litellm.model_cost.items():
        owner = facts.get("litellm_provider", "")
        if facts.get("mode") == "chat" and owner and provider in ("", owner):
            names.add(name if name.startswith(f"{owner}/") else f"{owner}/{name}")
    return sorted(names)
