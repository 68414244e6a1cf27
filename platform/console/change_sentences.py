"""A change as sentences: what was, and what is now."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from agents.snapshot import snapshot_diff
from audit.models import Change
from console.message_view import brief


def change_summary(change: Change) -> str:
    """One line: who did what to which object."""
    return f"{change.actor_label or _('Gatehouse')} · {change.action} · {change.object_type} “{change.object_label}”"


def change_sentences(change: Change) -> list[str]:
    """Each difference between before and after. Agents' snapshots read as the publish page says them."""
    before, after = change.before, change.after
    if change.object_type == "agent" and _is_snapshot(before) and _is_snapshot(after):
        return snapshot_diff(dict(before or {}), dict(after or {}))
    if isinstance(before, dict) and isinstance(after, dict):
        return _differences(before, after)
    if before is None and isinstance(after, dict):
        return [_("%(name)s: %(value)s") % {"name": words(name), "value": brief(value)} for name, value in after.items() if value not in (None, "", [], {})]  # fmt: skip
    return []


def words(name: str) -> str:
    """A field's name as words."""
    text = name.replace("_", " ")
    return text[:1].upper() + text[1:]


def _is_snapshot(value: Any) -> bool:
    return (isinstance(value, dict) and "chain" in value) or (isinstance(value, dict) and "chains" in value)


def _differences(before: dict[str, Any], after: dict[str, Any], path: str = "") -> list[str]:
    found = []
    for name in [*before, *(name for name in after if name not in before)]:
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            found += _differences(old, new, f"{path}{words(name)}, ")
            continue
        label = f"{path}{words(name)}"
        if name not in before or old in (None, "", []):
            found.append(_("%(name)s is set to %(new)s.") % {"name": label, "new": brief(new)})
        elif name not in after or new in (None, "", []):
            found.append(_("%(name)s is no longer set; it was %(old)s.") % {"name": label, "old": brief(old)})
        else:
            found.append(
                _("%(name)s: %(old)s → %(new)s") % {"name": label, "old": brief(old), "new": brief(new)}
            )
    return found
