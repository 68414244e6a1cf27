"""What a run leaves behind: the messages of each ending, and the snapshot of a run that waits."""

from __future__ import annotations

from typing import Any

from processors.engine.errors import ContractError, GatehouseError, ProcessorFailed
from processors.engine.hooks import StepResult, ToolCallInfo, ToolResultInfo, Usage
from processors.engine.message_list import MessageList
from processors.engine.messages import Message, MessageContent
from processors.engine.tripwire import Tripwire

EMPTY_TYPES = {"text", "reasoning"}


def own_messages(message_list: MessageList) -> list[Message]:
    """The run's input and response, in order, without parts that say nothing."""
    kept = []
    for message in message_list.of_source("input", "response"):
        parts = message.content.parts
        parts[:] = [part for part in parts if part.get("type") not in EMPTY_TYPES or part.get("text")]
        if parts or message.content.legacy:
            kept.append(message)
    return kept


def blocked_messages(message_list: MessageList, tripwire: Tripwire, *, withhold_input: bool) -> list[Message]:
    """A blocked run's trace: its accepted messages and a notice, all marked blocked; a refused input loses its text."""
    messages = own_messages(message_list)
    for message in messages:
        message.blocked = True
        if withhold_input and message_list.source_of(message.id) == "input":
            message.withheld = True
            message.content.legacy = None
            message.content.parts[:] = []
    notice = {"type": "notice", "reason": tripwire.reason, "processorId": tripwire.processor_id}
    messages.append(Message("assistant", MessageContent([notice]), blocked=True))
    return messages


def failed_messages(message_list: MessageList, error: Exception) -> list[Message]:
    """A failed run keeps its words and an error part; neither is sent to a model again."""
    messages = own_messages(message_list)
    said = public_error(error)
    part = {"type": "error", "error": {"name": said["name"], "message": said["message"]}}
    messages.append(Message("assistant", MessageContent([part])))
    for message in messages:
        message.content.metadata["failed"] = True
    return messages


def cancelled_messages(message_list: MessageList) -> list[Message]:
    """What was shown; calls that had not finished are closed with an error, so that the thread can go on."""
    messages = own_messages(message_list)
    for message in messages:
        for part in message.content.parts:
            if part.get("type") == "tool-invocation" and part["toolInvocation"].get("state") == "call":
                closed = {"state": "error", "errorText": "The run was stopped before the tool had finished."}
                part["toolInvocation"] = {**part["toolInvocation"], **closed}
    return messages


def waiting_messages(message_list: MessageList, *, passed: bool) -> list[Message]:
    """What may be stored while a run waits. Unless the whole output chain has `passed` it, a reply is its calls only."""
    if passed:
        return own_messages(message_list)
    kept = []
    for message in own_messages(message_list):
        if message_list.source_of(message.id) == "input":
            kept.append(message)
            continue
        calls = [part for part in message.content.parts
                 if part.get("type") == "tool-invocation" and part["toolInvocation"].get("state") == "call"]  # fmt: skip
        if calls:
            kept.append(Message(message.role, MessageContent(calls), message.id))
    return kept


def public_error(error: Exception) -> dict[str, Any]:
    """An error as clients and the thread may know it: {"name", "message", "code", "retryable"}.

    An exception of a processor, a tool or our own may quote the very content that nobody may see: its words stay here.
    """
    if isinstance(error, ProcessorFailed | ContractError):
        message = f"The guardrail {error.processor_id!r} failed, so the run was stopped. Tell the person who set it up."
    elif isinstance(error, GatehouseError):
        message = str(error)
    else:
        message = "Something went wrong here, so the run was stopped. Try again later."
    return {"name": type(error).__name__, "message": message, "code": getattr(error, "code", "internal_error"),
            "retryable": bool(getattr(error, "retryable", False))}  # fmt: skip


def message_to_json(message: Message) -> dict[str, Any]:
    """A message as JSON, for snapshots."""
    return {
        "role": message.role, "id": message.id, "parts": message.content.parts, "legacy": message.content.legacy,
        "metadata": message.content.metadata, "blocked": message.blocked, "withheld": message.withheld,
    }  # fmt: skip


def message_from_json(value: dict[str, Any]) -> Message:
    """The reverse of `message_to_json`."""
    content = MessageContent(value["parts"], legacy=value.get("legacy"), metadata=value.get("metadata"))
    return Message(
        value["role"],
        content,
        value["id"],
        blocked=value.get("blocked", False),
        withheld=value.get("withheld", False),
    )


def step_to_json(step: StepResult) -> dict[str, Any]:
    """A step as JSON, for snapshots."""
    return {
        "step_number": step.step_number, "text": step.text, "reasoning": step.reasoning,
        "finish_reason": step.finish_reason, "usage": step.usage.to_wire(), "model_id": step.model_id,
        "tool_calls": [[c.tool_call_id, c.tool_name, c.args, c.provider_executed] for c in step.tool_calls],
        "tool_results": [
            [r.tool_call_id, r.tool_name, r.args, r.result, r.provider_executed, r.error] for r in step.tool_results
        ],
    }  # fmt: skip


def step_from_json(value: dict[str, Any]) -> StepResult:
    """The reverse of `step_to_json`."""
    return StepResult(
        value["step_number"], value["text"], value["reasoning"], [ToolCallInfo(*c) for c in value["tool_calls"]],
        [ToolResultInfo(*r) for r in value["tool_results"]], value["finish_reason"], Usage.from_wire(value["usage"]),
        value["model_id"],
    )  # fmt: skip
