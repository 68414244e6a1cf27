"""The tools that agents can be given: kinds in a registry, like guardrails."""

from agents.tools.kinds import Job, JobStopped, ToolKind, tool_kind, tool_kinds, tool_register

__all__ = ["Job", "JobStopped", "ToolKind", "tool_kind", "tool_kinds", "tool_register"]
