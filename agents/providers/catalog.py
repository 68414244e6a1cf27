"""From a model's name and a credential to the client that reaches it, and what an admin asks about both.

| name                   | credential                         | client                         |
| ---------------------- | ---------------------------------- | ------------------------------ |
| scripted/NAME          | none                               | a script registered under NAME |
| local/NAME             | none                               | the embedded model's client    |
| openai-compatible/NAME | openai-compatible with its address | the direct client              |
| openai/NAME            | openai, with a key                 | the direct client              |
| PROVIDER/NAME          | anthropic or litellm               | litellm                        |
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from agents.providers.endpoint import endpoint_check
from agents.providers.timeouts import Timeouts
from processors.engine.errors import ConfigError, GatehouseError, ModelAPIError
from processors.engine.ports import LanguageModel

BASE_URLS: Final = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com/v1"}
ANTHROPIC_VERSION: Final = "2023-06-01"
DIRECT: Final = frozenset({"openai", "openai-compatible"})
LISTED_BY_SERVICE: Final = frozenset({*DIRECT, "anthropic"})
PROVIDERS: Final = frozenset({*DIRECT, "anthropic", "litellm"})

_scripts: dict[str, Callable[[], LanguageModel]] = {}


@dataclass(slots=True, frozen=True)
class Credential:
    """A credential, read from {"provider", "base_url"?, "secret"?}. The secret never shows in a repr."""

    provider: str
    base_url: str = ""
    secret: str = field(default="", repr=False)

    @classmethod
    def read(cls, values: dict[str, Any]) -> Credential:
        """Raises ConfigError if the provider is unknown or the secret cannot be sent in a header."""
        provider = str(values.get("provider") or "")
        if provider not in PROVIDERS:
            raise ConfigError(
                f"The credential names an unknown provider {provider!r}. Choose one of: {', '.join(sorted(PROVIDERS))}."
            )
        secret = str(values.get("secret") or "").strip()
        if any(not 0x20 < ord(character) < 0x7F for character in secret):
            raise ConfigError("The key contains a space, a line break or a special character. Copy it again.")
        return cls(provider, str(values.get("base_url") or "").strip(), secret)

    @property
    def address(self) -> str:
        """The service's base URL. Raises ConfigError if there is none."""
        address = self.base_url or BASE_URLS.get(self.provider)
        if address:
            return address
        raise ConfigError("The credential of an OpenAI-compatible service needs the service's address.")


def register_script(name: str, make: Callable[[], LanguageModel]) -> None:
    """Offer `scripted/NAME`. Registering a name again replaces it."""
    _scripts[name] = make


def build_model(
    model_id: str, credential: dict[str, Any] | None = None, *, allow_private: bool = False,
    local_base_url: Callable[[], str] | str | None = None, timeouts: Timeouts | None = None,
    max_retries: int = 0,
) -> LanguageModel:  # fmt: skip
    """The client for `provider/name`.

    credential: {"provider", "base_url"?, "secret"?}; its provider decides which client is used.
    allow_private: the operator lets model services be on loopback and private networks.
    local_base_url: where the embedded model answers; a callable is asked in a thread at the first call.
    max_retries: how often the client itself repeats a call that failed before its first chunk.
    Raises ConfigError with a sentence that says what to change.
    """
    provider, _, name = model_id.partition("/")
    if not provider or not name:
        raise ConfigError(
            f"The model's name {model_id!r} needs the form provider/name, such as local/smollm2."
        )
    times = timeouts or Timeouts()
    if provider == "scripted":
        return _scripted(name)
    if provider == "local":
        return _local(model_id, name, local_base_url, times)
    if credential is None:
        raise ConfigError(f"There is no credential for {model_id!r}. Add one for {provider} and choose it.")
    model = _remote(model_id, Credential.read(credential), allow_private, times)
    if max_retries:
        from agents.providers.retrying import RetryingModel

        return RetryingModel(model, max_retries=max_retries)
    return model


