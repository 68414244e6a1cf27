"""Nested settings: a group of fields, a list of groups as rows, and a dictionary as rows of name and value.

Each row is a small form drawn by the same registry, so rows may hold rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from console.schema_fields import fields
from console.schema_nodes import Node


class OptionsForm(forms.Form):
    """The fields of one object of settings. `options()` gives its values as they are stored."""

    nodes: Sequence[Node] = ()

    def options(self) -> dict[str, Any]:
        """The cleaned values by setting name. Call after `is_valid()`."""
        return {
            node.name: self.cleaned_data[node.name] for node in self.nodes if node.name in self.cleaned_data
        }


def options_form(nodes: Sequence[Node]) -> type[OptionsForm]:
    """A form class with one field per node."""
    attributes: dict[str, Any] = {"nodes": tuple(nodes)}
    for node in nodes:
        attributes[node.name] = field_for(node)
    return type("RowForm", (OptionsForm,), attributes)


def field_for(node: Node) -> forms.Field:
    """The registry's field, marked so that the page's script finds it by the setting's name."""
    field = fields.field_for(node)
    field.widget.attrs["data-option"] = node.name
    return field


def place_error(
    form: forms.BaseForm, path: Sequence[Any], message: str, *, field_name: str | None = None
) -> None:
    """Show a message at the field that a path such as ("rules", 1, "pattern") names, at the top if there is none."""
    name = field_name or str(path[0])
    field = form.fields.get(name)
    if field is None:
        form.add_error(None, message)
        return
    rest = list(path[1:])
    if rest and isinstance(field.widget, RowsWidget):
        field.widget.pending.append((rest, message))
    if rest and isinstance(rest[0], int):
        message = str(_("Entry %(number)s: %(message)s") % {"number": rest[0] + 1, "message": message})
    form.add_error(name, message)


class RowsWidget(forms.Widget):
    """Draws row forms with buttons to add, remove and move them. single: one group, always there or switched on."""

    template_name = "console/widgets/rows.html"

    def __init__(self, row_form: type[OptionsForm], *, single: bool = False, optional: bool = False, is_map: bool = False) -> None:  # fmt: skip
        super().__init__()
        self.row_form, self.single, self.optional, self.is_map = row_form, single, optional, is_map
        self.pending: list[tuple[list[Any], str]] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> RowsWidget:
        copied = RowsWidget(self.row_form, single=self.single, optional=self.optional, is_map=self.is_map)
        copied.attrs = dict(self.attrs)
        return copied

    def value_from_datadict(self, data: Mapping[str, Any], files: Any, name: str) -> list[OptionsForm]:
        if self.single:
            used = not self.optional or f"{name}-used" in data
            return [self.row_form(data, prefix=f"{name}-0")] if used else []
        indexes = data.getlist(f"{name}-row") if hasattr(data, "getlist") else data.get(f"{name}-row", [])
        return [self.row_form(data, prefix=f"{name}-{index}") for index in indexes if str(index).isdigit()]

    def value_omitted_from_data(self, data: Mapping[str, Any], files: Any, name: str) -> bool:
        return False

    def rows(self, name: str, value: Any) -> list[OptionsForm]:
        """Bound forms as they are; stored values as unbound forms with initial values."""
        if isinstance(value, Mapping):
            value = [{"key": key, "value": one} for key, one in value.items()] if self.is_map else [value]
        rows = [
            row if isinstance(row, OptionsForm) else self.row_form(initial=row, prefix=f"{name}-{index}")
            for index, row in enumerate(value or ())
        ]
        for path, message in self.pending:
            index = 0 if self.single else path[0]
            inner = path if self.single else path[1:]
            if inner and isinstance(index, int) and index < len(rows) and rows[index].is_bound:
                place_error(rows[index], inner, message)
        return rows

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        rows = self.rows(name, value)
        token = f"__row{name.count('__row')}__"
        if self.single and not rows:
            rows = [self.row_form(prefix=f"{name}-0")]
        context.update(
            rows=[(row.prefix.rpartition("-")[2] if row.prefix else "0", row) for row in rows], single=self.single,
            optional=self.optional, used=bool(value), token=token,
            blank=None if self.single else self.row_form(prefix=f"{name}-{token}"),
        )  # fmt: skip
        return context


class RowsField(forms.Field):
    """A list of objects."""

    def __init__(self, node: Node) -> None:
        super().__init__(required=bool(node.schema.get("minItems")), widget=RowsWidget(options_form(node.items.properties)))  # fmt: skip

    def to_python(self, value: Any) -> Any:
        if not all(form.is_valid() for form in value):
            raise forms.ValidationError(_("Correct the entries marked below."))
        return [form.options() for form in value]

    def has_changed(self, initial: Any, data: Any) -> bool:
        return not all(form.is_valid() for form in data) or self.to_python(data) != initial


class GroupField(RowsField):
    """One nested object; if the setting may be empty, it is switched on by a checkbox."""

    def __init__(self, node: Node) -> None:
        forms.Field.__init__(self, required=False)
        self.widget = RowsWidget(options_form(node.properties), single=True, optional=node.nullable)

    def to_python(self, value: Any) -> Any:
        found = super().to_python(value)
        return found[0] if found else None


class MapField(RowsField):
    """A dictionary, as rows of name and value."""

    def __init__(self, node: Node) -> None:
        key = Node("key", {"type": "string", "title": str(_("Name"))}, required=True)
        value = Node(
            "value", {**node.values.schema, "title": str(_("Value"))}, node.definitions, required=True
        )
        forms.Field.__init__(self, required=False)
        self.widget = RowsWidget(options_form([key, value]), is_map=True)

    def to_python(self, value: Any) -> Any:
        rows = super().to_python(value)
        names = [row["key"] for row in rows]
        for name in names:
            if names.count(name) > 1:
                raise forms.ValidationError(
                    _("“%(name)s” is there twice; keep one of them.") % {"name": name}
                )
        return {row["key"]: row["value"] for row in rows}


fields.register(lambda node: node.type == "array" and node.items.type == "object", RowsField)
fields.register(lambda node: node.type == "object" and bool(node.schema.get("properties")), GroupField)
fields.register(lambda node: node.type == "object" and not node.schema.get("properties") and node.values.type in {"string", "integer", "number", "boolean", "enum", "array"}, MapField)  # fmt: skip
