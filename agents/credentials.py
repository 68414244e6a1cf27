"""How agents reach models: stored credentials (encrypted, write-only) and keys from the environment."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.utils.module_loading import import_string

from accounts.policies import can
from accounts.secrets import SecretUnreadable, decrypt, encrypt
from agents.models import ProviderCredential
from agents.providers import catalog
from agents.providers.endpoint import endpoint_check
from audit.changes import change_record
from processors.engine.errors import ConfigError
from processors.engine.ports import LanguageModel, ModelResolver

ENVIRONMENT: Final[dict[str, tuple[str, str]]] = {
    "openai": ("OPENAI_API_KEY", "openai"), "anthropic": ("ANTHROPIC_API_KEY", "anthropic"), "gemini": ("GEMINI_API_KEY", "litellm"),
    "mistral": ("MISTRAL_API_KEY", "litellm"), "groq": ("GROQ_API_KEY", "litellm"), "deepseek": ("DEEPSEEK_API_KEY", "litellm"),
    "openrouter": ("OPENROUTER_API_KEY", "litellm"), "xai": ("XAI_API_KEY", "litellm"),
}  # fmt: skip
"""First part of a model's name → (variable with its key, kind of credential)."""
KEYLESS: Final = frozenset({"local", "scripted"})


@transaction.atomic
def credential_save(
    *, actor: Any, credential: ProviderCredential, secret: str | None = None
) -> ProviderCredential:
    """Store a credential. secret None keeps the one that is stored. Raises PermissionDenied, ConfigError."""
    _check_permission(actor, credential)
    if credential.base_url:
        endpoint_check(credential.base_url, allow_private_models())
    before = _facts(ProviderCredential.objects.get(pk=credential.pk)) if credential.pk else None
    if secret:
        catalog.Credential.read({"provider": credential.provider, "secret": secret})
        credential.secret = encrypt(secret.strip())
    credential.save()
    note = "The secret was set." if secret else ""
    change_record(
        actor=actor,
        action="changed" if before else "made",
        obj=credential,
        before=before,
        after=_facts(credential),
        note=note,
    )
    return credential


def _check_permission(actor: Any, credential: ProviderCredential) -> None:
    if actor is None or can(actor, "credential.edit"):
        return
    if credential.pk is None and actor.has_perm("agents.add_providercredential"):
        return
    raise PermissionDenied("You may not change credentials; ask for the role “operator”.")


def credential_secret(credential: ProviderCredential) -> str:
    """The secret in plain text, for calling the provider only. Empty if there is none. Raises SecretUnreadable."""
    return decrypt(bytes(credential.secret)) if credential.secret else ""


def credential_reachable_models(credential: ProviderCredential) -> list[str]:
    """The names `provider/name` that the credential reaches. Raises ConfigError or ModelAPIError."""
    return catalog.list_models(_values(credential), allow_private=allow_private_models())


def credential_test(credential: ProviderCredential) -> tuple[bool, str]:
    """Whether the credential works, and a sentence that says so or what to do."""
    try:
        return catalog.test_connection(_values(credential), allow_private=allow_private_models())
    except ConfigError as problem:
        return False, str(problem)


def allow_private_models() -> bool:
    """Whether the operator lets model services be on loopback and private networks (GATEHOUSE_ALLOW_PRIVATE_MODELS)."""
    default = os.environ.get("GATEHOUSE_ALLOW_PRIVATE_MODELS", "").lower() in {"1", "true", "yes"}
    return bool(getattr(settings, "GATEHOUSE_ALLOW_PRIVATE_MODELS", default))


def model_resolver(credential_slug: str | None = None) -> ModelResolver:
    """Finds the client for a model's name: with the agent's credential if it fits, else another, else the environment's key.

    The credentials are read now, in one query, so that the resolver itself may be called inside an event loop.
    """
    rows = list(ProviderCredential.objects.order_by("name"))
    rows.sort(key=lambda row: row.slug != credential_slug)
    if credential_slug and not any(row.slug == credential_slug for row in rows):
        raise ConfigError(
            f"The credential “{credential_slug}” is gone. Choose another for this agent and publish it again."
        )
    known = [(_fits(row, chosen=row.slug == credential_slug), _lazy_values(row)) for row in rows]

    def resolve(model_id: str) -> LanguageModel:
        return catalog.build_model(
            model_id,
            _fitting(model_id, known),
            allow_private=allow_private_models(),
            local_base_url=local_base_url,
            max_retries=2,
        )

    return resolve


def _fits(credential: ProviderCredential, *, chosen: bool) -> Callable[[str], bool]:
    """Whether a key may be sent to a provider. A key never goes to a provider that it does not belong to.

    A credential for litellm names no provider: it fits where the agent chose it, and where its short name is the provider's.
    """
    if credential.provider != ProviderCredential.Provider.LITELLM:
        return lambda provider: provider == credential.provider
    return lambda provider: chosen or provider == credential.slug


def _fitting(
    model_id: str, known: list[tuple[Callable[[str], bool], Callable[[], dict[str, Any]]]]
) -> dict[str, Any] | None:
    provider = model_id.partition("/")[0]
    if provider in KEYLESS:
        return None
    for fits, values in known:
        if fits(provider):
            return values()
    variable, kind = ENVIRONMENT.get(provider, ("", ""))
    secret = os.environ.get(variable, "") if variable else ""
    return {"provider": kind, "secret": secret} if secret else None


def environment_models() -> list[str]:
    """First parts of model names that work with a key from the environment."""
    return [provider for provider, (variable, _) in ENVIRONMENT.items() if os.environ.get(variable)]


def local_base_url() -> str:
    """Where the embedded model answers; starts it when needed (blocks for seconds). Raises ConfigError."""
    path = getattr(settings, "GATEHOUSE_LOCAL_MODEL", "embedded.local_model.ensure_local_model")
    try:
        return str(import_string(path)())
    except Exception as problem:
        raise ConfigError(str(problem) or "The local model cannot be started.") from problem


def _values(credential: ProviderCredential) -> dict[str, Any]:
    try:
        secret = credential_secret(credential)
    except SecretUnreadable as problem:
        raise ConfigError(f"The credential “{credential.name}”: {problem}") from problem
    return {"provider": credential.provider, "base_url": credential.base_url, "secret": secret}


def _lazy_values(credential: ProviderCredential) -> Callable[[], dict[str, Any]]:
    return lambda: _values(credential)


def _facts(credential: ProviderCredential) -> dict[str, Any]:
    """What the changes say about a credential; never the secret."""
    return {
        "slug": credential.slug, "name": credential.name, "provider": credential.provider, "base_url": credential.base_url,
        "has_secret": bool(credential.secret),
    }  # fmt: skip
