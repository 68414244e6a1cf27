"""From the type of a setting to a form field: a registry, so that the form code knows no types.

A later registration wins, so an installation may add or replace one:

    fields.register(lambda node: node.schema.get("format") == "color", lambda node: ColourField(...))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _
from unfold import widgets

from console.schema_nodes import Node
from console.schema_widgets import LinesTextarea, PatternInput, SecretInput

Matches = Callable[[Node], bool]
Build = Callable[[Node], forms.Field]

LONG_TEXT = 200


class FieldRegistry:
    """Finds the form field for a node; the last registered rule that matches wins."""

    def __init__(self) -> None:
        self._rules: list[tuple[Matches, Build]] = []

    def register(self, matches: Matches, build: Build) -> None:
        self._rules.append((matches, build))

    def field_for(self, node: Node) -> forms.Field:
        """The form field for a node, with its label, help text, default and data attributes."""
        for matches, build in reversed(self._rules):
            if matches(node):
                field = build(node)
                break
        else:
            field = UnknownField(disabled=True)
        field.label, field.help_text = node.title, _with_limits(node)
        if field.initial is None and node.default is not None:
            field.initial = node.default
        if condition := node.schema.get("x-show-if"):
            field.widget.attrs["data-show-if"] = _condition_text(condition)
        return field


class LinesField(forms.Field):
    """A list, one entry per line. Blanks inside a line are kept: a pattern may begin with one."""

    def __init__(self, *, number: type[int] | type[float] | None = None, **options: Any) -> None:
        self.number = number
        super().__init__(widget=LinesTextarea(), **options)

    def to_python(self, value: Any) -> list[Any]:
        if isinstance(value, list):
            return value
        lines = [line for line in str(value or "").replace("\r\n", "\n").split("\n") if line.strip()]
        if self.number is None:
            return lines
        try:
            return [self.number(line) for line in lines]
        except ValueError:
            raise forms.ValidationError(_("Write one number per line.")) from None

    def has_changed(self, initial: Any, data: Any) -> bool:
        return list(initial or ()) != self.to_python(data)


class SecretField(forms.CharField):
    """A secret: never shown again; left empty it keeps what is stored."""

    def __init__(self, **options: Any) -> None:
        super().__init__(widget=SecretInput(), strip=False, **options)


class UnknownField(forms.Field):
    """A setting that no rule can draw. It is shown, kept as it is, and never changed by the form."""

    widget = widgets.UnfoldAdminTextInputWidget
    keeps_stored_value = True


class TypedSelectField(forms.TypedChoiceField):
    """A select whose values keep their JSON type (number, boolean or text)."""

    def __init__(self, node: Node) -> None:
        values = {str(value): value for value in node.choices}
        choices = [(str(value), node.label_of(value)) for value in node.choices]
        if node.nullable:
            choices.insert(0, ("", str(_("nothing"))))
        super().__init__(
            choices=choices, coerce=lambda text: values[text], empty_value=None,
            required=not node.nullable and node.default is None, widget=widgets.UnfoldAdminSelectWidget(),
        )  # fmt: skip


def _text(node: Node) -> forms.Field:
    long = node.schema.get("x-widget") == "textarea" or node.schema.get("maxLength", 0) > LONG_TEXT
    return forms.CharField(
        strip=False, max_length=node.schema.get("maxLength"), required=_needed(node),
        widget=widgets.UnfoldAdminTextareaWidget({"rows": 4}) if long else widgets.UnfoldAdminTextInputWidget(),
        empty_value=None if node.nullable else "",
    )  # fmt: skip


def _pattern(node: Node) -> forms.Field:
    return forms.CharField(strip=False, required=_needed(node), widget=PatternInput(), empty_value=None if node.nullable else "")  # fmt: skip


def _secret(node: Node) -> forms.Field:
    return SecretField(required=False)


def _integer(node: Node) -> forms.Field:
    limits = _limits(node)
    widget = widgets.UnfoldAdminIntegerFieldWidget(_number_attrs(node, "1"))
    return forms.IntegerField(required=_needed(node), widget=widget, **limits)


def _number(node: Node) -> forms.Field:
    limits = _limits(node)
    widget = widgets.UnfoldAdminDecimalFieldWidget(_number_attrs(node, "any"))
    return forms.FloatField(required=_needed(node), widget=widget, **limits)


def _boolean(node: Node) -> forms.Field:
    if node.nullable:
        return forms.NullBooleanField(required=False, widget=widgets.UnfoldAdminNullBooleanSelectWidget())
    return forms.BooleanField(required=False, widget=widgets.UnfoldBooleanSwitchWidget())


def _checkboxes(node: Node) -> forms.Field:
    items = node.items
    return forms.MultipleChoiceField(
        choices=[(str(value), items.label_of(value)) for value in items.choices], required=bool(node.schema.get("minItems")),
        widget=widgets.UnfoldAdminCheckboxSelectMultipleWidget({"data-columns": "1"}),
    )  # fmt: skip


def _lines(node: Node) -> forms.Field:
    number = {"integer": int, "number": float}.get(node.items.type)
    return LinesField(number=number, required=bool(node.schema.get("minItems")))


def _needed(node: Node) -> bool:
    return node.required and not node.nullable


def _limits(node: Node) -> dict[str, Any]:
    schema, step = node.schema, 1 if node.type == "integer" else 0
    low = schema.get("minimum", schema["exclusiveMinimum"] + step if "exclusiveMinimum" in schema else None)
    high = schema.get("maximum", schema["exclusiveMaximum"] - step if "exclusiveMaximum" in schema else None)
    return {"min_value": low, "max_value": high}


def _number_attrs(node: Node, step: str) -> dict[str, str]:
    return {"step": step, "inputmode": "decimal" if step == "any" else "numeric"}


def _with_limits(node: Node) -> str:
    """The author's help text, with the limits that the schema states added in words."""
    limits = _limits(node) if node.type in {"integer", "number"} else {}
    low, high = limits.get("min_value"), limits.get("max_value")
    if low is not None and high is not None:
        extra = _("From %(low)s to %(high)s.") % {"low": f"{low:g}", "high": f"{high:g}"}
    elif low is not None:
        extra = _("At least %(low)s.") % {"low": f"{low:g}"}
    elif high is not None:
        extra = _("At most %(high)s.") % {"high": f"{high:g}"}
    else:
        return node.help
    return f"{node.help} {extra}".strip()


def _condition_text(condition: dict[str, Any]) -> str:
    """`{"strategy": ["redact", "mask"]}` as `strategy=redact|mask`, which the page's script reads."""
    parts = []
    for name, values in condition.items():
        wanted = values if isinstance(values, list) else [values]
        parts.append(f"{name}={'|'.join(str(value) for value in wanted)}")
    return "&".join(parts)


fields = FieldRegistry()
fields.register(lambda node: node.type == "string", _text)
fields.register(lambda node: node.schema.get("x-widget") == "pattern" or node.schema.get("format") in {"regex", "pattern"}, _pattern)  # fmt: skip
fields.register(lambda node: node.type == "integer", _integer)
fields.register(lambda node: node.type == "number", _number)
fields.register(lambda node: node.type == "boolean", _boolean)
fields.register(lambda node: node.type == "enum", TypedSelectField)
fields.register(
    lambda node: node.type == "array" and node.items.type in {"string", "integer", "number"}, _lines
)
fields.register(lambda node: node.type == "array" and node.items.type == "enum", _checkboxes)
fields.register(lambda node: bool(node.schema.get("writeOnly")) or node.schema.get("format") == "password" or node.schema.get("x-widget") == "secret", _secret)  # fmt: skip
