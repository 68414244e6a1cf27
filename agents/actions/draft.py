"""Putting a snapshot into a draft, for restore and import."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group

from agents.models import Agent, AgentTool, ChainEntry, ProviderCredential, Tool
from agents.snapshot import PLAIN, STAGES
from processors.engine.errors import ConfigError
from processors.models import Processor


def draft_apply(agent: Agent, snapshot: dict[str, Any]) -> None:
    """Fields, groups, chains and tools as the snapshot has them; the revision moves on.

    Guardrails and tools are taken by their short names as they are configured now: a guardrail belongs to all its agents, so an
    agent's old version never rewrites it. Raises ConfigError with what is missing.
    """
    missing = missing_references(snapshot)
    if missing:
        raise ConfigError(f"{' '.join(missing)} Nothing was changed.")
    for name in PLAIN:
        if name in snapshot:
            setattr(agent, name, snapshot[name])
    slug = snapshot.get("credential")
    agent.credential = ProviderCredential.objects.get(slug=slug) if slug else None
    agent.revision += 1
    agent.save()
    agent.allowed_groups.set(Group.objects.filter(name__in=snapshot.get("allowed_groups") or []))
    agent.chain.all().delete()
    guardrails = {one.slug: one for one in Processor.objects.filter(slug__in=_slugs(snapshot))}
    ChainEntry.objects.bulk_create(
        ChainEntry(agent=agent, stage=stage, processor=guardrails[item["slug"]], position=position)
        for stage in STAGES
        for position, item in enumerate(snapshot.get("chains", {}).get(stage) or [])
    )
    agent.agent_tools.all().delete()
    tools = {
        one.slug: one
        for one in Tool.objects.filter(slug__in=[item["slug"] for item in snapshot.get("tools") or []])
    }
    AgentTool.objects.bulk_create(
        AgentTool(agent=agent, tool=tools[item["slug"]], position=position)
        for position, item in enumerate(snapshot.get("tools") or [])
    )


def missing_references(snapshot: dict[str, Any]) -> list[str]:
    """What the snapshot names and this installation does not have, as sentences."""
    found = []
    slug = snapshot.get("credential")
    if slug and not ProviderCredential.objects.filter(slug=slug).exists():
        found.append(f"The credential “{slug}” is not here; make it first.")
    known = set(Processor.objects.filter(slug__in=_slugs(snapshot)).values_list("slug", flat=True))
    found += [
        f"The guardrail “{one}” is not here; make it first."
        for one in dict.fromkeys(_slugs(snapshot))
        if one not in known
    ]
    wanted = [item["slug"] for item in snapshot.get("tools") or []]
    tools = set(Tool.objects.filter(slug__in=wanted).values_list("slug", flat=True))
    return found + [f"The tool “{one}” is not here; make it first." for one in wanted if one not in tools]


def _slugs(snapshot: dict[str, Any]) -> list[str]:
    return [item["slug"] for stage in STAGES for item in snapshot.get("chains", {}).get(stage) or []]
