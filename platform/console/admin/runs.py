"""Runs: one answer each, with what its guardrails and tools did."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import FieldTextFilter, RangeDateFilter
from unfold.decorators import display
from unfold.paginator import InfinitePaginator

from agents.models import Run
from audit.models import Violation
from console.admin.pages import ReadOnlyAdmin
from console.audit_words import action_words, hook_words
from console.message_view import brief
from console.site import site

STATUS_COLOURS = {
    "completed": "success", "blocked": "danger", "failed": "danger", "running": "info", "queued": "info",
    "waiting": "warning", "cancelled": "warning", "interrupted": "warning",
}  # fmt: skip


@admin.register(Run, site=site)
class RunAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "agent", "version_number", "owner", "channel", "status_label", "seconds")
    list_select_related = ("agent", "version", "owner")
    list_filter = ("status", ("agent__slug", FieldTextFilter), ("owner__username", FieldTextFilter), ("channel", FieldTextFilter), ("created_at", RangeDateFilter))  # fmt: skip
    paginator = InfinitePaginator

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        return (
            super()
            .get_queryset(request)
            .defer("draft_snapshot", "snapshot", "text", "stats", "version__snapshot")
        )

    @display(description=_("version"))
    def version_number(self, obj: Run) -> str:
        return str(obj.version.number) if obj.version is not None else str(_("draft"))

    @display(description=_("status"), label=STATUS_COLOURS)
    def status_label(self, obj: Run) -> tuple[str, str]:
        return obj.status, obj.get_status_display()

    @display(description=_("took"))
    def seconds(self, obj: Run) -> str:
        if obj.started_at is None or obj.finished_at is None:
            return "–"
        return f"{(obj.finished_at - obj.started_at).total_seconds():.1f} s"

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        run = self.object_for_view(request, object_id)
        may_audit = request.user.has_perm("audit.view_violation")
        calls = [
            {"call": call, "args": brief(call.args), "result": brief(call.result)}
            for call in run.tool_calls.all()[:100]
        ]
        context = self.page_context(
            request, run, title=_("Run of “%(agent)s”") % {"agent": run.agent}, run=run, took=self.seconds(run),
            colour=STATUS_COLOURS.get(run.status, "info"), calls=calls, stats=_stat_rows(run.stats),
            violations=_violation_rows(run) if may_audit else [],
        )  # fmt: skip
        return TemplateResponse(request, "admin/console/run.html", context)


def _violation_rows(run: Run) -> list[dict[str, Any]]:
    found = Violation.objects.filter(run_id=run.pk).order_by("sequence")[:100]
    return [
        {"violation": one, "done": action_words(one.action), "moment": hook_words(one.hook)} for one in found
    ]


def _stat_rows(stats: Any) -> list[dict[str, Any]]:
    """One row per guardrail: name, how often it looked, what it found, milliseconds."""
    entries = (
        stats.items()
        if isinstance(stats, dict)
        else ((row.get("id") or row.get("processor_id"), row) for row in stats or ())
    )
    return [
        {
            "name": name, "evaluated": row.get("evaluated", 0), "violations": row.get("violations", 0),
            "errors": row.get("errors", 0), "ms": round(float(row.get("seconds", 0.0)) * 1000, 2),
        }
        for name, row in entries
    ]  # fmt: skip
