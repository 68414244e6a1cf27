"""The tables of agents: the draft, its published versions, its tools and credentials, and the runs."""

from agents.models.agent import Agent, AgentTool, AgentVersion, ChainEntry
from agents.models.resource import ProviderCredential, Tool
from agents.models.run import Run, ToolCall

__all__ = [
    "Agent",
    "AgentTool",
    "AgentVersion",
    "ChainEntry",
    "ProviderCredential",
    "Run",
    "Tool",
    "ToolCall",
]
