"""Saving and deleting guardrails: permission, check, change and audit in one transaction."""

from __future__ import annotations

from typing import Any, Final

from django.core.exceptions import PermissionDenied
from django.core.validators import validate_slug
from django.db import transaction
from pydantic import ValidationError

from accounts.policies import can
from accounts.secrets import seal, unseal
from audit.changes import change_record
from processors.build import first_sentence
from processors.engine.errors import ConfigError
from processors.engine.registry import registry
from processors.models import Processor
from processors.selectors import used_by
from processors.snapshot import processor_snapshot, secret_options

FIELDS: Final = ("name", "options", "on_error", "public_message", "severity", "mandatory", "note")
ONCE: Final = ("slug", "kind")
"""Set when a guardrail is made; other values later are ignored."""


class StaleRevision(ConfigError):
    """Somebody else saved meanwhile."""

    code = "stale_revision"


@transaction.atomic
def processor_save(
    *, actor: Any, processor: Processor | None, data: dict[str, Any], expected_revision: int | None = None
) -> Processor:
    """Make a guardrail (processor None) or change one. data: any of slug, kind and the fields.

    Raises PermissionDenied, ConfigError (StaleRevision among them) and django's ValidationError for a bad short name.
    """
    if processor is None:
        row, before = Processor(slug=data["slug"], kind=data["kind"]), None
        validate_slug(row.slug)
        if Processor.objects.filter(slug=row.slug).exists():
            raise ConfigError(
                f"There is a guardrail with the short name “{row.slug}” already; choose another."
            )
    else:
        row = Processor.objects.select_for_update().get(pk=processor.pk)
        if expected_revision is not None and row.revision != expected_revision:
            raise StaleRevision(
                "Somebody else saved this guardrail while you were editing, so nothing was saved. Load the page again."
            )
        before = _facts(row)
    _check_permission(actor, row, data)
    for name in FIELDS:
        if name in data:
            setattr(row, name, data[name])
    _check(row)
    if before is not None:
        row.revision += 1
    row.save()
    change_record(
        actor=actor, action="made" if before is None else "changed", obj=row, before=before, after=_facts(row)
    )
    return row


@transaction.atomic
def processor_delete(*, actor: Any, processor: Processor) -> None:
    """Delete a guardrail. Raises PermissionDenied, and ConfigError with the agents that use it."""
    row = Processor.objects.select_for_update().get(pk=processor.pk)
    _check_permission(actor, row, {})
    users = used_by(row)
    if users:
        raise ConfigError(
            f"“{row.name}” can't be deleted: these agents use it: {', '.join(users)}. Take it out of their chains first."
        )
    change_record(actor=actor, action="deleted", obj=row, before=_facts(row), after=None)
    row.delete()


def _check_permission(actor: Any, row: Processor, data: dict[str, Any]) -> None:
    """None as actor is the installation itself (demo data, an import by a command)."""
    if actor is None:
        return
    if not (can(actor, "guardrail.edit") or (row.pk is None and actor.has_perm("processors.add_processor"))):
        raise PermissionDenied("You may not change guardrails; ask for the role “guardrail editor”.")
    if (row.mandatory or data.get("mandatory")) and not can(actor, "guardrail.edit_mandatory"):
        raise PermissionDenied("Only people who may change guardrails of every agent can do that.")


def _check(row: Processor) -> None:
    """The options fit the kind; a kind that is not installed keeps the options it has. Secrets are sealed."""
    if row.kind not in registry:
        if row.pk is None:
            registry.get(row.kind)  # says what to do
        return
    kind = registry.get(row.kind)
    options = dict(row.options or {})
    secret = {name for name in secret_options(row.kind) if options.get(name)}
    try:
        kind.options.model_validate(
            {name: unseal(str(value)) if name in secret else value for name, value in options.items()}
        )
    except ValidationError as problem:
        raise ConfigError(first_sentence(problem)) from problem
    if kind.redacts and row.on_error == Processor.OnError.ALLOW:
        raise ConfigError("A guardrail that changes texts must stop the reply when it fails.")
    if row.mandatory:
        missing = ({"input", "output"} if row.mandatory == "both" else {row.mandatory}) - set(kind.stages)
        if missing:
            raise ConfigError(
                f"This kind cannot run on {' and '.join(sorted(missing))}. Choose another place."
            )
    row.options = {name: _sealed(value) if name in secret else value for name, value in options.items()}


def _sealed(value: Any) -> str:
    return seal(str(value.get_secret_value() if hasattr(value, "get_secret_value") else value))


def _facts(row: Processor) -> dict[str, Any]:
    return {**processor_snapshot(row), "mandatory": row.mandatory, "note": row.note}
