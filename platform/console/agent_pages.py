"""Pages below an agent: versions and restore. Each is a view of (admin, request, …)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from agents.actions import agent_restore
from agents.models import AgentVersion
from agents.snapshot import agent_snapshot, snapshot_diff
from processors.engine.errors import GatehouseError

if TYPE_CHECKING:
    from console.admin.agents import AgentAdmin

VERSIONS_SHOWN = 100


def versions_page(area: AgentAdmin, request: HttpRequest, object_id: str) -> HttpResponse:
    """The versions, the newest first, each with what it changed."""
    agent = area.object_for_view(request, object_id)
    versions = list(agent.versions.select_related("author")[: VERSIONS_SHOWN + 1])
    rows = []
    for index, version in enumerate(versions[:VERSIONS_SHOWN]):
        before = versions[index + 1] if index + 1 < len(versions) else None
        rows.append({
            "version": version, "is_live": agent.published_id == version.pk,
            "changes": snapshot_diff(before.snapshot, version.snapshot) if before is not None else [],
        })  # fmt: skip
    context = area.page_context(request, agent, title=_("Versions of “%(agent)s”") % {"agent": agent}, rows=rows,
                                can_edit=area.has_change_permission(request, agent))  # fmt: skip
    return TemplateResponse(request, "admin/console/agent_versions.html", context)


def version_page(area: AgentAdmin, request: HttpRequest, object_id: str, number: int) -> HttpResponse:
    """How a version differs from the draft; POST puts it into the draft."""
    agent = area.object_for_view(request, object_id)
    version = agent.versions.select_related("author").filter(number=number).first()
    if version is None:
        raise Http404
    if request.method == "POST":
        return _restore(area, request, object_id, version)
    context = area.page_context(
        request, agent, title=_("Version %(number)s of “%(agent)s”") % {"number": number, "agent": agent}, version=version,
        differences=snapshot_diff(agent_snapshot(agent), version.snapshot), can_edit=area.has_change_permission(request, agent),
    )  # fmt: skip
    return TemplateResponse(request, "admin/console/agent_version.html", context)


def _restore(area: AgentAdmin, request: HttpRequest, object_id: str, version: AgentVersion) -> HttpResponse:
    agent = area.object_for_change(request, object_id)
    try:
        agent_restore(actor=request.user, agent=agent, version=version)
    except (GatehouseError, ValueError) as problem:
        messages.error(request, str(problem))
        return HttpResponseRedirect(reverse("admin:agents_agent_version", args=[agent.pk, version.number]))
    messages.success(request, _("Version %(number)s is in the draft now. People still get the live version until you publish.") % {"number": version.number})  # fmt: skip
    return HttpResponseRedirect(reverse("admin:agents_agent_change", args=[agent.pk]))
