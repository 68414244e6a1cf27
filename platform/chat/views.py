"""The chat page. What it shows comes over the WebSocket and the API."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.csrf import ensure_csrf_cookie

from accounts.policies import can
from agents.selectors import agents_for
from chat.samples import samples_for
from chat.words import words


@login_required
@ensure_csrf_cookie
def page(request: HttpRequest) -> HttpResponse:
    """The agents this person may chat with, and what to try; everything else is fetched."""
    agents = [
        {
            "slug": agent.slug, "name": agent.name, "description": agent.description,
            "samples": samples_for(agent.published.snapshot if agent.published else {}),
        }
        for agent in agents_for(request.user)
    ]  # fmt: skip
    facts = {
        "agents": agents,
        "words": words(),
        "canApprove": can(request.user, "tool.approve"),
        "canAudit": can(request.user, "audit.read"),
    }
    return render(request, "chat/page.html", {"agents": agents, "facts": facts})
