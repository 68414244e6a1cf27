"""From a version's snapshot to the agent that runs, with every guardrail in its place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from agents.budget_ledger import BudgetLedger
from agents.credentials import model_resolver
from agents.loop.agent import Agent
from agents.loop.budget import Budget
from agents.loop.tools import Tool
from agents.stores import RunCosts, SharedCache
from agents.tools.inline import inline_execute
from agents.tools.kinds import tool_kind
from agents.tools.queue import queue_execute
from processors.build import build_context, build_entry
from processors.engine.errors import ConfigError
from processors.engine.ports import BuildContext, LanguageModel, ModelResolver
from processors.engine.processor import ChainEntry
from processors.selectors import mandatory_snapshots


@dataclass(slots=True)
class RunFacts:
    """What a run's tools and chains need to know of it. mandatory: the guardrails of every agent, as they were found."""

    run_id: UUID
    mandatory: dict[str, list[dict[str, Any]]] = field(default_factory=mandatory_snapshots)
    context: BuildContext | None = None


def guardrail_context() -> BuildContext:
    """What processors may ask the platform for."""
    return BuildContext(models=LazyResolver(), cache=SharedCache(), costs=BudgetLedger(RunCosts()))


class LazyResolver:
    """Reads the credentials when the first model is asked for: most guardrails never ask a model."""

    def __init__(self, credential_slug: str | None = None) -> None:
        self._slug = credential_slug
        self._resolve: ModelResolver | None = None

    def __call__(self, model_id: str) -> LanguageModel:
        if self._resolve is None:
            self._resolve = model_resolver(self._slug)
        return self._resolve(model_id)


def build_agent(snapshot: dict[str, Any], *, user: Any, context: RunFacts) -> Agent:
    """The agent of a snapshot. Synchronous, asks the database. Raises ConfigError with a sentence.

    user: the person it answers. Mandatory guardrails come from `context`, that is, as they are now, not from the version.
    """
    resolve = model_resolver(snapshot.get("credential"))
    build = context.context or build_context()
    chains = snapshot.get("chains") or {}
    return Agent(
        snapshot["slug"], name=snapshot.get("name"), instructions=snapshot.get("instructions") or "", model=resolve(snapshot["model"]),
        fallbacks=[resolve(name) for name in snapshot.get("fallbacks") or []],
        tools=[build_tool(item, context) for item in snapshot.get("tools") or []],
        input_processors=[build_entry(item, "input", build) for item in chains.get("input") or []],
        output_processors=[build_entry(item, "output", build) for item in chains.get("output") or []],
        error_processors=[build_entry(item, "error", build) for item in chains.get("error") or []] or None,
        mandatory_input=_mandatory(context, "input", build), mandatory_output=_mandatory(context, "output", build),
        max_processor_retries=snapshot.get("max_processor_retries"), max_steps=snapshot.get("max_steps") or 5,
        model_settings=_model_settings(snapshot), resolver=resolve,
        budget=Budget(tokens=snapshot.get("max_total_tokens"), seconds=snapshot.get("max_seconds")),
    )  # fmt: skip


def _mandatory(context: RunFacts, stage: Any, build: BuildContext) -> list[ChainEntry]:
    return [build_entry(item, stage, build, mandatory=True) for item in context.mandatory.get(stage) or []]


def _model_settings(snapshot: dict[str, Any]) -> dict[str, Any]:
    settings = {
        "temperature": snapshot.get("temperature"),
        "max_output_tokens": snapshot.get("max_output_tokens"),
    }
    return {name: value for name, value in settings.items() if value is not None}


def build_tool(item: dict[str, Any], context: RunFacts) -> Tool:
    """A tool of a snapshot. Raises ConfigError for a kind that is not installed."""
    try:
        kind = tool_kind(item["kind"])
    except ConfigError as problem:
        raise ConfigError(f"The tool “{item.get('name') or item['slug']}” cannot run: {problem}") from problem
    options, limit = dict(item.get("options") or {}), float(item.get("time_limit") or 60)
    queued = item.get("mode") == "queue"
    execute = queue_execute(item, context.run_id) if queued else inline_execute(kind, options)
    return Tool(
        item["slug"], item.get("description") or kind.description, kind.parameters, execute,
        requires_approval=bool(item.get("needs_approval")), timeout=None if queued else limit,
    )  # fmt: skip
