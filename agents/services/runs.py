"""The one road: every channel begins, watches, stops and decides runs here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from accounts.policies import can
from agents.bridge import in_database
from agents.models import Agent, Run
from agents.runner import runner
from agents.runner.claims import run_interrupt
from agents.services.approvals import run_decide
from agents.services.overrides import checked_overrides
from agents.services.parts import message_parts
from agents.services.refusals import RunRefused
from audit.storable import storable_text
from memory.models import Thread
from memory.selectors import thread_get
from memory.services import thread_create, user_message_store
from processors.engine.messages import Message, MessageContent

__all__ = [
    "RunRefused",
    "draft_run_start",
    "run_begin",
    "run_decide",
    "run_get",
    "run_launch",
    "run_start",
    "run_stop",
]

MOST_QUEUED: Final = 20
"""Runs that may wait on one thread."""
LONGEST_KEY: Final = 150


def longest_text() -> int:
    """Characters that a message may have (GATEHOUSE_MAX_MESSAGE_CHARS)."""
    return int(
        getattr(
            settings, "GATEHOUSE_MAX_MESSAGE_CHARS", os.environ.get("GATEHOUSE_MAX_MESSAGE_CHARS") or 100_000
        )
    )


def most_at_once() -> int:
    """Runs of one person that may be queued or going on (GATEHOUSE_MAX_ACTIVE_RUNS)."""
    default = os.environ.get("GATEHOUSE_MAX_ACTIVE_RUNS") or 100
    return int(getattr(settings, "GATEHOUSE_MAX_ACTIVE_RUNS", default))


def run_start(
    *, user: Any, agent_slug: str, text: str, thread_id: UUID | str | None = None, client_message_id: str | None = None, channel: str,
    idempotency_key: str = "", overrides: dict[str, Any] | None = None, parts: Sequence[dict[str, Any]] | None = None,
) -> Run:  # fmt: skip
    """Store what a person wrote and the run that will answer it, in one transaction. Nothing runs yet; see `run_launch`.

    A repeated `client_message_id` or `idempotency_key` of the same person returns the first run. thread_id None begins a thread.
    overrides: see `checked_overrides`. parts: files beside the text. Raises RunRefused.
    """
    key = _key(client_message_id, idempotency_key)
    if key and (first := Run.objects.filter(owner=user, idempotency_key=key).first()) is not None:
        return first
    agent = _agent(user, agent_slug)
    content = message_parts(_text(text, has_parts=bool(parts)), parts or ())
    accepted = checked_overrides(overrides)
    try:
        with transaction.atomic():
            return _store(user, agent, content, thread_id, channel, key, accepted)
    except IntegrityError:
        # the same message came twice at once: the other one won
        first = Run.objects.filter(owner=user, idempotency_key=key).first() if key else None
        if first is None:
            raise
        return first


def _key(client_message_id: str | None, idempotency_key: str) -> str:
    for prefix, value in (("key:", idempotency_key), ("message:", client_message_id or "")):
        if value:
            if not isinstance(value, str) or len(value) > LONGEST_KEY or not value.isprintable():
                raise RunRefused(
                    "bad_request",
                    f"An id of a client must be a printable text of at most {LONGEST_KEY} characters.",
                )
            return prefix + value
    return ""


def _agent(user: Any, slug: str) -> Agent:
    agent = Agent.objects.select_related("published").filter(slug=str(slug)[:100]).first()
    if agent is None:
        raise RunRefused("unknown_agent", f"There is no agent called “{str(slug)[:100]}”.")
    if agent.published is None or not agent.is_active:
        raise RunRefused(
            "not_published",
            f"The agent “{agent.name}” is not available; its owner has not published it or has switched it off.",
        )
    if not can(user, "agent.chat", agent):
        raise RunRefused("forbidden", f"You may not chat with “{agent.name}”.")
    return agent


def _text(text: Any, *, has_parts: bool) -> str:
    if not isinstance(text, str):
        raise RunRefused("bad_request", "The message must be a text.")
    if len(text) > longest_text():
        raise RunRefused(
            "too_long",
            f"The message has {len(text):,} characters; at most {longest_text():,} are possible. Shorten it.",
        )
    clean = storable_text(text)
    if not clean.strip() and not has_parts:
        raise RunRefused("empty", "Write a message first.")
    return clean


def _store(
    user: Any,
    agent: Agent,
    parts: list[dict[str, Any]],
    thread_id: Any,
    channel: str,
    key: str,
    overrides: dict[str, Any],
) -> Run:
    version = agent.published
    assert version is not None
    if Run.objects.filter(owner=user, status__in=Run.ACTIVE).count() >= most_at_once():
        raise RunRefused(
            "rate_limited", "Too many of your messages wait for an answer. Wait until some are done."
        )
    thread = _thread(user, agent, thread_id, channel)
    is_new = thread_id in (None, "")
    busy = 0 if is_new else Run.objects.filter(thread=thread, status__in=Run.ACTIVE).count()
    if busy and (version.snapshot.get("when_busy") == Agent.WhenBusy.REJECT or busy > MOST_QUEUED):
        raise RunRefused("thread_busy", "The agent still answers your last message. Wait for it or stop it.")
    run = Run(
        agent=agent,
        version=version,
        thread=thread,
        owner=user,
        channel=channel[:32],
        overrides=overrides,
        idempotency_key=key,
    )
    message = Message("user", MessageContent(parts))
    run.input_message_id = UUID(message.id)
    run.save(force_insert=True)
    earlier = len(overrides.get("history") or [])
    user_message_store(thread=thread, message=message, run_id=run.pk, earlier=earlier, is_first=is_new)
    return run


def _thread(user: Any, agent: Agent, thread_id: Any, channel: str) -> Thread:
    """The thread, locked, so that positions and the busy policy are decided one after the other."""
    if thread_id in (None, ""):
        return thread_create(owner=user, agent_slug=agent.slug, metadata={"channel": channel})
    try:
        thread = thread_get(user, thread_id)
    except Thread.DoesNotExist:
        thread = None
    if thread is None or thread.owner_id != user.pk or thread.agent_slug != agent.slug:
        raise RunRefused("unknown_thread", "There is no such conversation with this agent.")
    return Thread.objects.select_for_update().get(pk=thread.pk)


def run_launch(run: Run) -> None:
    """Hand a run to this process's runner. Harmless if it runs already or must wait for another of its thread."""
    if run.status == Run.Status.QUEUED:
        is_new = run.started_at is None
        transaction.on_commit(lambda: runner().launch(run.pk, is_new=is_new))


