"""What every page of the console has in common."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from unfold.admin import ModelAdmin


def without_links(field: Any) -> Any:
    """The same form field without the buttons that would open another form on top of this one."""
    widget = getattr(field, "widget", None)
    for button in ("can_add_related", "can_change_related", "can_delete_related", "can_view_related"):
        if hasattr(widget, button):
            setattr(widget, button, False)
    return field


class ConsoleAdmin(ModelAdmin):
    """An editable area. Lists never count all rows of a table for the sake of a number nobody needs."""

    list_per_page = 50
    show_full_result_count = False
    compressed_fields = True
    warn_unsaved_form = True
    list_filter_submit = True

    def page_context(self, request: HttpRequest, obj: Any = None, **extra: Any) -> dict[str, Any]:
        """The context of a page of our own below this area."""
        return {**self.admin_site.each_context(request), "opts": self.opts, "original": obj, "has_view_permission": True, **extra}  # fmt: skip

    def object_for_view(self, request: HttpRequest, object_id: str) -> Any:
        """The object, for somebody who may see it. Raises Http404, PermissionDenied."""
        obj = get_object_or_404(self.get_queryset(request), pk=object_id)
        if not self.has_view_or_change_permission(request, obj):
            raise PermissionDenied
        return obj

    def object_for_change(self, request: HttpRequest, object_id: str) -> Any:
        """The object, for somebody who may change it. Raises Http404, PermissionDenied."""
        obj = get_object_or_404(self.get_queryset(request), pk=object_id)
        if not self.has_change_permission(request, obj):
            raise PermissionDenied
        return obj


class ReadOnlyAdmin(ConsoleAdmin):
    """An area that is only read: nobody adds, changes or deletes here, a superuser neither."""

    actions = None
    warn_unsaved_form = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
