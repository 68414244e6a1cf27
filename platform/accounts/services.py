"""API keys: made once, kept as a keyed hash, revoked for good."""

from __future__ import annotations

import hmac
import re
import secrets
from datetime import datetime, timedelta
from typing import Final

from django.core.exceptions import PermissionDenied
from django.utils import timezone

from accounts.models import ApiKey, User
from accounts.secrets import keyed_digest

SHAPE: Final = re.compile(r"gh_([a-z0-9]{8})_([A-Za-z0-9_-]{43})")
SEEN_EVERY: Final = timedelta(minutes=1)
"""`last_used_at` is written at most this often, so that reading with a key writes next to nothing."""


def api_key_create(*, owner: User, name: str, expires_at: datetime | None = None) -> tuple[ApiKey, str]:
    """Make a key. Returns it with the secret `gh_<prefix>_<random>`, which is shown this once. Raises ValueError."""
    if not name.strip():
        raise ValueError("Name the application that will use this key.")
    if expires_at is not None and expires_at <= timezone.now():
        raise ValueError("The key would be expired at once. Choose a later date.")
    prefix = secrets.token_hex(4)
    secret = f"gh_{prefix}_{secrets.token_urlsafe(32)}"
    key = ApiKey.objects.create(
        owner=owner,
        name=name.strip()[:100],
        prefix=prefix,
        digest=keyed_digest("api-key", secret),
        expires_at=expires_at,
    )
    return key, secret


def api_key_revoke(*, actor: User, key: ApiKey) -> ApiKey:
    """End a key at once. Raises PermissionDenied if it is somebody else's and the person may not change keys."""
    if key.owner_id != actor.pk and not actor.has_perm("accounts.change_apikey"):
        raise PermissionDenied("You may revoke your own keys only.")
    if key.revoked_at is None:
        key.revoked_at = timezone.now()
        key.save(update_fields=["revoked_at"])
    return key


def api_key_authenticate(*, secret: str) -> User | None:
    """The person whose key this is, or None: unknown, revoked, expired, or the person is switched off."""
    found = SHAPE.fullmatch(secret)
    if found is None:
        return None
    key = ApiKey.objects.select_related("owner").filter(prefix=found[1]).first()
    if key is None or not hmac.compare_digest(key.digest, keyed_digest("api-key", secret)):
        return None
    now = timezone.now()
    if (
        key.revoked_at is not None
        or (key.expires_at is not None and key.expires_at <= now)
        or not key.owner.is_active
    ):
        return None
    if key.last_used_at is None or now - key.last_used_at > SEEN_EVERY:
        ApiKey.objects.filter(pk=key.pk).update(last_used_at=now)
    return key.owner
