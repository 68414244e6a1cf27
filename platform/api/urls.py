"""Addresses of the REST API and its description."""

from __future__ import annotations

from django.urls import path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from api import streams, views

urlpatterns = [
    path("v1/agents", views.Agents.as_view()),
    path("v1/threads", views.Threads.as_view()),
    path("v1/threads/<uuid:id>", views.ThreadDetail.as_view()),
    path("v1/threads/<uuid:id>/messages", views.Messages.as_view()),
    path("v1/runs", views.Runs.as_view()),
    path("v1/runs/<uuid:id>", views.RunDetail.as_view()),
    path("v1/runs/<uuid:id>/stream", streams.run_stream),
    path("v1/runs/<uuid:id>/cancel", views.RunCancel.as_view()),
    path("v1/runs/<uuid:id>/decide", views.RunDecide.as_view()),
    path("v1/violations", views.Violations.as_view()),
    path("v1/violations.csv", views.ViolationsCsv.as_view()),
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    path("docs/", SpectacularSwaggerView.as_view(url_name="schema"), name="docs"),
]