async def run_begin(**asked: Any) -> Run:
    """`run_start` and `run_launch`, for async callers. Raises RunRefused."""
    return await in_database(_begin, asked)


def _begin(asked: dict[str, Any]) -> Run:
    run = run_start(**asked)
    run_launch(run)
    return run


def run_get(*, user: Any, run_id: UUID | str) -> Run:
    """A run that the person may read. Raises RunRefused (unknown_run), also for a stranger's."""
    try:
        run = Run.objects.select_related("agent", "version", "thread").get(pk=run_id)
    except (Run.DoesNotExist, ValidationError, ValueError):
        run = None
    if run is None or not can(user, "run.read", run):
        raise RunRefused("unknown_run", "There is no such run.")
    return run


def run_stop(*, user: Any, run_id: UUID | str) -> Run:
    """Stop a run, wherever it runs. What was shown is kept. Harmless when it has ended. Raises RunRefused."""
    run = run_get(user=user, run_id=run_id)
    if not can(user, "run.stop", run):
        raise RunRefused("forbidden", "You may not stop this run.")
    Run.objects.filter(pk=run.pk, stop_requested_at=None, status__in=Run.ACTIVE).update(
        stop_requested_at=timezone.now()
    )
    idle = Q(status__in=(Run.Status.QUEUED, Run.Status.WAITING))
    if run_interrupt(
        run_id=run.pk, reason="Stopped before it ran.", status=Run.Status.CANCELLED, only_if=idle
    ):
        if run.thread_id:
            runner().launch_next(run.thread_id)
    else:
        runner().stop(run.pk)
    run.refresh_from_db()
    return run


def draft_run_start(
    *, user: Any, snapshot: dict[str, Any], text: str, history: Sequence[Message] = ()
) -> Run:
    """A run of a draft, for the playground: no thread, nothing remembered. Raises RunRefused."""
    agent = Agent.objects.filter(slug=snapshot.get("slug", "")).first()
    if agent is None:
        raise RunRefused("unknown_agent", "Save the agent first.")
    if not can(user, "agent.edit"):
        raise RunRefused("forbidden", "You may not try drafts; ask for the role “agent editor”.")
    earlier = [{"role": one.role, "text": one.text} for one in history if one.role in ("user", "assistant")]
    overrides = {**checked_overrides({"history": earlier}), "text": _text(text, has_parts=False)}
    return Run.objects.create(
        agent=agent, draft_snapshot=snapshot, owner=user, channel="playground", overrides=overrides
    )
