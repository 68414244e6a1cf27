"""The chat's pages."""

from __future__ import annotations

from django.urls import path
from django.views.generic import RedirectView

from chat import views

app_name = "chat"
urlpatterns = [
    path("", views.page, name="page"),
    path("favicon.ico", RedirectView.as_view(url="/static/chat/icon.svg"), name="icon"),
]
