"""Agents: the draft's form, what will really run, and the way from draft to live."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from agents.models import Agent
from agents.snapshot import agent_snapshot
from audit.changes import change_record
from console import agent_exchange, agent_pages, model_offers, playground, publish_page
from console.admin.chains import ErrorChain, InputChain, OutputChain, ToolInline
from console.admin.pages import ConsoleAdmin, without_links
from console.agent_draft import Draft, draft_of
from console.agent_form import AgentForm, ModelInput
from console.effective_chain import effective_chains
from console.model_offers import known_models
from console.site import site


@admin.register(Agent, site=site)
class AgentAdmin(ConsoleAdmin):
    """The draft is saved here; only `Publish` makes it live."""

    form = AgentForm
    inlines = (InputChain, OutputChain, ErrorChain, ToolInline)
    list_display = ("name", "model", "state", "access_label", "is_active", "updated_at")
    list_select_related = ("published",)
    list_filter = ("is_active", "access")
    search_fields = ("name", "slug", "model")
    change_form_template = "admin/console/agent_form.html"
    change_list_template = "admin/console/agent_list.html"
    actions = None
    fieldsets = (
        (None, {"fields": ["name", "slug", "description", "instructions", "is_active", "expected_revision"]}),
        (_("Model"), {"fields": ["model", "credential", "fallbacks", "temperature", "max_output_tokens"]}),
        (_("Who may chat"), {"fields": ["access", "allowed_groups", "when_busy"]}),
        (
            _("Limits"),
            {
                "fields": [
                    "history_messages",
                    "max_steps",
                    "max_total_tokens",
                    "max_seconds",
                    "max_processor_retries",
                ],
                "classes": ["collapse"],
            },
        ),
    )

    @display(description=_("state"), label={"live": "success", "draft": "warning", "off": "danger"})
    def state(self, obj: Agent) -> tuple[str, str]:
        if not obj.is_active:
            return "off", str(_("switched off"))
        if obj.published is None:
            return "draft", str(_("never published"))
        return "live", str(_("live: version %(number)s") % {"number": obj.published.number})

    @display(description=_("who may chat"), ordering="access")
    def access_label(self, obj: Agent) -> str:
        return obj.get_access_display()

    # --- the form

    def get_readonly_fields(self, request: HttpRequest, obj: Agent | None = None) -> list[str]:
        return ["slug"] if obj is not None else []

    def get_prepopulated_fields(self, request: HttpRequest, obj: Agent | None = None) -> dict[str, Any]:
        return {} if obj is not None or not self.has_add_permission(request) else {"slug": ("name",)}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Agent]:
        return super().get_queryset(request).select_related("published")

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        return without_links(super().formfield_for_dbfield(db_field, request, **kwargs))

    def get_form(
        self, request: HttpRequest, obj: Agent | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        field = form.base_fields.get("model")
        if field is not None and isinstance(field.widget, ModelInput):
            field.widget.models = known_models()
            field.widget.test_url = reverse("admin:agents_agent_test_model")
            field.widget.models_url = reverse("admin:agents_agent_models")
        return form

    def render_change_form(self, request: HttpRequest, context: Any, add: bool = False, change: bool = False, form_url: str = "", obj: Any = None) -> HttpResponse:  # fmt: skip
        if obj is not None:
            draft: Draft = draft_of(obj)
            context.update(
                draft=draft, chains=effective_chains(obj), can_publish=request.user.has_perm("agents.publish_agent"),
                can_edit=self.has_change_permission(request, obj),
            )  # fmt: skip
        context["show_save_and_add_another"] = False
        return super().render_change_form(request, context, add, change, form_url, obj)

    # --- saving: one transaction, one revision, one row in the changes

    def save_model(self, request: HttpRequest, obj: Agent, form: Any, change: bool) -> None:
        form.before = agent_snapshot(Agent.objects.get(pk=obj.pk)) if change else None
        if change:
            obj.revision += 1
        super().save_model(request, obj, form, change)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        after = agent_snapshot(Agent.objects.get(pk=form.instance.pk))
        if after != form.before:
            change_record(
                actor=request.user, action="changed" if change else "made", obj=form.instance, before=form.before, after=after,
            )  # fmt: skip

    def delete_model(self, request: HttpRequest, obj: Agent) -> None:
        change_record(actor=request.user, action="deleted", obj=obj, before=agent_snapshot(obj), after=None)
        Agent.objects.filter(pk=obj.pk).update(published=None)
        obj.published = None
        super().delete_model(request, obj)

    # --- pages of our own

    def get_urls(self) -> list[URLPattern]:
        pages: list[tuple[str, str, Any]] = [
            ("test-model/", "test_model", model_offers.test_model),
            ("models/", "models", model_offers.offered_models),
            ("import/", "import", agent_exchange.import_page),
            ("start/", "start", agent_exchange.templates_page),
            ("<path:object_id>/publish/", "publish", publish_page.publish_page),
            ("<path:object_id>/versions/", "versions", agent_pages.versions_page),
            ("<path:object_id>/versions/<int:number>/", "version", agent_pages.version_page),
            ("<path:object_id>/clone/", "clone", agent_exchange.clone_page),
            ("<path:object_id>/export/", "export", agent_exchange.export_file),
            ("<path:object_id>/playground/", "playground", playground.playground_page),
            ("<path:object_id>/playground/walk/", "walk", playground.walk),
            ("<path:object_id>/playground/chat/", "playground_chat", playground.chat),
        ]
        urls = [path(route, self._page(view), name=f"agents_agent_{name}") for route, name, view in pages]
        return [*urls, *super().get_urls()]

    def _page(self, view: Any) -> Any:
        def page(request: HttpRequest, **kwargs: Any) -> HttpResponse:
            response: HttpResponse = view(self, request, **kwargs)
            return response

        return self.admin_site.admin_view(page)
