"""Changes: who changed what, as sentences."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import FieldTextFilter, RangeDateFilter
from unfold.decorators import display
from unfold.paginator import InfinitePaginator

from audit.models import Change
from console.admin.pages import ReadOnlyAdmin
from console.change_sentences import change_sentences, change_summary
from console.site import site


@admin.register(Change, site=site)
class ChangeAdmin(ReadOnlyAdmin):
    list_display = ("at", "summary", "note_short")
    list_filter = (
        ("object_type", FieldTextFilter),
        ("actor_label", FieldTextFilter),
        ("at", RangeDateFilter),
    )
    paginator = InfinitePaginator
    search_fields = ("object_label",)

    @display(description=_("change"))
    def summary(self, obj: Change) -> str:
        return change_summary(obj)

    @display(description=_("note"))
    def note_short(self, obj: Change) -> str:
        return obj.note if len(obj.note) <= 80 else obj.note[:79] + "…"

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        change = self.object_for_view(request, object_id)
        context = self.page_context(
            request,
            change,
            title=change_summary(change),
            change_row=change,
            sentences=change_sentences(change),
        )
        return TemplateResponse(request, "admin/console/change.html", context)
