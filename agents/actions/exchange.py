"""Agents as files: readable YAML with their chains and guardrails, references by short name, no secrets."""

from __future__ import annotations

from typing import Any, Final

import yaml
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.validators import validate_slug
from django.db import transaction

from accounts.policies import can
from agents.actions.draft import draft_apply, missing_references
from agents.models import Agent, Tool
from agents.snapshot import PLAIN, STAGES, agent_snapshot, snapshot_diff
from audit.changes import change_record
from processors.engine.errors import ConfigError
from processors.models import Processor
from processors.services import processor_save

HEADING: Final = (
    "# An agent of Gatehouse. Import it under Agents → Import; you see what would change first.\n"
)
LARGEST: Final = 1_000_000
KNOWN: Final = frozenset({"format", "slug", "credential", "allowed_groups", "chains", "tools", *PLAIN})
GUARDRAIL_KEYS: Final = frozenset(
    {"slug", "name", "kind", "options", "on_error", "public_message", "severity"}
)
TOOL_KEYS: Final = (
    "name",
    "kind",
    "description",
    "options",
    "mode",
    "needs_approval",
    "is_idempotent",
    "time_limit",
)


class _Readable(yaml.SafeDumper):
    """Writes long texts as blocks, so that people can read and change them."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    block = (
        "\n" in text
        and not any(line != line.rstrip() for line in text.split("\n"))
        and text.isprintable() is False
    )
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if block else None)


_Readable.add_representer(str, _text)


def agent_export(*, actor: Any, agent: Agent) -> str:
    """The draft as YAML. Raises PermissionDenied."""
    if actor is not None and not (can(actor, "agent.edit") or actor.has_perm("agents.view_agent")):
        raise PermissionDenied("You may not read agents; ask for the role “agent editor”.")
    return HEADING + yaml.dump(
        agent_snapshot(agent), Dumper=_Readable, allow_unicode=True, sort_keys=False, width=100
    )


def agent_import_preview(*, actor: Any, text: str) -> list[str]:
    """What an import would do, as sentences. Raises ConfigError with what is wrong with the file, PermissionDenied."""
    _check_permission(actor)
    snapshot = read_agent(text)
    found = [*_new_guardrails(snapshot), *_kept_guardrails(snapshot), *_new_tools(snapshot)]
    agent = Agent.objects.filter(slug=snapshot["slug"]).first()
    missing = [one for one in missing_references(snapshot) if one.startswith("The credential")]
    if missing:
        raise ConfigError(missing[0])
    if agent is None:
        return [f"The agent “{snapshot['name']}” is made as a draft.", *found]
    differences = snapshot_diff(agent_snapshot(agent), snapshot)
    return [*(differences or ["The draft already is as the file says."]), *found]


@transaction.atomic
def agent_import(*, actor: Any, text: str, as_slug: str | None = None) -> Agent:
    """Make or change a draft from a file; guardrails and tools that are not here are made, those that are stay as they are.

    Raises ConfigError, PermissionDenied.
    """
    _check_permission(actor)
    snapshot = read_agent(text)
    slug = as_slug or snapshot["slug"]
    _make_missing(actor, snapshot)
    agent = Agent.objects.select_for_update().filter(slug=slug).first()
    before = agent_snapshot(agent) if agent is not None else None
    if agent is None:
        agent = Agent(slug=slug, revision=0)
    draft_apply_new(agent, snapshot)
    change_record(actor=actor, action="imported", obj=agent, before=before, after=agent_snapshot(agent))
    return agent


def draft_apply_new(agent: Agent, snapshot: dict[str, Any]) -> None:
    """`draft_apply` for an agent that may not be stored yet. Raises ConfigError for values that no form would accept."""
    for name in PLAIN:
        if name in snapshot:
            setattr(agent, name, snapshot[name])
    try:
        agent.full_clean(exclude=["credential", "published"])
    except ValidationError as problem:
        field, words = next(iter(problem.message_dict.items()))
        raise ConfigError(f"The value of “{field}” does not fit: {words[0]}") from problem
    if agent.pk is None:
        agent.save()
    draft_apply(agent, snapshot)


def read_agent(text: str) -> dict[str, Any]:
    """The snapshot in a file. Raises ConfigError with a sentence; a file is never executed and never trusted."""
    if len(text) > LARGEST:
        raise ConfigError("The file is larger than 1 MB, so it is no exported agent.")
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader)):
            raise ConfigError(
                "The file uses YAML aliases (&, *), which exported agents never have. Write the values out."
            )
        found = yaml.safe_load(text)
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark is not None else ""
        raise ConfigError(
            f"The file is no readable YAML{where}. Choose a file that “Export” made."
        ) from problem
    if (
        not isinstance(found, dict)
        or not isinstance(found.get("slug"), str)
        or not isinstance(found.get("model"), str)
    ):
        raise ConfigError("This is no exported agent: it has no short name (slug) or no model.")
    unknown = set(map(str, found)) - KNOWN
    if unknown:
        raise ConfigError(f"The file has an entry “{sorted(unknown)[0]}” that agents do not have. Remove it.")
    try:
        validate_slug(found["slug"])
    except ValidationError as problem:
        raise ConfigError(
            "The short name (slug) may have letters, numbers, hyphens and underscores only."
        ) from problem
    found.setdefault("name", found["slug"])
    found["chains"] = {stage: _checked(found, stage) for stage in STAGES}
    found["tools"] = [
        one for one in found.get("tools") or [] if isinstance(one, dict) and isinstance(one.get("slug"), str)
    ]
    return found


def _checked(found: dict[str, Any], stage: str) -> list[dict[str, Any]]:
    chains = found.get("chains") or {}
    items = (chains.get(stage) if isinstance(chains, dict) else None) or []
    for item in items if isinstance(items, list) else [items]:
        if not isinstance(item, dict) or not isinstance(item.get("slug"), str):
            raise ConfigError(f"A guardrail in the {stage} chain has no short name (slug).")
        unknown = set(map(str, item)) - GUARDRAIL_KEYS
        if unknown:
            raise ConfigError(
                f"The guardrail “{item['slug']}” has an entry “{sorted(unknown)[0]}” that guardrails do not have. Remove it."
            )
    return list(items)


def _check_permission(actor: Any) -> None:
    if actor is not None and not (actor.has_perm("agents.add_agent") and can(actor, "agent.edit")):
        raise PermissionDenied("You may not import agents; ask for the role “agent editor”.")


def _guardrails(snapshot: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {item["slug"]: item for stage in STAGES for item in snapshot["chains"][stage]}


def _new_guardrails(snapshot: dict[str, Any]) -> list[str]:
    known = set(Processor.objects.values_list("slug", flat=True))
    return [
        f"The guardrail “{item.get('name') or slug}” is made."
        for slug, item in _guardrails(snapshot).items()
        if slug not in known
    ]


def _kept_guardrails(snapshot: dict[str, Any]) -> list[str]:
    from processors.snapshot import processor_snapshot

    here = {
        one.slug: processor_snapshot(one) for one in Processor.objects.filter(slug__in=_guardrails(snapshot))
    }
    return [
        f"The guardrail “{here[slug]['name']}” is here already with other settings; it stays as it is."
        for slug, item in _guardrails(snapshot).items()
        if slug in here and any(here[slug].get(name) != value for name, value in item.items())
    ]


def _new_tools(snapshot: dict[str, Any]) -> list[str]:
    known = set(Tool.objects.values_list("slug", flat=True))
    return [
        f"The tool “{item.get('name') or item['slug']}” is made."
        for item in snapshot["tools"]
        if item["slug"] not in known
    ]


def _make_missing(actor: Any, snapshot: dict[str, Any]) -> None:
    for slug, item in _guardrails(snapshot).items():
        if not Processor.objects.filter(slug=slug).exists():
            data = {**item, "name": item.get("name") or slug, "kind": item.get("kind") or ""}
            processor_save(actor=actor, processor=None, data=data)
    for item in snapshot["tools"]:
        if not Tool.objects.filter(slug=item["slug"]).exists():
            if actor is not None and not actor.has_perm("agents.add_tool"):
                raise PermissionDenied(
                    f"The tool “{item['slug']}” is not here and you may not make tools. Ask an operator."
                )
            tool = Tool(slug=item["slug"], **{name: item[name] for name in TOOL_KEYS if name in item})
            tool.full_clean()
            tool.save()
            change_record(actor=actor, action="made", obj=tool, before=None, after=item)
