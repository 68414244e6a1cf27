"""Guardrails: choose a kind, set it up in a form drawn from its options, try it, see which agents it runs for."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import Count, Q, QuerySet
from django.forms import BaseForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from unfold.decorators import display

from console.admin.example_rows import ExampleRows
from console.admin.pages import ConsoleAdmin
from console.guardrail_form import GuardrailForm, guardrail_form, option_fieldsets, used_by
from console.guardrail_kinds import kind_cards, kind_title
from console.site import site
from console.try_it import try_it_view
from processors.engine.registry import registry
from processors.models import Processor
from processors.services import processor_delete, processor_save

OWN_FIELDS = ["name", "slug", "severity", "public_message"]
MANDATORY = "processors.manage_mandatory"


class KindFilter(admin.SimpleListFilter):
    """By kind; only kinds that are in use."""

    title = _("kind")
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        slugs = Processor.objects.order_by("kind").values_list("kind", flat=True).distinct()[:100]
        return [(slug, kind_title(slug)) for slug in slugs]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Processor]) -> QuerySet[Processor]:
        return queryset.filter(kind=self.value()) if self.value() else queryset


@admin.register(Processor, site=site)
class GuardrailAdmin(ConsoleAdmin):
    """A skin over processors.services; `?kind=` says which kind a new guardrail is of."""

    list_display = ("name", "kind_name", "where", "reach", "severity_label", "updated_at")
    list_filter = (KindFilter, "mandatory", "severity")
    search_fields = ("name", "slug")
    change_form_template = "admin/console/guardrail_form.html"
    inlines = (ExampleRows,)
    actions = None

    # --- the list

    def get_queryset(self, request: HttpRequest) -> QuerySet[Processor]:
        return (
            super().get_queryset(request)
            .annotate(agent_count=Count("entries__agent", filter=Q(entries__enabled=True), distinct=True))
        )  # fmt: skip

    @display(description=_("kind"), ordering="kind")
    def kind_name(self, obj: Processor) -> str:
        return kind_title(obj.kind)

    @display(description=_("where it runs"), ordering="mandatory")
    def where(self, obj: Processor) -> str:
        return obj.get_mandatory_display() or str(Processor.Mandatory.NO.label)

    @display(description=_("runs for"), ordering="agent_count")
    def reach(self, obj: Any) -> str:
        if obj.mandatory:
            return str(_("every agent"))
        return ngettext("%(count)d agent", "%(count)d agents", obj.agent_count) % {"count": obj.agent_count}

    @display(
        description=_("severity"),
        ordering="severity",
        label={"low": "info", "medium": "warning", "high": "danger"},
    )
    def severity_label(self, obj: Processor) -> tuple[str, str]:
        return obj.severity, obj.get_severity_display()

    # --- the form

    def kind_of(self, request: HttpRequest, obj: Processor | None) -> str:
        return obj.kind if obj is not None else request.GET.get("kind", "")

    def get_form(
        self, request: HttpRequest, obj: Processor | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        kwargs["form"] = guardrail_form(self.kind_of(request, obj))
        return super().get_form(request, obj, change, **kwargs)

    def get_fieldsets(self, request: HttpRequest, obj: Processor | None = None) -> Any:
        sets: list[Any] = [(None, {"fields": [*OWN_FIELDS, "expected_revision"]})]
        if self.has_change_permission(request, obj) or obj is None:
            sets += option_fieldsets(self.kind_of(request, obj))
        sets.append((_("When it runs and when it fails"), {"fields": ["mandatory", "on_error", "note"]}))
        return sets

    def get_readonly_fields(self, request: HttpRequest, obj: Processor | None = None) -> list[str]:
        readonly = ["slug"] if obj is not None else []
        if not request.user.has_perm(MANDATORY):
            readonly.append("mandatory")
        return readonly

    def get_prepopulated_fields(self, request: HttpRequest, obj: Processor | None = None) -> dict[str, Any]:
        return {} if obj is not None or not self.has_add_permission(request) else {"slug": ("name",)}

    def has_change_permission(self, request: HttpRequest, obj: Processor | None = None) -> bool:
        allowed = bool(super().has_change_permission(request, obj))
        return allowed and (obj is None or not obj.mandatory or request.user.has_perm(MANDATORY))

    def has_delete_permission(self, request: HttpRequest, obj: Processor | None = None) -> bool:
        allowed = bool(super().has_delete_permission(request, obj))
        return allowed and (obj is None or not obj.mandatory or request.user.has_perm(MANDATORY))

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        if request.GET.get("kind", "") not in registry:
            return self.choose_kind(request)
        return super().add_view(request, form_url, extra_context)

    def choose_kind(self, request: HttpRequest) -> HttpResponse:
        """The first step of a new guardrail: kinds as cards, grouped by what they are for."""
        if not self.has_add_permission(request):
            return HttpResponseRedirect(reverse("admin:processors_processor_changelist"))
        asked = request.GET.get("kind")
        if asked:
            messages.error(
                request,
                _("There is no kind of guardrail called “%(kind)s”. Choose one of these.") % {"kind": asked},
            )
        context = self.page_context(
            request, title=_("What should the new guardrail do?"), groups=kind_cards()
        )
        return TemplateResponse(request, "admin/console/guardrail_kinds.html", context)

    def render_change_form(self, request: HttpRequest, context: Any, add: bool = False, change: bool = False, form_url: str = "", obj: Any = None) -> HttpResponse:  # fmt: skip
        slug = self.kind_of(request, obj)
        kind = registry.get(slug) if slug in registry else None
        context.update(
            kind=kind, kind_slug=slug, kind_missing=kind is None, stored=(obj.options if obj is not None else {}),
            users=list(used_by(obj)[:50]) if obj is not None else [],
            try_url=reverse("admin:processors_processor_try"),
            show_save_and_add_another=False,
        )  # fmt: skip
        return super().render_change_form(request, context, add, change, form_url, obj)

    # --- saving and deleting: the services do it

    def save_form(self, request: HttpRequest, form: Any, change: bool) -> Processor:
        obj: Processor = form.save(commit=False)
        if not change:
            obj.kind = form.kind_slug
        return obj

    def save_model(self, request: HttpRequest, obj: Processor, form: GuardrailForm, change: bool) -> None:
        data = {name: getattr(obj, name) for name in ("slug", "name", "kind", "on_error", "public_message", "severity", "mandatory", "note")}  # fmt: skip
        data["options"] = form.option_values
        saved = processor_save(
            actor=request.user, processor=None if not change else Processor.objects.get(pk=obj.pk), data=data,
            expected_revision=form.cleaned_data.get("expected_revision") if change else None,
        )  # fmt: skip
        obj.pk, obj.revision = saved.pk, saved.revision
        obj._state.adding = False

    def save_related(self, request: HttpRequest, form: BaseForm, formsets: Any, change: bool) -> None:
        """The examples; the guardrail itself was saved whole by its service."""
        for formset in formsets:
            self.save_formset(request, form, formset, change)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        obj = self.object_for_view(request, object_id)
        users = list(used_by(obj)[:20])
        if users:
            names = ", ".join(sorted({str(entry.agent) for entry in users}))
            messages.error(request, _("“%(guardrail)s” can't be deleted: these agents use it: %(agents)s. Take it out of their chains first.") % {"guardrail": obj, "agents": names})  # fmt: skip
            return HttpResponseRedirect(reverse("admin:processors_processor_change", args=[obj.pk]))
        return super().delete_view(request, object_id, extra_context)

    def delete_model(self, request: HttpRequest, obj: Processor) -> None:
        processor_delete(actor=request.user, processor=obj)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(lambda request: try_it_view(request, self))
        return [path("try/", view, name="processors_processor_try"), *super().get_urls()]
