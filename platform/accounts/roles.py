"""The roles of an installation: groups with the permissions of one job each.

They are made by a migration. A role that an admin has changed since is left alone; one that is missing is made again after
`migrate`.
"""

from __future__ import annotations

from typing import Any, Final

AGENT_EDITOR: Final = "agent_editor"
GUARDRAIL_EDITOR: Final = "guardrail_editor"
AUDITOR: Final = "auditor"
OPERATOR: Final = "operator"
CHAT_USER: Final = "chat_user"

_CHAIN = tuple(
    f"agents.{verb}_{model}"
    for model in ("chainentry", "agenttool")
    for verb in ("view", "add", "change", "delete")
)

ROLES: Final[dict[str, tuple[str, ...]]] = {
    AGENT_EDITOR: (
        "agents.view_agent", "agents.add_agent", "agents.change_agent", "agents.publish_agent", "agents.view_agentversion",
        "agents.view_tool", "agents.view_providercredential", "processors.view_processor", *_CHAIN,
    ),
    GUARDRAIL_EDITOR: (
        "processors.view_processor", "processors.add_processor", "processors.change_processor", "processors.delete_processor",
        "processors.manage_mandatory", "agents.view_agent", "agents.view_chainentry", "audit.view_violation",
        "audit.view_processorhour", "console.view_example", "console.add_example", "console.change_example", "console.delete_example",
    ),
    AUDITOR: (
        "audit.view_violation", "audit.view_review", "audit.add_review", "audit.change_review", "audit.view_change",
        "audit.view_processorhour", "agents.view_run", "agents.view_agent", "processors.view_processor",
    ),
    OPERATOR: (
        "agents.view_run", "agents.change_run", "agents.view_toolcall", "agents.approve_tool", "agents.view_agent", "agents.view_tool",
        "agents.add_tool", "agents.change_tool", "agents.view_providercredential", "agents.add_providercredential",
        "agents.change_providercredential", "agents.delete_providercredential", "accounts.view_user", "accounts.view_apikey",
        "accounts.change_apikey",
    ),
    CHAT_USER: ("accounts.view_apikey", "accounts.add_apikey"),
}  # fmt: skip
"""Role → permissions, as `app_label.codename`."""

VERBS: Final = ("view", "add", "change", "delete")


def roles_make(apps: Any, *, only_missing: bool = True) -> list[str]:
    """Make the groups, and the permissions they need where Django has not made them yet. Returns the names of those made.

    apps: the registry of a migration, or django.apps.apps.
    """
    group_model = apps.get_model("auth", "Group")
    made = []
    for name, permissions in ROLES.items():
        group, is_new = group_model.objects.get_or_create(name=name)
        if is_new or not only_missing:
            group.permissions.set([_permission(apps, permission) for permission in permissions])
            made.append(name)
    return made


def _permission(apps: Any, name: str) -> Any:
    app_label, _, codename = name.partition(".")
    content_types, permissions = (
        apps.get_model("contenttypes", "ContentType"),
        apps.get_model("auth", "Permission"),
    )
    model = _model_of(codename)
    content_type, _ = content_types.objects.get_or_create(app_label=app_label, model=model)
    found, _ = permissions.objects.get_or_create(
        content_type=content_type, codename=codename, defaults={"name": f"Can {codename.replace('_', ' ')}"}
    )
    return found


def _model_of(codename: str) -> str:
    """The model that a permission stands on: after the verb, or the model that declares it."""
    declared = {"publish_agent": "agent", "approve_tool": "agent", "manage_mandatory": "processor"}
    return declared.get(codename) or codename.partition("_")[2]
