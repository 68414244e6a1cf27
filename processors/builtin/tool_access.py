"""Which roles may use which tools: others are not shown to the model, and a call to them does not run."""

from __future__ import annotations

import fnmatch
from typing import Any, Final, Literal

from pydantic import Field

from processors.engine.chunks import Chunk
from processors.engine.hooks import ProcessInputStepArgs, ProcessOutputStreamArgs, RequestContext
from processors.engine.ports import BuildContext
from processors.engine.processor import Processor
from processors.engine.registry import Options, ProcessorKind, Registry

SLUG: Final = "tool-access"


class ToolAccessRule(Options):
    """What a role may use."""

    role: str = Field(title="Role", description="A role of the person who asks, as in People and roles; * for everybody.", min_length=1, max_length=100)  # fmt: skip
    tools: list[str] = Field(title="Tools", description="Names of tools, one per line; * stands for any letters: read_*.", min_length=1, max_length=200)  # fmt: skip


class ToolAccessOptions(Options):
    """Who may use what. A tool that no rule of the person's roles names may not be used."""

    rules: list[ToolAccessRule] = Field(title="Rules", description="A person may use what any of their roles may use.", min_length=1, max_length=100)  # fmt: skip
    strategy: Literal["refuse", "block", "warn"] = Field(
        "refuse", title="If the model calls such a tool anyway",
        description="Refuse: the tool does not run, the model is told and goes on. Block: the run ends. Report: the tool runs.",
        json_schema_extra={"x-labels": {"refuse": "Refuse the call", "block": "Block the run", "warn": "Only report"}},
    )  # fmt: skip


class ToolAccess(Processor):
    """Stand it in both chains: on input it hides tools, on output it refuses calls. Roles come from the request."""

    def __init__(self, id: str, options: ToolAccessOptions) -> None:
        super().__init__(id)
        self._rules, self._strategy = options.rules, options.strategy

    def allows(self, tool: str, context: RequestContext) -> bool:
        """Whether the person of this request may use a tool."""
        roles = {str(role) for role in context.get("roles") or ()}
        return any(
            (rule.role == "*" or rule.role in roles)
            and any(fnmatch.fnmatchcase(tool, name) for name in rule.tools)
            for rule in self._rules
        )

    def process_input_step(self, args: ProcessInputStepArgs) -> dict[str, Any] | None:
        kept = {name: tool for name, tool in args.tools.items() if self.allows(name, args.request_context)}
        return {"tools": kept} if len(kept) < len(args.tools) and self._strategy != "warn" else None

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk:
        part = args.part
        if part.type != "tool-call":
            return part
        payload = part.payload or {}
        name = str(payload.get("toolName", ""))
        if self.allows(name, args.request_context):
            return part
        reason = f"The tool {name} is not available to this person."
        detail = {"type": "tool-access", "rule": "roles", "strategy": self._strategy, "where": "tool-args", "tool": name, "matches": []}  # fmt: skip
        if self._strategy == "block":
            args.abort(reason, metadata=detail)
        args.report_violation(reason, detail)
        return part.replace(payload={**payload, "refused": reason}) if self._strategy == "refuse" else part


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> ToolAccess:
        return ToolAccess(id, options)

    registry.register(ProcessorKind(
        slug=SLUG, title="Tools by role", description="Shows the model only the tools that the person who asks may use, and refuses calls to others.",
        options=ToolAccessOptions, factory=build, stages=frozenset({"input", "output"}), group="Tools",
    ))  # fmt: skip