def _scripted(name: str) -> LanguageModel:
    if name not in _scripts:
        known = ", ".join(f"scripted/{known}" for known in sorted(_scripts)) or "none"
        raise ConfigError(f"There is no scripted model {name!r}. Known ones: {known}.")
    return _scripts[name]()


def _local(
    model_id: str, name: str, base_url: Callable[[], str] | str | None, timeouts: Timeouts
) -> LanguageModel:
    from agents.providers.local import LocalModel

    if base_url is None:
        raise ConfigError("The embedded model is not installed here. Choose another model.")
    return LocalModel(model_id, name=name, base_url=base_url, timeouts=timeouts)


def _remote(model_id: str, credential: Credential, allow_private: bool, timeouts: Timeouts) -> LanguageModel:
    provider, _, name = model_id.partition("/")
    if credential.provider in DIRECT:
        from agents.providers.openai_compatible import OpenAICompatibleModel

        if credential.provider == "openai" and provider != "openai":
            raise ConfigError(f"The OpenAI credential cannot reach {model_id!r}. Choose that provider's.")
        if credential.provider == "openai" and not credential.secret:
            raise ConfigError("The OpenAI credential has no key. Enter it in the credential.")
        endpoint = endpoint_check(credential.address, allow_private)
        return OpenAICompatibleModel(
            model_id, name=name, endpoint=endpoint, api_key=credential.secret, timeouts=timeouts
        )
    from agents.providers.litellm_client import LiteLLMModel

    if credential.provider == "anthropic" and provider != "anthropic":
        raise ConfigError(f"The Anthropic credential cannot reach {model_id!r}. Choose that provider's.")
    return LiteLLMModel(
        model_id, name=name if provider == "litellm" else model_id, base_url=credential.base_url,
        api_key=credential.secret, allow_private=allow_private, timeouts=timeouts,
    )  # fmt: skip


def list_models(
    credential: dict[str, Any], *, allow_private: bool = False, timeouts: Timeouts | None = None
) -> list[str]:
    """The names `provider/name` that a credential reaches, sorted. Call it outside an event loop.

    A compatible service is asked; for the others litellm's own table is read (no network, seconds at first).
    Raises ConfigError or ModelAPIError.
    """
    known = Credential.read(credential)
    if known.provider in LISTED_BY_SERVICE:
        return asyncio.run(_listed_by_service(known, allow_private, timeouts or Timeouts.short()))
    from agents.providers.litellm_client import known_models

    return known_models()


async def _listed_by_service(credential: Credential, allow_private: bool, timeouts: Timeouts) -> list[str]:
    from agents.providers.openai_compatible import bearer, fetch_models

    secret = credential.secret
    headers, path = bearer(secret), "/models"
    if credential.provider == "anthropic":
        path = "/models?limit=1000"
        headers = [("x-api-key", secret), ("anthropic-version", ANTHROPIC_VERSION)]
    if not secret and credential.provider != "openai-compatible":
        raise ConfigError("The credential has no key. Enter it and save.")
    endpoint = endpoint_check(credential.address, allow_private)
    names = await fetch_models(endpoint, headers=headers, timeouts=timeouts, secret=secret, path=path)
    return sorted(f"{credential.provider}/{name}" for name in names)


def test_connection(
    credential: dict[str, Any], *, allow_private: bool = False, timeouts: Timeouts | None = None
) -> tuple[bool, str]:
    """Whether a credential works, and a sentence that says so or what to do. A bad one raises nothing."""
    try:
        known = Credential.read(credential)
        if known.provider not in LISTED_BY_SERVICE:
            if known.base_url:
                endpoint_check(known.base_url, allow_private)
            return True, "The credential is complete. Whether it works shows when an agent uses it."
        names = list_models(credential, allow_private=allow_private, timeouts=timeouts)
    except ModelAPIError as problem:
        if problem.status == 404 and known.provider == "openai-compatible":
            return True, "The service answers, but does not list its models. Write the model's name yourself."
        return False, problem.message
    except GatehouseError as problem:
        return False, str(problem)
    return True, f"The service answers and offers {len(names)} model{'' if len(names) == 1 else 's'}."
