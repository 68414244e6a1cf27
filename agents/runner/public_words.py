"""What people are told when a guardrail stops an answer: its public message, if it has one, on every road."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agents.loop.agent import Agent
from processors.engine.chunks import Chunk
from processors.engine.ports import Turn
from processors.engine.processor import ChainEntry


class PublicWords:
    """Processor id → public message, of the chains of one agent."""

    def __init__(self, agent: Agent) -> None:
        lists: Iterable[Any] = (
            agent.mandatory_input,
            agent.input_processors,
            agent.output_processors,
            agent.error_processors,
            agent.mandatory_output,
        )
        self._words: dict[str, str] = {}
        for entries in lists:
            for entry in entries if isinstance(entries, list) else ():
                if (
                    isinstance(entry, ChainEntry)
                    and isinstance(entry.origin, dict)
                    and entry.origin.get("public_message")
                ):
                    self._words[entry.processor.id] = entry.origin["public_message"]

    def of(self, processor_id: str | None, reason: str) -> str:
        """The public message of a processor, or the reason it gave."""
        return self._words.get(processor_id or "", reason)

    def chunk(self, chunk: Chunk) -> dict[str, Any]:
        """The wire form of a chunk, in public words."""
        wire = chunk.to_wire()
        if chunk.type == "tripwire" and self._words:
            payload = dict(wire.get("payload") or {})
            payload["reason"] = self.of(payload.get("processorId"), payload.get("reason", ""))
            wire["payload"] = payload
        return wire

    def turn(self, turn: Turn) -> None:
        """Put public words into a turn's tripwire and its notice, before they are stored."""
        if turn.tripwire is None:
            return
        turn.tripwire["reason"] = self.of(turn.tripwire.get("processorId"), turn.tripwire.get("reason", ""))
        for message in turn.messages:
            for part in message.content.parts:
                if part.get("type") == "notice":
                    part["reason"] = self.of(part.get("processorId"), part.get("reason", ""))
