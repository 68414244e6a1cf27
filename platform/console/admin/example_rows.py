"""A guardrail's saved examples as rows of its form. Who may change the guardrail may change its examples."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.admin import TabularInline
from unfold.widgets import UnfoldAdminTextareaWidget

from console.admin.chains import LabelledFormSet
from console.models import Example


class ExampleRows(TabularInline):
    model = Example
    formset = LabelledFormSet
    extra = 0
    hide_title = True
    fields = ("text", "used_as", "expected")
    verbose_name = _("example")
    verbose_name_plural = _("Saved examples")

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "text":
            kwargs["widget"] = UnfoldAdminTextareaWidget({"rows": 2})
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and db_field.name == "text":
            field.strip = False
        return field

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.has_perm("processors.view_processor"))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.has_perm("processors.change_processor"))

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_change_permission(request, obj)
