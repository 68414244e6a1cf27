"""A guardrail is saved only as it can run; its secrets go in and never come out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.checks import run_checks
from django.core.exceptions import PermissionDenied
from pydantic import Field, SecretStr

from accounts.models import User
from audit.models import Change
from processors.build import build_context, build_entry, snapshot_problem
from processors.engine.errors import ConfigError
from processors.engine.processor import Processor as EngineProcessor
from processors.engine.registry import Options, ProcessorKind, registry
from processors.models import Processor
from processors.selectors import mandatory_snapshots
from processors.services import StaleRevision, processor_delete, processor_save
from processors.snapshot import processor_snapshot

pytestmark = pytest.mark.django_db


class RemoteOptions(Options):
    address: str = Field(default="https://guard.example.org", title="Address")
    key: SecretStr | None = Field(default=None, title="Key")


class Remote(EngineProcessor):
    def __init__(self, id: str, options: RemoteOptions) -> None:
        super().__init__(id)
        self.key = options.key

    def process_input(self, args: Any) -> None:
        return None


@pytest.fixture(autouse=True)
def remote_kind() -> Iterator[None]:
    registry.register(
        ProcessorKind(
            "remote",
            "Remote",
            "Asks a service.",
            RemoteOptions,
            lambda id, options, _: Remote(id, options),
            frozenset({"input"}),
        )
    )
    registry.register(ProcessorKind("changer", "Changer", "Changes texts.", Options, lambda id, options, _: Remote(id, RemoteOptions()), frozenset({"input"}), redacts=True))  # fmt: skip
    yield
    del registry._kinds["remote"], registry._kinds["changer"]


@pytest.fixture
def editor() -> User:
    user = User.objects.create_user("charlie")
    user.groups.add(Group.objects.get(name="guardrail_editor"))
    return user


def made(kind: str = "remote", slug: str = "guard", actor: Any = None, **data: Any) -> Processor:
    return processor_save(
        actor=actor, processor=None, data={"slug": slug, "kind": kind, "name": "Guard", **data}
    )


def test_a_secret_is_sealed_in_the_row_and_left_out_of_snapshots_and_changes() -> None:
    row = made(options={"key": "sk-secret"})
    assert row.options["key"].startswith("gh-enc:")
    snapshot = processor_snapshot(row)
    assert snapshot["options"] == {}
    assert "sk-secret" not in str(Change.objects.values())
    entry = build_entry(snapshot, "input", build_context())
    assert entry.processor.key.get_secret_value() == "sk-secret"


def test_a_sealed_secret_that_comes_back_from_a_form_is_kept() -> None:
    row = made(options={"key": "sk-secret"})
    again = processor_save(actor=None, processor=row, data={"options": dict(row.options)})
    assert (
        build_entry(processor_snapshot(again), "input", build_context()).processor.key.get_secret_value()
        == "sk-secret"
    )


def test_an_entry_carries_where_it_came_from() -> None:
    entry = build_entry(
        processor_snapshot(made(severity="high", public_message="No.")),
        "input",
        build_context(),
        mandatory=True,
    )
    assert entry.mandatory
    assert {
        "slug": "guard",
        "kind": "remote",
        "severity": "high",
        "public_message": "No.",
    }.items() <= entry.origin.items()


def test_options_that_do_not_fit_are_refused_in_words() -> None:
    with pytest.raises(ConfigError, match="colour"):
        made(options={"colour": "red"})
    with pytest.raises(ConfigError, match="is not installed"):
        made(kind="unheard-of")
    with pytest.raises(ConfigError, match="already"):
        made() and made()


def test_a_kind_that_changes_texts_may_not_fail_open() -> None:
    with pytest.raises(ConfigError, match="must stop the reply"):
        made(kind="changer", on_error="allow")
    row = made(kind="changer")
    assert (
        build_entry({**processor_snapshot(row), "on_error": "allow"}, "input", build_context()).on_error
        == "block"
    )


def test_a_kind_runs_only_where_it_can() -> None:
    with pytest.raises(ConfigError, match="cannot run on output"):
        made(mandatory="both")
    with pytest.raises(ConfigError, match="nothing to do in the output chain"):
        build_entry(processor_snapshot(made()), "output", build_context())
    assert mandatory_snapshots() == {"input": [], "output": []}


def test_two_editors_at_once_are_told() -> None:
    row = made()
    processor_save(actor=None, processor=row, data={"name": "First"}, expected_revision=1)
    with pytest.raises(StaleRevision, match="nothing was saved"):
        processor_save(actor=None, processor=row, data={"name": "Second"}, expected_revision=1)
    row.refresh_from_db()
    assert (row.name, row.revision) == ("First", 2)


def test_who_may_save(editor) -> None:
    stranger = User.objects.create_user("bob")
    with pytest.raises(PermissionDenied):
        made(actor=stranger)
    row = made(actor=editor, mandatory="input")
    limited = User.objects.create_user("dora")
    limited.user_permissions.set(
        Group.objects.get(name="guardrail_editor").permissions.exclude(codename="manage_mandatory")
    )
    for change in ({"name": "Weaker"}, {"mandatory": ""}):
        with pytest.raises(PermissionDenied, match="every agent"):
            processor_save(actor=User.objects.get(pk=limited.pk), processor=row, data=change)


def test_a_change_is_recorded_with_before_and_after(editor) -> None:
    row = made(actor=editor)
    processor_save(actor=editor, processor=row, data={"options": {"address": "https://other.example.org"}})
    change = Change.objects.get(action="changed")
    assert (change.actor_label, change.before["options"], change.after["options"]) == (
        "charlie",
        {},
        {"address": "https://other.example.org"},
    )


def test_what_is_in_use_is_not_deleted(editor) -> None:
    from agents.models import Agent, ChainEntry

    row = made()
    agent = Agent.objects.create(slug="helper", name="Helper", model="a/b")
    ChainEntry.objects.create(agent=agent, stage="input", processor=row)
    with pytest.raises(ConfigError, match="these agents use it: Helper"):
        processor_delete(actor=editor, processor=row)
    agent.chain.all().delete()
    processor_delete(actor=editor, processor=row)
    assert Change.objects.filter(action="deleted", object_label="Guard").exists()


def test_a_guardrail_whose_package_is_gone_keeps_its_options_and_is_reported() -> None:
    Processor.objects.create(slug="old", name="Old", kind="gone", options={"a": 1}, mandatory="input")
    row = processor_save(actor=None, processor=Processor.objects.get(slug="old"), data={"name": "Older"})
    assert row.options == {"a": 1}
    assert "is not installed" in snapshot_problem(processor_snapshot(row))
    found = run_checks(tags=["database"], databases=["default"])
    assert [message.id for message in found if message.id and message.id.startswith("processors")] == [
        "processors.E001"
    ]


def test_our_own_kinds_are_built_once_and_those_of_others_for_every_run() -> None:
    words = processor_snapshot(made(kind="block-list", slug="words", options={"words": ["darn"]}))
    first, second = (build_entry(words, "input", build_context()).processor for _ in range(2))
    assert first is second
    changed = build_entry({**words, "options": {"words": ["heck"]}}, "input", build_context()).processor
    assert changed is not first
    remote = processor_snapshot(made())
    assert (
        build_entry(remote, "input", build_context()).processor
        is not build_entry(remote, "input", build_context()).processor
    )
