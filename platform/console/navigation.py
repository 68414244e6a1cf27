"""The sidebar, in the words of people who own agents and guardrails. An entry shows only to those who may open it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

SECTIONS: list[tuple[Any, list[tuple[Any, str, str, str]]]] = [
    (_("Build"), [
        (_("Agents"), "smart_toy", "agents_agent", "agents.view_agent"),
        (_("Guardrails"), "shield", "processors_processor", "processors.view_processor"),
        (_("Tools"), "build", "agents_tool", "agents.view_tool"),
    ]),
    (_("Watch"), [
        (_("Conversations"), "forum", "memory_thread", "memory.view_thread"),
        (_("Runs"), "play_circle", "agents_run", "agents.view_run"),
        (_("Violations"), "report", "audit_violation", "audit.view_violation"),
        (_("Changes"), "history", "audit_change", "audit.view_change"),
    ]),
    (_("Set up"), [
        (_("People"), "group", "accounts_user", "accounts.view_user"),
        (_("Roles"), "badge", "auth_group", "auth.view_group"),
        (_("Keys"), "key", "accounts_apikey", "accounts.view_apikey"),
        (_("Credentials"), "lock", "agents_providercredential", "agents.view_providercredential"),
    ]),
]  # fmt: skip


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """Groups of links as unfold expects them."""
    groups: list[dict[str, Any]] = [
        {"items": [{"title": _("Home"), "icon": "home", "link": reverse("admin:index")}]}
    ]
    for title, entries in SECTIONS:
        items = [
            {
                "title": name,
                "icon": icon,
                "link": reverse(f"admin:{model}_changelist"),
                "permission": _allows(permission),
            }
            for name, icon, model, permission in entries
            if request.user.has_perm(permission)
        ]
        if items:
            groups.append({"title": title, "separator": True, "items": items})
    return groups


def _allows(permission: str) -> Callable[[HttpRequest], bool]:
    return lambda request: request.user.has_perm(permission)
