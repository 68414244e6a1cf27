"""Addresses that OpenAI's clients expect; `base_url` is …/v1."""

from __future__ import annotations

from django.urls import path

from api import openai_views as views

urlpatterns = [
    path("models", views.Models.as_view(), name="openai-models"),
    path("models/<slug:slug>", views.Model.as_view(), name="openai-model"),
    path("chat/completions", views.ChatCompletions.as_view(), name="openai-chat-completions"),
]
