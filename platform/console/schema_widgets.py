"""Widgets of the settings form: lists, secrets, patterns with a try-it box, and rows of nested settings."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from unfold import widgets


class LinesTextarea(widgets.UnfoldAdminTextareaWidget):
    """One entry per line; the page's script counts them."""

    def __init__(self) -> None:
        super().__init__({"rows": 4, "data-lines": "1", "spellcheck": "false"})

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        words = {
            "data-count-one": _("1 entry, one per line"),
            "data-count-many": _("# entries, one per line"),
        }
        return super().get_context(name, value, {**(attrs or {}), **words})

    def format_value(self, value: Any) -> str:
        if isinstance(value, list | tuple | set | frozenset):
            return "\n".join(str(line) for line in value)
        return str(value or "")


class SecretInput(forms.PasswordInput):
    """Write-only. The stored secret is never put into the page; whether there is one is said."""

    template_name = "console/widgets/secret.html"

    def __init__(self) -> None:
        super().__init__(
            {"autocomplete": "new-password", "class": " ".join(widgets.INPUT_CLASSES)}, render_value=False
        )
        self.is_set = False

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        context = super().get_context(name, None, attrs)
        context["is_set"] = self.is_set
        return context


class PatternInput(forms.TextInput):
    """A search pattern with a box to try it on a sample; nothing that is typed there is stored."""

    template_name = "console/widgets/pattern.html"

    def __init__(self) -> None:
        classes = " ".join([*widgets.INPUT_CLASSES, "font-mono"])
        super().__init__(
            {"class": classes, "spellcheck": "false", "autocomplete": "off", "data-pattern": "1"}
        )
