"""What people ask for: each action holds permission, check, change and audit together."""

from agents.actions.exchange import agent_export, agent_import, agent_import_preview
from agents.actions.publish import agent_clone, agent_publish, agent_restore

__all__ = [
    "agent_clone",
    "agent_export",
    "agent_import",
    "agent_import_preview",
    "agent_publish",
    "agent_restore",
]
