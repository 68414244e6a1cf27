"""Makes the demo data: people, guardrails, tools and published agents."""

from __future__ import annotations

import logging
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.db import transaction

from accounts.roles import CHAT_USER
from agents.actions import agent_publish
from agents.credentials import environment_models
from agents.demo_data import AGENTS, GUARDRAILS, PRO, PRO_MODELS, TOOLS
from agents.models import Agent, AgentTool, ChainEntry, Tool
from audit.models import Change
from processors.engine.errors import GatehouseError
from processors.engine.registry import registry
from processors.models import Processor
from processors.services import processor_save

log = logging.getLogger("gatehouse.demo")
ADMIN, CHATTER = "admin", "alice"


@transaction.atomic
def demo_make(*, admin_password: str | None) -> list[str]:
    """Make what is missing. Returns a sentence for each thing made. What was deleted by somebody is not made again.

    admin_password: for a new admin; without one no admin is made.
    """
    said = _people(admin_password)
    for data in GUARDRAILS:
        said += _guardrail(data)
    for tool in TOOLS:
        if not _known("tool", tool["slug"], Tool):
            Tool.objects.create(**tool)
            said.append(f"The tool “{tool['name']}” is there.")
    for agent in (*AGENTS, *_pro()):
        said += _agent(agent)
    return said


def _known(object_type: str, slug: str, model: Any) -> bool:
    """It is there, or somebody took it away."""
    return bool(model.objects.filter(slug=slug).exists()) or Change.objects.filter(
        object_type=object_type, action="deleted", before__slug=slug
    ).exists()  # fmt: skip


def _people(admin_password: str | None) -> list[str]:
    people, said = get_user_model().objects, []
    if admin_password and not people.filter(is_superuser=True).exists():
        people.create_superuser(ADMIN, "", admin_password)
        said.append("The admin is there.")
    if admin_password and not people.filter(is_superuser=False).exists():
        person = people.create_user(CHATTER, password=admin_password)
        person.groups.add(Group.objects.get(name=CHAT_USER))
        person.user_permissions.add(
            Permission.objects.get(content_type__app_label="agents", codename="approve_tool")
        )
        said.append(f"The person {CHATTER} is there, with the same password.")
    return said


def _guardrail(data: dict[str, Any]) -> list[str]:
    if data["kind"] not in registry or _known("processor", data["slug"], Processor):
        return []
    try:
        with transaction.atomic():
            processor_save(actor=None, processor=None, data=data)
    except GatehouseError as problem:
        log.warning("The sample guardrail %s was left out: %s", data["slug"], problem)
        return []
    return [f"The guardrail “{data['name']}” is there."]


def _pro() -> list[dict[str, Any]]:
    provider = next((one for one in environment_models() if one in PRO_MODELS), None)
    return [] if provider is None else [{**PRO, "model": PRO_MODELS[provider]}]


def _agent(data: dict[str, Any]) -> list[str]:
    if _known("agent", data["slug"], Agent):
        return []
    own = {name: value for name, value in data.items() if name not in ("input", "output", "error", "tools")}
    agent = Agent.objects.create(**own)
    for stage in ("input", "output", "error"):
        fitting = [
            one
            for slug in data[stage]
            for one in Processor.objects.filter(slug=slug)
            if stage in registry.get(one.kind).stages
        ]
        ChainEntry.objects.bulk_create(
            ChainEntry(agent=agent, stage=stage, processor=one, position=place)
            for place, one in enumerate(fitting)
        )
    tools = [Tool.objects.filter(slug=slug).first() for slug in data["tools"]]
    AgentTool.objects.bulk_create(
        AgentTool(agent=agent, tool=one, position=place) for place, one in enumerate(tools) if one is not None
    )
    agent_publish(actor=None, agent=agent, note="Made by the installation.")
    return [f"The agent “{agent.name}” is published."]
