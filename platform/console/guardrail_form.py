"""The form of a guardrail: its own fields, then the settings of its kind, drawn from the kind's Options."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db import models
from django.utils.translation import gettext_lazy as _
from pydantic import ValidationError

from console.schema_errors import show_errors, show_message
from console.schema_fields import SecretField, UnknownField
from console.schema_nodes import Node, option_nodes
from console.schema_rows import field_for
from processors.engine.errors import ConfigError
from processors.engine.ports import BuildContext
from processors.engine.registry import ProcessorKind, registry
from processors.models import Processor


class UnaskedModel:
    """Stands for whatever model a guardrail names while its settings are checked; it is never asked anything."""

    def __init__(self, model_id: str) -> None:
        self.id = model_id

    def stream(self, request: Any, *, signal: Any = None) -> Any:
        raise ConfigError("A guardrail asked its model for something while its settings were being checked.")


PREFIX = "option-"
"""Begins the names of the fields that hold a kind's settings."""


class GuardrailForm(forms.ModelForm):  # type: ignore[type-arg]
    """`kind` and `nodes` are set by `guardrail_form`; a kind that is not installed has neither nodes nor checks."""

    kind: ProcessorKind | None = None
    kind_slug = ""
    nodes: tuple[Node, ...] = ()
    expected_revision = forms.IntegerField(required=False, widget=forms.HiddenInput())

    class Meta:
        model = Processor
        fields = ("slug", "name", "on_error", "public_message", "severity", "mandatory", "note")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        stored = self.instance.options if self.instance.pk and isinstance(self.instance.options, dict) else {}
        for node in self.nodes:
            field = self.fields[f"{PREFIX}{node.name}"]
            if node.name in stored:
                field.initial = stored[node.name]
                self.initial[f"{PREFIX}{node.name}"] = stored[node.name]
            if isinstance(field, SecretField):
                field.initial = None
                self.initial.pop(f"{PREFIX}{node.name}", None)
                field.widget.is_set = bool(stored.get(node.name))
        if "note" in self.fields:
            self.fields["note"].widget.attrs["rows"] = 3
        if "expected_revision" in self.fields:
            self.fields["expected_revision"].initial = self.instance.revision
        if "mandatory" in self.fields:
            self.fields["mandatory"].choices = _places_of(self.kind)  # type: ignore[attr-defined]
        if self.kind is not None and self.kind.redacts and "on_error" in self.fields:
            field = self.fields["on_error"]
            field.choices = [(Processor.OnError.BLOCK, Processor.OnError.BLOCK.label)]  # type: ignore[attr-defined]
            field.help_text = _(
                "This kind changes texts, so it can't let a text pass that it could not check."
            )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        self._check_on_error(cleaned)
        if self.kind is None:
            self.option_values = dict(self.instance.options or {})
            return cleaned
        self.option_values = self._collected(cleaned)
        if not any(name.startswith(PREFIX) for name in self.errors):
            self._check_options(self.kind)
        return cleaned

    def _collected(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        """The settings as they will be stored. An empty secret and a setting no form can show keep their value."""
        stored = self.instance.options if isinstance(self.instance.options, dict) else {}
        values: dict[str, Any] = {}
        for node in self.nodes:
            name = f"{PREFIX}{node.name}"
            field, value = self.fields[name], cleaned.get(name)
            if (isinstance(field, SecretField) and not value) or isinstance(field, UnknownField):
                if node.name in stored:
                    values[node.name] = stored[node.name]
                continue
            if value is None and not node.nullable:
                continue  # left empty: the kind's own default holds
            values[node.name] = value
        return values

    def _check_options(self, kind: ProcessorKind) -> None:
        try:
            options = kind.options.model_validate(self.option_values)
            kind.factory(self.instance.slug or kind.slug, options, BuildContext(models=UnaskedModel))
        except ValidationError as problem:
            show_errors(self, self.nodes, problem, prefix=PREFIX)
        except ConfigError as problem:
            show_message(self, self.nodes, str(problem), prefix=PREFIX)
        except ValueError as problem:
            show_message(self, self.nodes, str(problem), prefix=PREFIX)

    def _check_on_error(self, cleaned: dict[str, Any]) -> None:
        if self.kind is not None and self.kind.redacts and cleaned.get("on_error") == Processor.OnError.ALLOW:
            self.add_error("on_error", _("A guardrail that changes texts must stop the reply when it fails."))

    def clean_expected_revision(self) -> int | None:
        expected: int | None = self.cleaned_data["expected_revision"]
        if self.instance.pk and expected is not None:
            current = (
                Processor.objects.select_for_update()
                .values_list("revision", flat=True)
                .get(pk=self.instance.pk)
            )
            if current != expected:
                raise forms.ValidationError(_("Somebody else saved this guardrail while you were editing, so nothing was saved. Open it in a second tab, compare, and enter your change again there."))  # fmt: skip
        return expected

    def add_error(self, field: str | None, error: Any) -> None:
        # a hidden field's error would be shown nowhere
        super().add_error(None if field == "expected_revision" else field, error)


def guardrail_form(kind_slug: str) -> type[GuardrailForm]:
    """The form class for a kind, installed or not."""
    kind = registry.get(kind_slug) if kind_slug in registry else None
    nodes = tuple(option_nodes(kind.options)) if kind is not None else ()
    attributes: dict[str, Any] = {"kind": kind, "kind_slug": kind_slug, "nodes": nodes}
    for node in nodes:
        field = field_for(node)
        attributes[f"{PREFIX}{node.name}"] = field
    return type("KindForm", (GuardrailForm,), attributes)


def option_fieldsets(kind_slug: str) -> list[tuple[Any, dict[str, Any]]]:
    """The settings in the groups that the kind's author named; those marked as advanced come last, closed."""
    if kind_slug not in registry:
        return []
    main = _("What it looks for and does")
    groups: dict[Any, list[str]] = {main: []}  # what the author put under no heading comes first
    advanced: list[str] = []
    for node in option_nodes(registry.get(kind_slug).options):
        if node.schema.get("x-advanced"):
            advanced.append(f"{PREFIX}{node.name}")
        else:
            groups.setdefault(node.schema.get("x-group") or main, []).append(f"{PREFIX}{node.name}")
    sets: list[tuple[Any, dict[str, Any]]] = [
        (title, {"fields": names}) for title, names in groups.items() if names
    ]
    if advanced:
        sets.append((_("More settings"), {"fields": advanced, "classes": ["collapse"]}))
    return sets


def _places_of(kind: ProcessorKind | None) -> list[tuple[str, Any]]:
    """Where a kind can be made to run for everybody: only in the chains that it can stand in."""
    choices: list[tuple[str, Any]] = list(Processor.Mandatory.choices)
    if kind is None:
        return choices
    stages = kind.stages
    fits = {
        "": True,
        "input": "input" in stages,
        "output": "output" in stages,
        "both": {"input", "output"} <= set(stages),
    }
    return [(value, label) for value, label in choices if fits[value]]


def used_by(processor: Processor) -> models.QuerySet[Any]:
    """The chain entries that use a guardrail, with their agents."""
    return processor.entries.select_related("agent").order_by("agent__name", "stage")
