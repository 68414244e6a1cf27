"""What will really run for an agent, in order, and what is odd about that order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from agents.models import Agent
from console.guardrail_kinds import kind_title
from console.schema_nodes import option_nodes
from processors.engine.registry import ProcessorKind, registry
from processors.models import Processor

STAGES = ("input", "output", "error")


@dataclass(slots=True)
class Link:
    """One guardrail of the chain. mandatory: it runs for every agent, whatever this agent says."""

    processor: Processor
    mandatory: bool
    kind: ProcessorKind | None
    notes: list[str] = field(default_factory=list)

    @property
    def kind_title(self) -> str:
        return kind_title(self.processor.kind)

    @property
    def broken(self) -> bool:
        return self.kind is None


@dataclass(slots=True)
class EffectiveChain:
    """stage: input, output or error. warnings: sentences about the order."""

    stage: str
    title: str
    links: list[Link]
    warnings: list[str]


def effective_chains(agent: Agent) -> list[EffectiveChain]:
    """The three chains of the draft as they would run: guardrails for every agent stand outermost. Two queries."""
    entries = (
        [entry for entry in agent.chain.select_related("processor") if entry.enabled] if agent.pk else []
    )
    everywhere = list(Processor.objects.exclude(mandatory="").order_by("name", "pk"))
    titles = {
        "input": _("On what people write"),
        "output": _("On what the agent answers"),
        "error": _("When the provider fails"),
    }
    chains = []
    for stage in STAGES:
        own = [_link(entry.processor, mandatory=False) for entry in entries if entry.stage == stage]
        outer = [
            _link(one, mandatory=True)
            for one in everywhere
            if one.mandatory in (stage, "both") and stage != "error"
        ]
        links = outer + own if stage == "input" else own + outer
        chains.append(EffectiveChain(stage, titles[stage], links, order_warnings(links, stage)))
    return chains


def order_warnings(links: Sequence[Link], stage: str) -> list[str]:
    """What is odd about a chain, as sentences with the way out."""
    found = [_("“%(name)s” is broken: its kind is not installed. The agent can't be published with it.") % {"name": link.processor} for link in links if link.broken]  # fmt: skip
    seen: dict[int, Link] = {}
    for link in links:
        if link.processor.pk in seen:
            found.append(_("“%(name)s” runs twice; once is enough, so take it out of this agent's chain.") % {"name": link.processor})  # fmt: skip
        seen[link.processor.pk] = link
    for position, later in enumerate(links):
        for earlier in links[:position]:
            found += [sentence % {"earlier": earlier.processor, "later": later.processor}
                      for applies, sentence in _order_rules() if applies(earlier, later, stage)]  # fmt: skip
    return list(dict.fromkeys(found))


def _order_rules() -> list[tuple[Callable[[Link, Link, str], bool], str]]:
    return [
        (lambda a, b, stage: asks_a_model(a) and redacts(b) and not asks_a_model(b),
         _("“%(earlier)s” sends the text to a model before “%(later)s” has taken out what must not leave. Put “%(later)s” first.")),
        (lambda a, b, stage: slug(b) == "unicode-normalizer" and slug(a) != "unicode-normalizer",
         _("“%(earlier)s” looks at the text before “%(later)s” has cleaned it of hidden characters. Put “%(later)s” first.")),
        (lambda a, b, stage: slug(a) in {"token-limiter", "length-limit"} and redacts(b) and stage == "input",
         _("“%(earlier)s” shortens the text before “%(later)s” has seen all of it. Put “%(later)s” first.")),
        (lambda a, b, stage: slug(a) == "response-cache" and redacts(b),
         _("“%(earlier)s” may keep a text that “%(later)s” would have changed. Put “%(later)s” first.")),
        (lambda a, b, stage: slug(a) == "batch-parts" and redacts(b) and stage == "output",
         _("“%(earlier)s” gathers the answer before “%(later)s” sees it, so people wait longer. Put “%(later)s” first.")),
    ]  # fmt: skip


def slug(link: Link) -> str:
    return link.processor.kind


def redacts(link: Link) -> bool:
    return link.kind is not None and link.kind.redacts


def asks_a_model(link: Link) -> bool:
    """It asks a model: its kind has a setting called model, and one is chosen."""
    if link.kind is None:
        return False
    names = {node.name for node in option_nodes(link.kind.options)}
    options: Any = link.processor.options or {}
    return "model" in names and bool(options.get("model"))


def _link(processor: Processor, *, mandatory: bool) -> Link:
    kind = registry.get(processor.kind) if processor.kind in registry else None
    link = Link(processor, mandatory, kind)
    if mandatory:
        link.notes.append(_("runs for every agent"))
    if processor.on_error == Processor.OnError.ALLOW:
        link.notes.append(_("lets a text pass unchecked if it fails"))
    return link
