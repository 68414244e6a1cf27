"""A key is shown once, kept as a hash, and ends when it is revoked, expired, or its owner is switched off."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.exceptions import PermissionDenied
from django.utils import timezone

from accounts.models import ApiKey, User
from accounts.services import api_key_authenticate, api_key_create, api_key_revoke

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice() -> User:
    return User.objects.create_user("alice")


@pytest.fixture
def bob() -> User:
    return User.objects.create_user("bob")


def test_a_key_lets_its_owner_in(alice) -> None:
    key, secret = api_key_create(owner=alice, name="help centre")
    assert secret.startswith(f"gh_{key.prefix}_")
    assert api_key_authenticate(secret=secret) == alice


def test_the_key_itself_is_stored_nowhere(alice) -> None:
    _, secret = api_key_create(owner=alice, name="help centre")
    row = str(ApiKey.objects.values().get())
    assert secret not in row
    assert secret.split("_", 2)[2] not in row


@pytest.mark.parametrize(
    "secret", ["", "gh_", "Bearer x", "gh_00000000_" + "A" * 43, "gh_\x00", "x" * 10_000]
)
def test_what_is_no_key_opens_nothing(alice, secret) -> None:
    api_key_create(owner=alice, name="help centre")
    assert api_key_authenticate(secret=secret) is None


def test_one_changed_letter_opens_nothing(alice) -> None:
    _, secret = api_key_create(owner=alice, name="help centre")
    changed = secret[:-1] + ("A" if secret[-1] != "A" else "B")
    assert api_key_authenticate(secret=changed) is None


def test_a_revoked_and_an_expired_key_open_nothing(alice) -> None:
    key, secret = api_key_create(owner=alice, name="one")
    api_key_revoke(actor=alice, key=key)
    assert api_key_authenticate(secret=secret) is None
    key, secret = api_key_create(owner=alice, name="two", expires_at=timezone.now() + timedelta(days=1))
    ApiKey.objects.filter(pk=key.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert api_key_authenticate(secret=secret) is None


def test_a_person_who_is_switched_off_is_out_at_once(alice) -> None:
    _, secret = api_key_create(owner=alice, name="one")
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert api_key_authenticate(secret=secret) is None


def test_nobody_revokes_the_key_of_another(alice, bob) -> None:
    key, secret = api_key_create(owner=alice, name="one")
    with pytest.raises(PermissionDenied):
        api_key_revoke(actor=bob, key=key)
    assert api_key_authenticate(secret=secret) == alice


def test_reading_with_a_key_writes_at_most_once_a_minute(alice, django_assert_num_queries) -> None:
    _, secret = api_key_create(owner=alice, name="one")
    api_key_authenticate(secret=secret)
    with django_assert_num_queries(1):
        api_key_authenticate(secret=secret)


def test_a_key_without_a_name_or_with_an_end_in_the_past_is_refused(alice) -> None:
    with pytest.raises(ValueError, match="Name the application"):
        api_key_create(owner=alice, name=" ")
    with pytest.raises(ValueError, match="expired at once"):
        api_key_create(owner=alice, name="old", expires_at=timezone.now())
