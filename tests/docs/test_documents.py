"""What the documents promise is there: links lead somewhere, every guardrail and option is explained."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from processors import builtin
from processors.engine.registry import Registry

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.joinpath("docs").rglob("*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def built_in_kinds() -> Registry:
    registry = Registry()
    builtin.register_all(registry)
    return registry


def anchors_of(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_inside_the_house_leads_somewhere(page: Path) -> None:
    broken = []
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors_of(file)):
            broken.append(target)
    assert broken == []


def test_every_guardrail_has_a_paragraph_in_the_docs() -> None:
    text = "\n".join(
        page.read_text(encoding="utf-8") for page in ROOT.joinpath("docs").glob("guardrails*.md")
    )
    assert [kind.slug for kind in built_in_kinds() if f"`{kind.slug}`" not in text] == []


def test_every_option_has_a_title_and_a_help_text() -> None:
    missing = [
        f"{kind.slug}.{name}"
        for kind in built_in_kinds()
        for name, field in kind.options.model_fields.items()
        if not field.title or not field.description
    ]
    assert missing == []
