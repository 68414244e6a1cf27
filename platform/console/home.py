"""The home page: what happened today, what needs attention, what to do next in a new installation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, FloatField, Q, Sum
from django.db.models.functions import Cast, TruncDay
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.models import Agent, ProviderCredential, Run
from audit.models import ProcessorHour, Violation
from processors.engine.registry import registry
from processors.models import Processor

DAYS_SHOWN = 14


@dataclass(slots=True)
class Tile:
    """One figure of today. url: where it is explained."""

    title: str
    figure: str
    note: str
    icon: str
    url: str = ""


@dataclass(slots=True)
class Notice:
    """Something that somebody should look at."""

    text: str
    url: str
    severe: bool = False


@dataclass(slots=True)
class Step:
    """A step of setting up a new installation."""

    title: str
    note: str
    url: str
    done: bool


def home_context(request: HttpRequest) -> dict[str, Any]:
    """What this person may see. The number of queries does not depend on how much there is."""
    midnight = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    user = request.user
    sees_runs, sees_audit = user.has_perm("agents.view_run"), user.has_perm("audit.view_violation")
    context: dict[str, Any] = {
        "tiles": [
            *(run_tiles(midnight) if sees_runs else ()),
            *(audit_tiles(midnight) if sees_audit else ()),
        ],
        "notices": notices(request, midnight, sees_runs=sees_runs, sees_audit=sees_audit),
        "chart": violations_by_day(midnight) if sees_audit else None,
        "steps": [],
    }
    if user.has_perm("agents.view_agent"):
        steps = first_steps()
        context["steps"] = steps if not all(step.done for step in steps) else []
    return context


def run_tiles(midnight: datetime) -> list[Tile]:
    """Conversations and spend of today. One query."""
    today = Run.objects.filter(created_at__gte=midnight).aggregate(
        runs=Count("pk"), threads=Count("thread", distinct=True), cost=Sum("cost"),
        failed=Count("pk", filter=_status("failed", "interrupted")), blocked=Count("pk", filter=_status("blocked")),
    )  # fmt: skip
    runs = reverse("admin:agents_run_changelist")
    cost = today["cost"]
    return [
        Tile(_("Answers today"), str(today["runs"]), ngettext("in %(count)d conversation", "in %(count)d conversations", today["threads"]) % {"count": today["threads"]}, "forum", runs),
        Tile(_("Blocked answers"), str(today["blocked"]), _("stopped by a guardrail"), "block", f"{runs}?status__exact=blocked"),
        Tile(_("Failed answers"), str(today["failed"]), _("the model, a tool or a guardrail failed"), "error", f"{runs}?status__exact=failed"),
        Tile(_("Spent today"), f"$ {cost:.2f}" if cost is not None else _("nothing"), _("as far as prices are known"), "payments", runs),
    ]  # fmt: skip


def audit_tiles(midnight: datetime) -> list[Tile]:
    """Findings and the slowest guardrail of today. Two queries."""
    outcomes = dict(
        Violation.objects.filter(at__gte=midnight).order_by().values_list("outcome").annotate(Count("pk"))
    )
    slowest = (
        ProcessorHour.objects.filter(hour__gte=midnight, evaluated__gt=0).order_by().values("processor_id")
        .annotate(took=Sum("seconds") / Cast(Sum("evaluated"), FloatField())).order_by("-took").first()
    )  # fmt: skip
    url = reverse("admin:audit_violation_changelist")
    problems = outcomes.get("error", 0) + outcomes.get("not_scanned", 0)
    took = f"{slowest['took'] * 1000:.1f} ms" if slowest else "–"
    return [
        Tile(_("Findings today"), str(outcomes.get("violation", 0)), _("by all guardrails together"), "report", f"{url}?outcome__exact=violation"),
        Tile(_("Guardrail failures"), str(problems), _("could not check a text"), "heart_broken", f"{url}?outcome__exact=error"),
        Tile(_("Slowest guardrail"), took, slowest["processor_id"] if slowest else _("nothing ran yet"), "speed", reverse("admin:processors_processor_changelist") if slowest else ""),
    ]  # fmt: skip


def failing_guardrails(midnight: datetime) -> list[Notice]:
    """The guardrails that failed most today."""
    found: list[Notice] = []
    failing = (
        Violation.objects.filter(at__gte=midnight, outcome__in=("error", "not_scanned"))
        .order_by()
        .values_list("processor_id")
        .annotate(count=Count("pk"))
        .order_by("-count")[:3]
    )
    for slug, count in failing:
        url = f"{reverse('admin:audit_violation_changelist')}?processor_id={slug}&outcome__exact=error"
        found.append(
            Notice(
                ngettext(
                    "“%(slug)s” failed %(count)d time today.",
                    "“%(slug)s” failed %(count)d times today.",
                    count,
                )
                % {"slug": slug, "count": count},
                url,
                True,
            )
        )
    return found


def notices(request: HttpRequest, midnight: datetime, *, sees_runs: bool, sees_audit: bool) -> list[Notice]:
    """What needs a person now."""
    found: list[Notice] = []
    if request.user.has_perm("processors.view_processor"):
        for guardrail in Processor.objects.exclude(kind__in=[kind.slug for kind in registry])[:5]:
            url = reverse("admin:processors_processor_change", args=[guardrail.pk])
            found.append(
                Notice(
                    _(
                        "“%(name)s” is broken: its kind “%(kind)s” is not installed. Agents with it can't be published."
                    )
                    % {"name": guardrail, "kind": guardrail.kind},
                    url,
                    True,
                )
            )
    if sees_audit:
        found += failing_guardrails(midnight)
    if sees_runs:
        waiting = Run.objects.filter(status=Run.Status.WAITING).count()
        if waiting:
            url = f"{reverse('admin:agents_run_changelist')}?status__exact=waiting"
            found.append(
                Notice(
                    ngettext(
                        "%(count)d answer waits for somebody to approve a tool call.",
                        "%(count)d answers wait for somebody to approve a tool call.",
                        waiting,
                    )
                    % {"count": waiting},
                    url,
                )
            )
    if request.user.has_perm("agents.view_agent"):
        for agent in Agent.objects.filter(published__isnull=True, is_active=True).only("pk", "name")[:3]:
            found.append(
                Notice(
                    _("“%(agent)s” was never published, so nobody can use it.") % {"agent": agent},
                    reverse("admin:agents_agent_change", args=[agent.pk]),
                )
            )
    return found


def violations_by_day(midnight: datetime) -> dict[str, Any]:
    """Checks and findings of the last fourteen days, for the chart and for the table beside it. One query."""
    first = midnight - timedelta(days=DAYS_SHOWN - 1)
    rows = (
        ProcessorHour.objects.filter(hour__gte=first)
        .order_by()
        .annotate(day=TruncDay("hour"))
        .values("day")
        .annotate(checks=Sum("evaluated"), findings=Sum("violations"), failures=Sum("errors"))
        .order_by("day")
    )
    by_day: dict[Any, dict[str, Any]] = {timezone.localtime(row["day"]).date(): dict(row) for row in rows}
    days = [(first + timedelta(days=offset)).date() for offset in range(DAYS_SHOWN)]
    empty: dict[str, Any] = {}
    table = [
        {
            "day": date_format(day, "j M"), "checks": by_day.get(day, empty).get("checks", 0),
            "findings": by_day.get(day, empty).get("findings", 0), "failures": by_day.get(day, empty).get("failures", 0),
        }
        for day in days
    ]  # fmt: skip
    return {
        "table": table, "empty": not by_day,
        "data": {"labels": [row["day"] for row in table], "findings": [row["findings"] for row in table],
                 "failures": [row["failures"] for row in table],
                 "names": {"findings": _("Findings"), "failures": _("Failures")}},
    }  # fmt: skip


def first_steps() -> list[Step]:
    """The way of a new installation, as a list to tick off."""
    used = Run.objects.exclude(channel="playground").exists()
    return [
        Step(_("Connect a model"), _("The small model on this machine works without a key; a provider's key gives better answers."), reverse("admin:agents_providercredential_add"), ProviderCredential.objects.exists()),
        Step(_("Set up a guardrail"), _("For example one that takes personal data out of messages."), reverse("admin:processors_processor_add"), Processor.objects.exists()),
        Step(_("Make an agent"), _("Start with a template, then put it into your own words."), reverse("admin:agents_agent_start"), Agent.objects.exists()),
        Step(_("Publish it"), _("Nothing reaches people before you publish."), reverse("admin:agents_agent_changelist"), Agent.objects.filter(published__isnull=False).exists()),
        Step(_("Talk to it"), _("Open the chat and try to get past your own guardrails."), "/", used),
    ]  # fmt: skip


def _status(*values: str) -> Q:
    return Q(status__in=values)
