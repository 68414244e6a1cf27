"""Secrets are readable with this installation's key only."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from accounts.secrets import MARK, SecretUnreadable, decrypt, derived_key, encrypt, keyed_digest, seal, unseal


def test_what_was_hidden_is_found_again() -> None:
    assert decrypt(encrypt("sk-läuft")) == "sk-läuft"
    assert "sk-läuft".encode() not in encrypt("sk-läuft")


def test_another_key_reads_nothing(settings) -> None:
    token = encrypt("sk-1")
    settings.GATEHOUSE_ENCRYPTION_KEY = "another key of this length"
    with pytest.raises(SecretUnreadable, match="Enter the secret again"):
        decrypt(token)


def test_a_sealed_value_stands_in_json_and_is_sealed_once() -> None:
    sealed = seal("sk-1")
    assert sealed.startswith(MARK)
    assert seal(sealed) == sealed
    assert (unseal(sealed), unseal("plain")) == ("sk-1", "plain")


def test_each_purpose_has_its_own_key() -> None:
    assert derived_key("one") != derived_key("two")
    assert keyed_digest("one", "x") != keyed_digest("two", "x")
    assert len(derived_key("one")) == 32


def test_a_missing_key_is_named(settings) -> None:
    settings.GATEHOUSE_ENCRYPTION_KEY = "short"
    with pytest.raises(ImproperlyConfigured, match="GATEHOUSE_ENCRYPTION_KEY"):
        derived_key("one")
