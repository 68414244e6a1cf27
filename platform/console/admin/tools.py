"""Tools that agents can be given."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from unfold.decorators import display
from unfold.widgets import UnfoldAdminSelectWidget

from agents.models import Tool
from agents.tools import tool_kinds
from audit.changes import change_record
from console.admin.pages import ConsoleAdmin
from console.site import site

FIELDS = ("slug", "name", "kind", "description", "mode", "needs_approval", "is_idempotent", "time_limit")


class ToolForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Tool
        fields = FIELDS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "kind" in self.fields:
            choices = [("", _("Choose what it does")), *((kind.slug, kind.title) for kind in tool_kinds())]
            if self.instance.kind and self.instance.kind not in dict(choices):
                choices.append(
                    (
                        self.instance.kind,
                        _("broken: “%(slug)s” is not installed") % {"slug": self.instance.kind},
                    )
                )
            self.fields["kind"] = forms.ChoiceField(
                choices=choices, label=_("what it does"), widget=UnfoldAdminSelectWidget()
            )
        if "description" in self.fields:
            self.fields["description"].help_text = _("The model reads this to decide when to use the tool.")
        if "needs_approval" in self.fields:
            self.fields["needs_approval"].help_text = _(
                "The answer waits until somebody with that right approves or declines the call."
            )
        if "is_idempotent" in self.fields:
            self.fields["is_idempotent"].help_text = _("Only such a tool is started again after a crash.")


@admin.register(Tool, site=site)
class ToolAdmin(ConsoleAdmin):
    form = ToolForm
    fields = FIELDS
    list_display = ("name", "slug", "mode_label", "needs_approval", "reach")
    list_filter = ("mode", "needs_approval")
    search_fields = ("name", "slug")
    actions = None

    def get_queryset(self, request: HttpRequest) -> QuerySet[Tool]:
        return super().get_queryset(request).annotate(agent_count=Count("agent_tools"))

    def get_readonly_fields(self, request: HttpRequest, obj: Tool | None = None) -> list[str]:
        return ["slug"] if obj is not None else []

    @display(description=_("where it runs"), ordering="mode")
    def mode_label(self, obj: Tool) -> str:
        return obj.get_mode_display()

    @display(description=_("used by"), ordering="agent_count")
    def reach(self, obj: Any) -> str:
        return ngettext("%(count)d agent", "%(count)d agents", obj.agent_count) % {"count": obj.agent_count}

    def save_model(self, request: HttpRequest, obj: Tool, form: Any, change: bool) -> None:
        before = _facts(Tool.objects.get(pk=obj.pk)) if change else None
        super().save_model(request, obj, form, change)
        change_record(
            actor=request.user,
            action="changed" if change else "made",
            obj=obj,
            before=before,
            after=_facts(obj),
        )

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        obj = self.object_for_view(request, object_id)
        agents = sorted({str(use.agent) for use in obj.agent_tools.select_related("agent")[:20]})
        if agents:
            messages.error(request, _("“%(tool)s” can't be deleted: these agents use it: %(agents)s. Take it away from them first.") % {"tool": obj, "agents": ", ".join(agents)})  # fmt: skip
            return HttpResponseRedirect(reverse("admin:agents_tool_change", args=[obj.pk]))
        return super().delete_view(request, object_id, extra_context)

    def delete_model(self, request: HttpRequest, obj: Tool) -> None:
        change_record(actor=request.user, action="deleted", obj=obj, before=_facts(obj), after=None)
        super().delete_model(request, obj)


def _facts(tool: Tool) -> dict[str, Any]:
    return {name: getattr(tool, name) for name in FIELDS}
