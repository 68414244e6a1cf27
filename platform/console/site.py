"""The console's admin site. Every console page hangs on it."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils.translation import gettext_lazy as _
from unfold.sites import UnfoldAdminSite

from console.navigation import navigation


class ConsoleSite(UnfoldAdminSite):
    """unfold's site with our sidebar and a home page that says what happened today."""

    index_title = _("Home")
    index_template = "admin/console/home.html"

    def get_sidebar_list(self, request: HttpRequest) -> list[dict[str, Any]]:
        return [
            {**group, "items": self._get_navigation_items(request, group["items"])}
            for group in navigation(request)
        ]

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        from console.home import home_context  # the models are not loaded yet when the site is made

        page: TemplateResponse = super().index(request, {**home_context(request), **(extra_context or {})})
        return page


site = ConsoleSite(name="admin")
