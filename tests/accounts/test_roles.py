"""Each role can do its job and no other."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.contrib.auth.models import AnonymousUser, Group, Permission

from accounts.models import User
from accounts.policies import can
from accounts.roles import ROLES, roles_make

pytestmark = pytest.mark.django_db


def person(role: str = "") -> User:
    user = User.objects.create_user(role or "dora")
    if role:
        user.groups.add(Group.objects.get(name=role))
    return user


@pytest.mark.parametrize(
    ("role", "actions"),
    [
        ("agent_editor", {"agent.edit", "agent.publish"}), ("guardrail_editor", {"guardrail.edit", "guardrail.edit_mandatory", "audit.read"}),
        ("auditor", {"audit.read", "audit.review"}), ("operator", {"credential.edit"}), ("chat_user", set()), ("", set()),
    ],
)  # fmt: skip
def test_what_a_role_may_do(role, actions) -> None:
    user = person(role)
    every = {
        "agent.edit",
        "agent.publish",
        "guardrail.edit",
        "guardrail.edit_mandatory",
        "audit.read",
        "audit.review",
        "credential.edit",
    }
    assert {action for action in every if can(user, action)} == actions


def test_every_permission_of_a_role_exists_and_belongs_to_a_model() -> None:
    for name, permissions in ROLES.items():
        held = Group.objects.get(name=name).permissions.all()
        assert {f"{one.content_type.app_label}.{one.codename}" for one in held} == set(permissions)
        assert all(one.content_type.model_class() is not None for one in held), name


def test_permissions_are_made_once() -> None:
    seen = Permission.objects.values_list("content_type", "codename")
    assert len(set(seen)) == len(seen)


def test_a_role_that_an_admin_changed_is_left_alone() -> None:
    from django.apps import apps

    group = Group.objects.get(name="auditor")
    group.permissions.clear()
    Group.objects.filter(name="operator").delete()
    assert roles_make(apps) == ["operator"]
    assert group.permissions.count() == 0


def test_nobody_who_is_not_signed_in_or_switched_off_can_do_anything() -> None:
    owner = person()
    thread = SimpleNamespace(owner_id=owner.pk)
    assert can(owner, "thread.read", thread)
    owner.is_active = False
    assert not can(owner, "thread.read", thread)
    assert not can(AnonymousUser(), "thread.read", SimpleNamespace(owner_id=None))


def test_an_action_that_does_not_exist_is_an_error_and_no_yes() -> None:
    with pytest.raises(ValueError, match=r"agent\.destroy"):
        can(person(), "agent.destroy")


def test_an_agent_without_a_published_version_is_open_to_nobody() -> None:
    agent = SimpleNamespace(published=None, is_active=True)
    assert not can(User.objects.create_superuser("charlie"), "agent.chat", agent)
