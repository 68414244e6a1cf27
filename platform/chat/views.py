"""The chat page. What it shows comes over the WebSocket and the API."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from accounts.policies import can
from agents.models import Agent


@login_required
def page(request: HttpRequest) -> HttpResponse:
    """The agents this person may chat with; everything else is fetched."""
    agents = Agent.objects.filter(is_active=True).exclude(published=None).prefetch_related("allowed_groups")
    usable = [agent for agent in agents if can(request.user, "agent.chat", agent)]
    return render(request, "chat/page.html", {"agents": usable})
