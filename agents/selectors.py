"""Reading agents."""

from __future__ import annotations

from typing import Any

from accounts.policies import can
from agents.models import Agent


def agents_for(user: Any) -> list[Agent]:
    """The published agents that a person may chat with, by name."""
    live = (
        Agent.objects.filter(is_active=True)
        .exclude(published=None)
        .select_related("published")
        .order_by("name")
    )
    return [agent for agent in live if can(user, "agent.chat", agent)]
