"""What is wrong with a setting, in words that an admin understands, at the field where it can be put right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _
from pydantic import ValidationError

from console.schema_nodes import Node
from console.schema_rows import place_error

_WORDS: dict[str, Any] = {
    "missing": _("This field is needed."),
    "greater_than_equal": _("It must be at least %(ge)s."),
    "greater_than": _("It must be more than %(gt)s."),
    "less_than_equal": _("It must be at most %(le)s."),
    "less_than": _("It must be less than %(lt)s."),
    "multiple_of": _("It must be a multiple of %(multiple_of)s."),
    "string_too_short": _("Write at least %(min_length)s characters."),
    "string_too_long": _("Write at most %(max_length)s characters."),
    "string_pattern_mismatch": _("It does not have the expected form (%(pattern)s)."),
    "too_short": _("Give at least %(min_length)s."),
    "too_long": _("Give at most %(max_length)s."),
    "literal_error": _("Choose one of: %(expected)s."),
    "enum": _("Choose one of: %(expected)s."),
    "int_parsing": _("Write a whole number."),
    "int_type": _("Write a whole number."),
    "int_from_float": _("Write a whole number."),
    "float_parsing": _("Write a number."),
    "float_type": _("Write a number."),
    "string_type": _("Write a text."),
    "bool_parsing": _("Choose yes or no."),
    "extra_forbidden": _("This kind of guardrail does not know this setting any more; remove it."),
}


def plain_words(error: Any) -> str:
    """One of Pydantic's errors as a sentence."""
    words = _WORDS.get(error["type"])
    context = error.get("ctx") or {}
    if words is not None:
        try:
            return str(words % context) if "%(" in str(words) else str(words)
        except KeyError:
            return str(error["msg"])
    return str(error["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")


def show_errors(
    form: forms.BaseForm, nodes: Sequence[Node], problem: ValidationError, *, prefix: str
) -> None:
    """Put each of Pydantic's errors at its field; one that names no place goes to the field that it mentions."""
    for error in problem.errors(include_url=False, include_input=False):
        path: list[Any] = [part for part in error["loc"] if not _is_branch(part, nodes)] or [None]
        message = plain_words(error)
        name = str(path[0]) if path[0] is not None else mentioned(message, nodes)
        if name is None:
            form.add_error(None, message)
        else:
            place_error(form, [name, *path[1:]], message, field_name=f"{prefix}{name}")


def show_message(form: forms.BaseForm, nodes: Sequence[Node], message: str, *, prefix: str) -> None:
    """An error without a place: at the field that it mentions, at the top otherwise."""
    name = mentioned(message, nodes)
    form.add_error(f"{prefix}{name}" if name and f"{prefix}{name}" in form.fields else None, message)


def mentioned(message: str, nodes: Iterable[Node]) -> str | None:
    """The setting whose title or name stands first in a message."""
    lowered = message.lower()
    found: list[tuple[int, str]] = []
    for node in nodes:
        places = [lowered.find(word) for word in (node.title.lower(), node.name.lower()) if len(word) > 2]
        places = [place for place in places if place >= 0]
        if places:
            found.append((min(places), node.name))
    return min(found)[1] if found else None


def _is_branch(part: Any, nodes: Sequence[Node]) -> bool:
    """Pydantic names the branch of a union in the path ("function-after[...]", "constrained-str"); a form has none."""
    return isinstance(part, str) and ("[" in part or part in {"str", "int", "float", "bool", "constrained-str"}) and part not in {node.name for node in nodes}  # fmt: skip
