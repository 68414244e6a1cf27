"""A person decides about a tool call that waits."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction

from accounts.policies import can
from agents.models import Run, ToolCall
from agents.services.refusals import RunRefused
from agents.tools.kinds import tool_kind
from audit.changes import change_record
from audit.storable import storable, storable_text
from processors.engine.errors import ConfigError


def run_decide(
    *,
    user: Any,
    run_id: UUID | str,
    tool_call_id: str,
    approved: bool,
    reason: str = "",
    args: dict[str, Any] | None = None,
) -> Run:
    """Approve or decline a call, with other arguments if `args` is given. When the last one is decided, the run goes on.

    Arguments before and after are kept in the changes; edited ones are checked against the tool's schema here and again when the
    tool runs. Raises RunRefused.
    """
    from agents.services.runs import run_get, run_launch

    run = run_get(user=user, run_id=run_id)
    if not can(user, "tool.approve", run):
        raise RunRefused("forbidden", "You may not decide about tool calls; ask for the role “operator”.")
    with transaction.atomic():
        run = Run.objects.select_for_update(of=("self",)).select_related("agent", "version").get(pk=run.pk)
        if run.status != Run.Status.WAITING:
            raise RunRefused("not_waiting", "This run does not wait for a decision (any more).")
        call = ToolCall.objects.select_for_update().filter(run=run, call_id=str(tool_call_id)[:200]).first()
        if call is None:
            raise RunRefused("unknown_tool_call", "There is no such tool call in this run.")
        if call.status != ToolCall.Status.APPROVAL or call.decision is not None:
            raise RunRefused("already_decided", "Somebody has decided about this call already.")
        _decide(user, run, call, approved=approved, reason=storable_text(reason)[:2000], args=args)
        waiting = ToolCall.objects.filter(
            run=run, status=ToolCall.Status.APPROVAL, decision__isnull=True
        ).exists()
        if not waiting:
            run.status = Run.Status.QUEUED
            run.save(update_fields=["status"])
    if not waiting:
        run_launch(run)
    return run


def _decide(
    user: Any, run: Run, call: ToolCall, *, approved: bool, reason: str, args: dict[str, Any] | None
) -> None:
    edited = approved and args is not None and args != call.args
    if edited:
        _check_args(run, call, args)
    before = {"tool": call.tool_slug, "args": call.args}
    call.decision = {"approved": approved, "args": storable(args) if edited else None}
    call.decided_by, call.decision_reason = user, reason
    if edited:
        call.args = storable(args)
    call.save(update_fields=["decision", "decided_by", "decision_reason", "args"])
    after = {"tool": call.tool_slug, "args": call.args, "approved": approved}
    change_record(
        actor=user,
        action="approved" if approved else "declined",
        obj=call,
        before=before,
        after=after,
        note=reason,
    )


def _check_args(run: Run, call: ToolCall, args: Any) -> None:
    import jsonschema

    snapshot = run.version.snapshot if run.version is not None else run.draft_snapshot or {}
    item = next((one for one in snapshot.get("tools") or [] if one["slug"] == call.tool_slug), None)
    if item is None or not isinstance(args, dict):
        raise RunRefused("bad_request", "The arguments must be an object.")
    try:
        jsonschema.validate(args, tool_kind(item["kind"]).parameters)
    except jsonschema.ValidationError as problem:
        raise RunRefused(
            "bad_request", f"These arguments do not fit the tool: {problem.message}"
        ) from problem
    except ConfigError as problem:
        raise RunRefused("bad_request", str(problem)) from problem
