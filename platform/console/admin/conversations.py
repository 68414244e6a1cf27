"""Conversations, to be read. Everything in them has passed the output chain."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import FieldTextFilter, RangeDateFilter
from unfold.decorators import display
from unfold.paginator import InfinitePaginator

from console.admin.pages import ReadOnlyAdmin
from console.message_view import readable
from console.site import site
from memory.models import Message, Thread

MESSAGES_SHOWN = 200


@admin.register(Thread, site=site)
class ConversationAdmin(ReadOnlyAdmin):
    list_display = ("heading", "owner", "agent_slug", "created_at", "updated_at")
    list_select_related = ("owner",)
    list_filter = (
        ("agent_slug", FieldTextFilter),
        ("owner__username", FieldTextFilter),
        ("updated_at", RangeDateFilter),
    )
    paginator = InfinitePaginator
    search_fields = ("title",)

    @display(description=_("conversation"))
    def heading(self, obj: Thread) -> str:
        return obj.title or str(_("Conversation without a title"))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Thread]:
        return super().get_queryset(request).select_related("owner")

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        thread = self.object_for_view(request, object_id)
        newest = list(Message.objects.filter(thread=thread).order_by("-position")[: MESSAGES_SHOWN + 1])
        shown = [readable(message) for message in reversed(newest[:MESSAGES_SHOWN])]
        context = self.page_context(request, thread, title=self.heading(thread), thread=thread, shown=shown,
                                    cut=len(newest) > MESSAGES_SHOWN, runs=list(thread.runs.all()[:20]))  # fmt: skip
        return TemplateResponse(request, "admin/console/conversation.html", context)
