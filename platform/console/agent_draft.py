"""How an agent's draft stands to its live version."""

from __future__ import annotations

from dataclasses import dataclass

from agents.models import Agent, AgentVersion
from agents.snapshot import agent_snapshot, snapshot_diff
from console.effective_chain import effective_chains


@dataclass(slots=True)
class Draft:
    """live: the published version or None. differences: sentences; empty when the draft is what is live."""

    live: AgentVersion | None
    differences: list[str]
    broken: list[str]

    @property
    def is_live(self) -> bool:
        return self.live is not None and not self.differences


def draft_of(agent: Agent) -> Draft:
    """Compare the draft with the live version."""
    live = agent.published
    differences = snapshot_diff(live.snapshot, agent_snapshot(agent)) if live is not None else []
    return Draft(live, differences, broken_guardrails(agent))


def broken_guardrails(agent: Agent) -> list[str]:
    """Names of the guardrails in the chains whose kind is not installed."""
    return [link.processor.name for chain in effective_chains(agent) for link in chain.links if link.broken]
