"""What the console says about kinds of guardrails."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from processors.engine.registry import registry

STAGE_WORDS = {
    "input": gettext_lazy("what people write"),
    "output": gettext_lazy("what agents answer"),
    "error": gettext_lazy("errors of the provider"),
}


def kind_title(slug: str) -> str:
    """The kind's title; one whose package is gone is called broken."""
    return (
        registry.get(slug).title
        if slug in registry
        else _("broken: “%(slug)s” is not installed") % {"slug": slug}
    )


def kind_cards() -> list[dict[str, Any]]:
    """Kinds grouped by what they are for: [{"title", "kinds": [ProcessorKind, …]}], in the registry's order."""
    groups: dict[str, list[Any]] = {}
    for kind in registry:
        places = [str(words) for stage, words in STAGE_WORDS.items() if stage in kind.stages]
        groups.setdefault(kind.group, []).append({"kind": kind, "places": ", ".join(places)})
    return [{"title": title, "kinds": kinds} for title, kinds in groups.items()]


def kinds_for(stage: str) -> list[str]:
    """Slugs of the kinds that can stand in a chain."""
    return [kind.slug for kind in registry if stage in kind.stages]
