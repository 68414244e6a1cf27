"""Who may do what. One function, asked by services and by every skin over them.

It works on attributes (`owner_id`, `access` …), so that it knows no model of a higher layer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

PERMISSIONS: Final[dict[str, str]] = {
    "agent.edit": "agents.change_agent",
    "agent.publish": "agents.publish_agent",
    "guardrail.edit": "processors.change_processor",
    "guardrail.edit_mandatory": "processors.manage_mandatory",
    "audit.read": "audit.view_violation",
    "audit.review": "audit.add_review",
    "credential.edit": "agents.change_providercredential",
}
"""Actions that a permission alone decides."""


def can(user: Any, action: str, obj: Any = None) -> bool:
    """Whether the person may do this to the object. Unknown actions raise ValueError: a typo must not open a door.

    action: agent.chat, agent.edit, agent.publish, guardrail.edit, guardrail.edit_mandatory, audit.read, audit.review, run.read,
    run.stop, thread.read, tool.approve, credential.edit.
    """
    if not getattr(user, "is_authenticated", False) or not getattr(user, "is_active", False):
        return False
    if action in PERMISSIONS:
        return bool(user.has_perm(PERMISSIONS[action]))
    try:
        rule = _RULES[action]
    except KeyError:
        raise ValueError(f"There is no action called {action!r}.") from None
    return rule(user, obj)


def _owns(user: Any, obj: Any) -> bool:
    return obj is not None and getattr(obj, "owner_id", None) == user.pk


def _may_chat(user: Any, agent: Any) -> bool:
    """The published version says who may chat, so that saving a draft opens or shuts no door."""
    published = getattr(agent, "published", None)
    if published is None or not agent.is_active:
        return False
    snapshot = published.snapshot
    if snapshot.get("access", "groups") == "everyone":
        return True
    return user.is_superuser or bool(user.groups.filter(name__in=snapshot.get("allowed_groups", ())).exists())


def _may_read_run(user: Any, run: Any) -> bool:
    return _owns(user, run) or bool(user.has_perm("agents.view_run"))


def _may_stop_run(user: Any, run: Any) -> bool:
    return _owns(user, run) or bool(user.has_perm("agents.change_run"))


def _may_read_thread(user: Any, thread: Any) -> bool:
    return _owns(user, thread) or bool(user.has_perm("memory.view_thread"))


def _may_approve(user: Any, run: Any) -> bool:
    """The right to approve counts for one's own runs and, with the right to read runs, for those of others."""
    return bool(user.has_perm("agents.approve_tool")) and (run is None or _may_read_run(user, run))


_RULES: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "agent.chat": _may_chat,
    "run.read": _may_read_run,
    "run.stop": _may_stop_run,
    "thread.read": _may_read_thread,
    "tool.approve": _may_approve,
}
