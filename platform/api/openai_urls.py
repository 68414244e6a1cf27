"""Addresses of the OpenAI-compatible API."""

from __future__ import annotations

from django.urls import path

from api import openai

urlpatterns = [
    path("chat/completions", openai.chat_completions),
    path("models", openai.models),
]
