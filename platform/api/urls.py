"""Addresses of the REST API and its description."""

from __future__ import annotations

from django.urls import path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from api.views import audit, conversations, people, runs

urlpatterns = [
    path("v1/me", people.Me.as_view(), name="me"),
    path("v1/agents", people.Agents.as_view(), name="agents"),
    path("v1/threads", conversations.Threads.as_view(), name="threads"),
    path("v1/threads/<uuid:id>", conversations.ThreadDetail.as_view(), name="thread"),
    path("v1/threads/<uuid:id>/messages", conversations.Messages.as_view(), name="messages"),
    path("v1/runs", runs.Runs.as_view(), name="runs"),
    path("v1/runs/<uuid:id>", runs.RunDetail.as_view(), name="run"),
    path("v1/runs/<uuid:id>/stream", runs.RunStream.as_view(), name="run-stream"),
    path("v1/runs/<uuid:id>/cancel", runs.RunCancel.as_view(), name="run-cancel"),
    path("v1/runs/<uuid:id>/decide", runs.RunDecide.as_view(), name="run-decide"),
    path("v1/violations", audit.Violations.as_view(), name="violations"),
    path("v1/violations.csv", audit.ViolationsCsv.as_view(), name="violations-csv"),
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    path("docs/", SpectacularSwaggerView.as_view(url_name="schema"), name="docs"),
]
