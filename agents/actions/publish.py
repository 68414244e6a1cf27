"""From draft to live, back, and into a copy."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.core.validators import validate_slug
from django.db import transaction
from django.db.models import Max

from accounts.policies import can
from agents.actions.draft import draft_apply
from agents.models import Agent, AgentTool, AgentVersion, ChainEntry
from agents.snapshot import STAGES, agent_snapshot
from audit.changes import change_record
from processors.build import snapshot_problem
from processors.engine.errors import ConfigError


@transaction.atomic
def agent_publish(
    *, actor: Any, agent: Agent, note: str, expected_revision: int | None = None
) -> AgentVersion:
    """Make the draft live: a new version, numbered on, from the draft as it is now. actor None: the installation itself.

    Raises PermissionDenied; ConfigError if the draft changed meanwhile or a guardrail in it cannot run.
    """
    if actor is not None and not can(actor, "agent.publish"):
        raise PermissionDenied("You may not publish agents; ask for the role “agent editor”.")
    row = Agent.objects.select_for_update(of=("self",)).select_related("published").get(pk=agent.pk)
    if expected_revision is not None and row.revision != expected_revision:
        raise ConfigError(
            "Somebody changed this agent since you opened the page. Look at the difference again, then publish."
        )
    if "/" not in row.model:
        raise ConfigError("Choose a model first; its name has the form provider/name.")
    snapshot = agent_snapshot(row)
    for stage in STAGES:
        for item in snapshot["chains"][stage]:
            problem = snapshot_problem(item)
            if problem:
                raise ConfigError(
                    f"The guardrail “{item['name']}” cannot run: {problem} Put it right or take it out, then publish."
                )
    number = (row.versions.aggregate(last=Max("number"))["last"] or 0) + 1
    version = AgentVersion.objects.create(
        agent=row, number=number, snapshot=snapshot, note=note, author=actor
    )
    before = row.published.snapshot if row.published is not None else None
    Agent.objects.filter(pk=row.pk).update(published=version)
    agent.published = version
    change_record(
        actor=actor,
        action="published",
        obj=agent,
        before=before,
        after=snapshot,
        note=f"Version {number}. {note}".strip(),
    )
    return version


@transaction.atomic
def agent_restore(*, actor: Any, agent: Agent, version: AgentVersion) -> Agent:
    """Put an old version into the draft. What is live stays live. Raises PermissionDenied, ConfigError."""
    if actor is not None and not can(actor, "agent.edit"):
        raise PermissionDenied("You may not change agents; ask for the role “agent editor”.")
    if version.agent_id != agent.pk:
        raise ConfigError("This version belongs to another agent.")
    row = Agent.objects.select_for_update().get(pk=agent.pk)
    before = agent_snapshot(row)
    draft_apply(row, version.snapshot)
    change_record(
        actor=actor,
        action="restored",
        obj=row,
        before=before,
        after=agent_snapshot(row),
        note=f"Version {version.number} is in the draft.",
    )
    agent.refresh_from_db()
    return row


@transaction.atomic
def agent_clone(*, actor: Any, agent: Agent, slug: str, name: str) -> Agent:
    """A new draft like this one, unpublished. Raises PermissionDenied, ConfigError, ValidationError."""
    if actor is not None and not actor.has_perm("agents.add_agent"):
        raise PermissionDenied("You may not make agents; ask for the role “agent editor”.")
    validate_slug(slug)
    if Agent.objects.filter(slug=slug).exists():
        raise ConfigError(f"There is an agent with the short name “{slug}” already; choose another.")
    copy = Agent.objects.get(pk=agent.pk)
    groups, entries, uses = (
        list(copy.allowed_groups.all()),
        list(copy.chain.all()),
        list(copy.agent_tools.all()),
    )
    copy.pk, copy.slug, copy.name, copy.published, copy.revision = None, slug, name, None, 1
    copy._state.adding = True
    copy.save()
    copy.allowed_groups.set(groups)
    ChainEntry.objects.bulk_create(
        ChainEntry(
            agent=copy,
            stage=one.stage,
            processor_id=one.processor_id,
            position=one.position,
            enabled=one.enabled,
        )
        for one in entries
    )
    AgentTool.objects.bulk_create(
        AgentTool(agent=copy, tool_id=one.tool_id, position=one.position) for one in uses
    )
    change_record(
        actor=actor,
        action="made",
        obj=copy,
        before=None,
        after=agent_snapshot(copy),
        note=f"A copy of {agent.slug}.",
    )
    return copy
