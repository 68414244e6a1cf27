"""The installation's keys: secrets are encrypted with one, evidence is hashed with another.

Both come from `GATEHOUSE_ENCRYPTION_KEY` (any text of 16 characters or more), each derived for its own purpose, so that one
never helps with the other.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from functools import lru_cache
from typing import Final

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

MARK: Final = "gh-enc:"
"""Begins an encrypted value that stands among plain ones."""


class SecretUnreadable(ValueError):
    """A secret was encrypted with another key, so it has to be entered again."""


def encrypt(text: str) -> bytes:
    """The text, unreadable without the installation's key."""
    return _fernet(_material()).encrypt(text.encode())


def decrypt(token: bytes) -> str:
    """What `encrypt` hid. Raises SecretUnreadable if it was hidden with another key."""
    try:
        return _fernet(_material()).decrypt(bytes(token)).decode()
    except InvalidToken:
        raise SecretUnreadable(
            "A stored secret cannot be read with this installation's key. Enter the secret again, or put the old GATEHOUSE_ENCRYPTION_KEY back."
        ) from None


def seal(text: str) -> str:
    """An encrypted value that can stand in JSON. A value that is sealed already stays as it is."""
    return text if text.startswith(MARK) else MARK + encrypt(text).decode()


def unseal(text: str) -> str:
    """The plain value; one that was never sealed comes back as it is."""
    return decrypt(text.removeprefix(MARK).encode()) if text.startswith(MARK) else text


def derived_key(purpose: str) -> bytes:
    """32 bytes for one purpose, the same in every process of the installation."""
    return _derived(_material(), purpose)


def keyed_digest(purpose: str, text: str) -> str:
    """HMAC-SHA256 of a text in hexadecimal, with the key of that purpose."""
    return hmac.new(derived_key(purpose), text.encode(), hashlib.sha256).hexdigest()


def _material() -> str:
    material = str(getattr(settings, "GATEHOUSE_ENCRYPTION_KEY", "") or "")
    if len(material) < 16:
        raise ImproperlyConfigured("GATEHOUSE_ENCRYPTION_KEY must be a text of 16 characters or more.")
    return material


@lru_cache(maxsize=16)
def _derived(material: str, purpose: str) -> bytes:
    return HKDF(SHA256(), 32, salt=b"gatehouse", info=purpose.encode()).derive(material.encode())


@lru_cache(maxsize=4)
def _fernet(material: str) -> Fernet:
    return Fernet(base64.urlsafe_b64encode(_derived(material, "secrets")))
