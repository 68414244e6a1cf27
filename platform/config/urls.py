"""The map of addresses."""

from __future__ import annotations

from django.urls import include, path

from config.metrics import metrics
from console.site import site

urlpatterns = [
    path("admin/", site.urls),
    path("api/", include("api.urls")),
    path("v1/", include("api.openai_urls")),
    path("accounts/", include("django.contrib.auth.urls")),
    path("i18n/", include("django.conf.urls.i18n")),
    path("metrics", metrics, name="metrics"),
    path("", include("chat.urls")),
]
