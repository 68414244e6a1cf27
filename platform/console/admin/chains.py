"""An agent's three chains and its tools, as rows that can be dragged."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.admin import TabularInline
from unfold.forms import PaginationInlineFormSet

from agents.models import AgentTool, ChainEntry, Tool
from console.admin.pages import without_links
from console.guardrail_kinds import kind_title, kinds_for
from processors.models import Processor


class LabelledFormSet(PaginationInlineFormSet):
    """Rows of a table whose fields have no visible label of their own: each is named for those who can't see the heading."""

    def add_fields(self, form: Any, index: int | None) -> None:
        super().add_fields(form, index)
        for field in form.fields.values():
            if not field.widget.is_hidden:
                inner = getattr(field.widget, "widget", field.widget)
                inner.attrs["aria-label"] = str(field.label)


class OrderedFormSet(LabelledFormSet):
    """Rows keep the order in which they stand on the screen; a new row comes last until it is dragged."""

    stage = ""

    @classmethod
    def get_default_prefix(cls) -> str:
        return f"chain_{cls.stage}" if cls.stage else super().get_default_prefix()

    def _construct_form(self, i: int, **kwargs: Any) -> Any:
        form = super()._construct_form(i, **kwargs)
        if self.stage:
            form.instance.stage = self.stage
        return form

    def add_fields(self, form: Any, index: int | None) -> None:
        super().add_fields(form, index)
        choices = getattr(self, "shared_choices", None)
        for name in ("processor", "tool"):
            if choices is not None and name in form.fields:
                form.fields[name].choices = choices  # one query for all rows instead of one for each

    def clean(self) -> None:
        super().clean()
        kept = [form for form in self.forms if form.has_changed() or form.instance.pk]
        kept = [form for form in kept if not (self.can_delete and self._should_delete_form(form))]
        last = max((form.cleaned_data.get("position") or 0 for form in kept if form.instance.pk), default=-1)
        seen = set()
        for form in kept:
            if form.instance.pk is None:
                last += 1
                form.instance.position = last
                form.cleaned_data["position"] = last
            chosen = form.cleaned_data.get("processor") or form.cleaned_data.get("tool")
            if chosen is not None and chosen in seen:
                raise forms.ValidationError(
                    _("“%(name)s” is there twice; remove one of the two rows.") % {"name": chosen}
                )
            seen.add(chosen)


class OrderedInline(TabularInline):
    extra = 0
    ordering_field = "position"
    hide_ordering_field = True
    ordering = ("position", "id")
    hide_title = True

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        formset = super().get_formset(request, obj, **kwargs)
        formset.shared_choices = self.shared_choices()
        return formset

    def shared_choices(self) -> list[tuple[Any, str]]:
        raise NotImplementedError

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        return without_links(field)


class ChainInline(OrderedInline):
    """One chain; `stage` says which."""

    model = ChainEntry
    stage = ""
    fields = ("processor", "enabled", "position")
    verbose_name = _("guardrail")

    def get_queryset(self, request: HttpRequest) -> QuerySet[ChainEntry]:
        return super().get_queryset(request).filter(stage=self.stage).select_related("processor")

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        kwargs["formset"] = type("StageFormSet", (OrderedFormSet,), {"stage": self.stage})
        return super().get_formset(request, obj, **kwargs)

    def shared_choices(self) -> list[tuple[Any, str]]:
        rows = (
            Processor.objects.filter(kind__in=kinds_for(self.stage))
            .order_by("name")
            .values_list("pk", "name", "kind")
        )
        broken = (
            Processor.objects.filter(entries__stage=self.stage)
            .exclude(kind__in=kinds_for(self.stage))
            .distinct()
        )
        choices = [(pk, f"{name} · {kind_title(kind)}") for pk, name, kind in rows]
        choices += [(one.pk, f"{one.name} · {kind_title(one.kind)}") for one in broken]
        return [("", str(_("Choose a guardrail"))), *choices]


class InputChain(ChainInline):
    stage = ChainEntry.Stage.INPUT
    verbose_name_plural = _("Guardrails on what people write")


class OutputChain(ChainInline):
    stage = ChainEntry.Stage.OUTPUT
    verbose_name_plural = _("Guardrails on what the agent answers")


class ErrorChain(ChainInline):
    stage = ChainEntry.Stage.ERROR
    verbose_name_plural = _("When the provider fails")


class ToolInline(OrderedInline):
    """The agent's tools."""

    model = AgentTool
    formset = OrderedFormSet
    fields = ("tool", "position")
    verbose_name = _("tool")
    verbose_name_plural = _("Tools it may use")

    def shared_choices(self) -> list[tuple[Any, str]]:
        rows = Tool.objects.order_by("name").values_list("pk", "name")
        return [("", str(_("Choose a tool"))), *rows]
