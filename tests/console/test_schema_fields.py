"""From the type of a setting to a form field, without a database."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from django import forms
from django.http import QueryDict
from pydantic import BaseModel, Field, ValidationError

from console.schema_errors import mentioned, plain_words
from console.schema_fields import LinesField, SecretField, TypedSelectField, UnknownField, fields
from console.schema_nodes import Node, option_nodes
from console.schema_rows import GroupField, MapField, RowsField, options_form
from processors.engine.registry import Options


class Inner(BaseModel):
    low: int = Field(default=1, ge=0)
    names: list[str] = []


class Everything(Options):
    text: str = Field(default="", title="Text")
    long: str = Field(default="", max_length=5000)
    whole: int = Field(default=3, ge=1, lt=10)
    real: float = Field(default=0.5, gt=0, le=1)
    yes: bool = True
    maybe: bool | None = None
    choice: Literal["a", "b"] = "a"
    level: Literal[1, 2] = 1
    many: list[Literal["a", "b"]] = []
    lines: list[str] = []
    numbers: list[int] = []
    rows: list[Inner] = []
    group: Inner = Inner()
    perhaps: Inner | None = None
    table: dict[str, float] = {}
    pattern: str = Field(default="", json_schema_extra={"format": "regex"})
    hidden: str = Field(default="", json_schema_extra={"writeOnly": True})
    odd: str | list[str] = "x"


NODES = {node.name: node for node in option_nodes(Everything)}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("text", forms.CharField), ("whole", forms.IntegerField), ("real", forms.FloatField), ("yes", forms.BooleanField),
        ("maybe", forms.NullBooleanField), ("choice", TypedSelectField), ("many", forms.MultipleChoiceField),
        ("lines", LinesField), ("numbers", LinesField), ("rows", RowsField), ("group", GroupField), ("perhaps", GroupField),
        ("table", MapField), ("pattern", forms.CharField), ("hidden", SecretField), ("odd", UnknownField),
    ],
)  # fmt: skip
def test_every_type_has_its_field(name: str, kind: type[forms.Field]) -> None:
    assert type(fields.field_for(NODES[name])) is kind


def test_limits_and_titles_come_from_the_options() -> None:
    field: Any = fields.field_for(NODES["whole"])
    assert (field.min_value, field.max_value, field.initial) == (1, 9, 3)
    assert fields.field_for(NODES["text"]).label == "Text"


def test_a_choice_keeps_its_type() -> None:
    assert fields.field_for(NODES["level"]).clean("2") == 2


def test_a_pattern_keeps_its_blanks() -> None:
    assert fields.field_for(NODES["pattern"]).clean("  a b ") == "  a b "


def test_a_list_keeps_blanks_inside_lines_and_drops_empty_lines() -> None:
    assert fields.field_for(NODES["lines"]).clean(" one\r\n\r\ntwo ") == [" one", "two "]


def test_a_list_of_numbers_says_what_is_wrong() -> None:
    assert fields.field_for(NODES["numbers"]).clean("1\n2") == [1, 2]
    with pytest.raises(forms.ValidationError, match="one number per line"):
        fields.field_for(NODES["numbers"]).clean("one")


def bound(data: str) -> Any:
    return options_form(list(NODES.values()))(QueryDict(data))


def test_rows_are_read_in_the_order_on_the_screen() -> None:
    form = bound(
        "whole=3&real=0.5&choice=a&level=1&rows-row=7&rows-row=2&rows-7-low=1&rows-7-names=x&rows-2-low=2&rows-2-names=&group-0-low=4"
    )
    assert form.is_valid(), form.errors
    assert form.options()["rows"] == [{"low": 1, "names": ["x"]}, {"low": 2, "names": []}]
    assert form.options()["group"] == {"low": 4, "names": []}
    assert form.options()["perhaps"] is None


def test_a_group_that_may_be_empty_is_switched_on() -> None:
    form = bound(
        "whole=3&real=0.5&choice=a&level=1&group-0-low=4&perhaps-used=on&perhaps-0-low=5&perhaps-0-names="
    )
    assert form.is_valid(), form.errors
    assert form.options()["perhaps"] == {"low": 5, "names": []}


def test_the_same_name_twice_in_a_table_is_refused() -> None:
    form = bound(
        "whole=3&real=0.5&choice=a&level=1&group-0-low=4&table-row=0&table-row=1&table-0-key=a&table-0-value=1&table-1-key=a&table-1-value=2"
    )
    assert "is there twice" in str(form.errors["table"])


def test_a_stored_secret_is_not_in_the_page() -> None:
    field = fields.field_for(NODES["hidden"])
    assert "hush" not in field.widget.render("hidden", "hush")


@pytest.mark.parametrize(
    ("values", "words"),
    [({"whole": 0}, "at least 1"), ({"whole": 10}, "less than 10"), ({"choice": "z"}, "Choose one of"), ({"whole": "x"}, "whole number"), ({"no": 1}, "does not know this setting")],
)  # fmt: skip
def test_errors_are_plain_words(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as problem:
        Everything.model_validate(values)
    assert words in plain_words(problem.value.errors()[0])


def test_an_error_without_a_place_goes_to_the_setting_it_mentions() -> None:
    nodes = [
        Node("limit", {"type": "integer", "title": "Limit"}),
        Node("words", {"type": "array", "title": "Words"}),
    ]
    assert mentioned("“Words” must not be empty when Limit is set.", nodes) == "words"
    assert mentioned("Something else.", nodes) is None
