"""Reads an Options model's JSON Schema into plain nodes, one per setting, with references and "or nothing" resolved.

What a schema may say beside the standard keywords (Pydantic: `json_schema_extra={...}`), all optional:

    x-group      heading under which the console shows the field
    x-labels     {value: label} for the choices of an enumeration
    x-widget     "pattern" (a search pattern with a try-it box), "textarea", "secret"
    x-show-if    {field: [values]}: the field is shown only while another field has one of these values
    x-advanced   true: shown under "More settings"
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

_MISSING: Any = object()


@dataclass(frozen=True, slots=True)
class Node:
    """One setting. `schema` has its `$ref` resolved and its `null` alternative taken out (`nullable`)."""

    name: str
    schema: dict[str, Any]
    definitions: dict[str, Any] = field(default_factory=dict)
    required: bool = False
    nullable: bool = False

    @property
    def title(self) -> str:
        return str(self.schema.get("title") or self.name.replace("_", " ").capitalize())

    @property
    def help(self) -> str:
        return str(self.schema.get("description") or "")

    @property
    def default(self) -> Any:
        return self.schema.get("default")

    @property
    def type(self) -> str:
        """The JSON type, "enum" for a closed list of values, "" when the schema names several types or none."""
        if "enum" in self.schema or "const" in self.schema:
            return "enum"
        kind = self.schema.get("type")
        if isinstance(kind, str):
            return kind
        return _type_of_alternatives(self.schema)

    @property
    def choices(self) -> list[Any]:
        if "const" in self.schema:
            return [self.schema["const"]]
        return list(self.schema.get("enum", ()))

    def label_of(self, value: Any) -> str:
        labels = self.schema.get("x-labels") or {}
        text = str(labels.get(str(value), "")) or str(value).replace("_", " ").replace("-", " ")
        return text[:1].upper() + text[1:]

    @property
    def items(self) -> Node:
        """The node of a list's items."""
        return make_node(self.name, self.schema.get("items") or {"type": "string"}, self.definitions)

    @property
    def values(self) -> Node:
        """The node of a dictionary's values."""
        schema = self.schema.get("additionalProperties")
        return make_node(
            self.name, schema if isinstance(schema, dict) else {"type": "string"}, self.definitions
        )

    @property
    def properties(self) -> list[Node]:
        """The nodes of an object's own fields."""
        needed = set(self.schema.get("required", ()))
        return [
            make_node(name, schema, self.definitions, required=name in needed)
            for name, schema in (self.schema.get("properties") or {}).items()
        ]


def make_node(
    name: str, schema: dict[str, Any], definitions: dict[str, Any], *, required: bool = False
) -> Node:
    """Resolve `$ref` and `anyOf [X, null]`. A field's own title and help win over those of what it refers to."""
    resolved, nullable = _resolve(schema, definitions)
    return Node(name, resolved, definitions, required, nullable)


def option_nodes(options: type[BaseModel]) -> list[Node]:
    """The settings of an Options model, in the order its author wrote them."""
    schema = options.model_json_schema(mode="validation")
    root = Node("", schema, schema.get("$defs", {}))
    return root.properties


def _resolve(schema: dict[str, Any], definitions: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    nullable = False
    for _ in range(8):
        if "$ref" in schema:
            target = definitions.get(schema["$ref"].rpartition("/")[2], {})
            schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
            continue
        if len(schema.get("allOf", ())) == 1:
            schema = {**schema["allOf"][0], **{key: value for key, value in schema.items() if key != "allOf"}}
            continue
        key = "anyOf" if "anyOf" in schema else "oneOf"
        alternatives = list(schema.get(key, ()))
        kept = [one for one in alternatives if one.get("type") != "null"]
        if alternatives and len(kept) < len(alternatives):
            nullable = True
        if alternatives and len(kept) == 1:
            schema = {**kept[0], **{name: value for name, value in schema.items() if name != key}}
            continue
        break
    return schema, nullable


def _type_of_alternatives(schema: dict[str, Any]) -> str:
    """`int | float` is a number; `Literal | Literal` an enumeration; anything else has no one type."""
    kinds = {
        one.get("type", "")
        for one in schema.get("anyOf", schema.get("oneOf", ()))
        if one.get("type") != "null"
    }
    if kinds and kinds <= {"integer", "number"}:
        return "number"
    return ""
