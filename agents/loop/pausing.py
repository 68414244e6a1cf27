"""A run that waits for approval, as JSON, and back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agents.loop.records import message_from_json, message_to_json, step_from_json, step_to_json
from processors.engine.hooks import ToolCallInfo, Usage
from processors.engine.messages import SystemMessage

if TYPE_CHECKING:
    from agents.loop.run import Run


def snapshot_of(run: Run, waiting: list[ToolCallInfo]) -> dict[str, Any]:
    """All that `resume` needs. A processor's state is kept where it is JSON."""
    return {
        "run_id": run.run_id, "step_number": run.step_number, "retry_count": run.scope.retry_count,
        "retries_left": run.retries_left, "usage": run.usage.to_wire(), "model_at": run.model_at,
        "systems": [[system.text, system.tag] for system in run.systems],
        "messages": [[message_to_json(message), run.list.source_of(message.id)]
                     for message in run.list.of_source("input", "response", "context")],
        "steps": [step_to_json(step) for step in run.steps], "step_messages": list(run.step_messages),
        "states": {f"{slot.index}:{slot.id}": _json_only(slot.state) for slot in run.chain.slots},
        "waiting": [call.tool_call_id for call in waiting],
    }  # fmt: skip


def _json_only(state: dict[str, Any]) -> dict[str, Any]:
    kept = {}
    for key, value in state.items():
        try:
            kept[key] = json.loads(json.dumps(value))
        except (TypeError, ValueError):
            continue
    return kept


def restore(run: Run, snapshot: dict[str, Any]) -> None:
    """Put a prepared run where it was when it began to wait."""
    run.list.remove_by_ids([value["id"] for value, _ in snapshot["messages"]])
    for value, source in snapshot["messages"]:
        run.list.add(message_from_json(value), source)
    run.list.system_messages = [SystemMessage(text, tag) for text, tag in snapshot["systems"]]
    run.steps.extend(step_from_json(value) for value in snapshot["steps"])
    run.step_messages.extend(snapshot["step_messages"])
    run.step_number, run.retries_left = snapshot["step_number"], snapshot["retries_left"]
    run.scope.retry_count, run.usage = snapshot["retry_count"], Usage.from_wire(snapshot["usage"])
    run.scope.step_number = run.step_number - 1
    run.model_at = min(snapshot.get("model_at", 0), len(run.agent.fallbacks))
    run.chain.stream.retries_changed()
    states = snapshot.get("states", {})
    for slot in run.chain.slots:
        slot.state.update(states.get(f"{slot.index}:{slot.id}", {}))
