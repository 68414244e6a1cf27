"""A credential's secret goes in encrypted, comes out only towards its provider, and is chosen by the model's name."""

from __future__ import annotations

import pytest
from django.core.exceptions import PermissionDenied

from agents.credentials import credential_save, credential_secret, environment_models, model_resolver
from agents.models import ProviderCredential
from audit.models import Change
from processors.engine.errors import ConfigError

pytestmark = pytest.mark.django_db(transaction=True)


def saved(slug: str, provider: str, secret: str | None = "sk-secret", **values: str) -> ProviderCredential:
    return credential_save(
        actor=None,
        credential=ProviderCredential(slug=slug, name=slug, provider=provider, **values),
        secret=secret,
    )


def test_a_secret_is_stored_encrypted_and_in_no_change() -> None:
    row = saved("main", "openai")
    assert b"secret" not in bytes(row.secret)
    assert credential_secret(row) == "sk-secret"
    assert "sk-secret" not in str(Change.objects.values())
    assert Change.objects.get().note == "The secret was set."


def test_saving_without_a_secret_keeps_it() -> None:
    row = saved("main", "openai")
    row.name = "Renamed"
    credential_save(actor=None, credential=row)
    row.refresh_from_db()
    assert credential_secret(row) == "sk-secret"


def test_who_may_save(alice, charlie) -> None:
    with pytest.raises(PermissionDenied):
        credential_save(
            actor=alice, credential=ProviderCredential(slug="a", name="A", provider="openai"), secret="x"
        )
    credential_save(
        actor=charlie, credential=ProviderCredential(slug="a", name="A", provider="openai"), secret="x"
    )


@pytest.mark.parametrize(
    "address",
    [
        "http://169.254.169.254/latest",
        "http://127.0.0.1:6379",
        "file:///etc/passwd",
        "http://user:pw@example.org",
    ],
)
def test_an_address_inside_the_network_is_refused(address) -> None:
    with pytest.raises(ConfigError):
        saved("inside", "openai-compatible", base_url=address)
    assert ProviderCredential.objects.count() == 0


def test_a_key_that_cannot_be_a_header_is_refused() -> None:
    with pytest.raises(ConfigError, match="Copy it again"):
        saved("main", "openai", secret="sk-\nX-Evil: 1")


def test_the_models_name_chooses_the_credential() -> None:
    saved("second", "openai-compatible", base_url="https://models.example.org/v1")
    saved("first", "openai")
    resolve = model_resolver("second")
    assert resolve("openai/gpt-x").id == "openai/gpt-x"
    assert resolve("openai-compatible/mistral").id == "openai-compatible/mistral"
    assert resolve("scripted/practice").id == "scripted/practice"
    with pytest.raises(ConfigError, match="no credential"):
        resolve("anthropic/claude")


def test_a_key_in_the_environment_is_a_credential_too(monkeypatch) -> None:
    with pytest.raises(ConfigError):
        model_resolver()("openai/gpt-x")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
    assert environment_models() == ["openai"]
    assert model_resolver()("openai/gpt-x").id == "openai/gpt-x"


def test_a_credential_that_is_gone_is_named() -> None:
    with pytest.raises(ConfigError, match="“main” is gone"):
        model_resolver("main")


def test_a_key_goes_to_no_provider_that_it_does_not_belong_to() -> None:
    saved("groq", "litellm")
    assert model_resolver()("groq/some-model").id == "groq/some-model"
    with pytest.raises(ConfigError):
        model_resolver()("mistral/some-model")


def test_the_agents_own_choice_says_where_its_key_belongs() -> None:
    saved("other-services", "litellm")
    assert model_resolver("other-services")("mistral/some-model").id == "mistral/some-model"
