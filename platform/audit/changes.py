"""Who changed what: one row per change, append-only."""

from __future__ import annotations

from typing import Any

from audit.models import Change
from audit.storable import storable, storable_text


def change_record(*, actor: Any, action: str, obj: Any, before: Any, after: Any, note: str = "") -> Change:
    """Record a change of `obj` (any model instance). actor: a person, or None for the installation itself.

    before, after: JSON values without secrets; None for something that did not exist before or no longer does.
    """
    return Change.objects.create(
        actor_id=getattr(actor, "pk", None), actor_label=str(actor)[:200] if actor is not None else "", action=action[:40],
        object_type=obj._meta.model_name, object_id=str(obj.pk)[:100], object_label=storable_text(str(obj))[:200],
        before=storable(before), after=storable(after), note=storable_text(note),
    )  # fmt: skip
