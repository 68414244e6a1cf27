"""Runs whose process is gone are brought to an end, and what waits behind them goes on."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from agents.models import Run
from agents.runner.claims import next_of_thread, run_interrupt, run_requeue
from agents.runner.shown import shown_of

LOST: Final = "The process that wrote this answer ended. Send the message again to go on."
UNDECIDED: Final = "Nobody decided about a tool call in time."
LEFT_BEHIND: Final = timedelta(seconds=5)
"""A queued run that nobody has taken for so long is taken by whoever looks."""
MOST: Final = 100
AGAIN_WITHIN: Final = timedelta(seconds=60)
"""A run is begun again only so long after its first start; one that keeps killing its process ends."""


def runs_reap() -> list[UUID]:
    """End the runs whose lease is over and those that waited too long for a decision. Returns the ids of those that changed."""
    now = timezone.now()
    expired = Q(status=Run.Status.RUNNING) & (Q(lease_until__lt=now) | Q(lease_until=None))
    hours = float(
        getattr(settings, "GATEHOUSE_APPROVAL_HOURS", os.environ.get("GATEHOUSE_APPROVAL_HOURS") or 24)
    )
    undecided = Q(status=Run.Status.WAITING, started_at__lt=now - timedelta(hours=hours))
    ended = []
    for run in (
        Run.objects.filter(expired | undecided)
        .order_by("created_at")
        .only("pk", "status", "started_at")[:MOST]
    ):
        if run.status == Run.Status.WAITING:
            done = run_interrupt(run_id=run.pk, reason=UNDECIDED, only_if=undecided)
        else:
            done = _lost_run_end(run, expired)
        if done:
            ended.append(run.pk)
    return ended


def _lost_run_end(run: Run, expired: Q) -> bool:
    """Begin again if nobody has seen anything of it yet; otherwise keep what was seen and end it."""
    shown = shown_of(run.pk)
    fresh = run.started_at is not None and timezone.now() - run.started_at < AGAIN_WITHIN
    if shown is not None and shown.untouched and fresh and run_requeue(run_id=run.pk, only_if=expired):
        return True
    return run_interrupt(
        run_id=run.pk, reason=LOST, only_if=expired, shown=shown.parts if shown is not None else None
    )


def runs_left_behind() -> list[UUID]:
    """Queued runs that could start now and that no process has taken, because theirs is gone."""
    old = timezone.now() - LEFT_BEHIND
    queued = Run.objects.filter(status=Run.Status.QUEUED, created_at__lt=old).order_by("created_at")
    found: list[UUID] = []
    for run_id, thread_id in queued.values_list("pk", "thread_id")[:MOST]:
        if thread_id is None or next_of_thread(thread_id) == run_id:
            found.append(run_id)
    return found
