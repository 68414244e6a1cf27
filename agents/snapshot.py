"""An agent as JSON: everything a run needs, readable, without secrets. A published version is one of these."""

from __future__ import annotations

from typing import Any, Final

from agents.models import Agent, Tool
from agents.snapshot_diff import snapshot_diff as snapshot_diff
from processors.snapshot import processor_snapshot

FORMAT: Final = 1
STAGES: Final = ("input", "output", "error")
PLAIN: Final = (
    "name", "description", "instructions", "model", "fallbacks", "temperature", "max_output_tokens", "max_steps",
    "max_processor_retries", "max_total_tokens", "max_seconds", "history_messages", "when_busy", "access",
)  # fmt: skip
"""Fields of Agent that a snapshot holds as they are."""
TOOL_FIELDS: Final = (
    "slug",
    "name",
    "kind",
    "description",
    "options",
    "mode",
    "needs_approval",
    "is_idempotent",
    "time_limit",
)


def agent_snapshot(agent: Agent) -> dict[str, Any]:
    """The draft as it stands in the database. References are by slug.

    {"format", "slug", PLAIN fields, "credential": slug or None, "allowed_groups": [name], "chains": {stage: [guardrail]},
    "tools": [tool]}; a guardrail is what `processors.snapshot.processor_snapshot` returns.
    """
    entries = [
        entry
        for entry in agent.chain.select_related("processor").order_by("stage", "position", "id")
        if entry.enabled
    ]
    return {
        "format": FORMAT, "slug": agent.slug, **{name: _plain(getattr(agent, name)) for name in PLAIN},
        "credential": agent.credential.slug if agent.credential is not None else None,
        "allowed_groups": sorted(agent.allowed_groups.values_list("name", flat=True)),
        "chains": {stage: [processor_snapshot(entry.processor) for entry in entries if entry.stage == stage] for stage in STAGES},
        "tools": [
            tool_snapshot(use.tool) for use in agent.agent_tools.select_related("tool").order_by("position", "id")
        ],
    }  # fmt: skip


def tool_snapshot(tool: Tool) -> dict[str, Any]:
    """A tool as a version keeps it."""
    return {name: _plain(getattr(tool, name)) for name in TOOL_FIELDS}


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, str) else value
