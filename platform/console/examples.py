"""Runs saved examples: does each guardrail still catch what it must, and let through what it must?"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from agents.models import Agent
from console.effective_chain import effective_chains
from console.models import Example
from console.trial import Trial, run_trial, text_as
from processors.build import build_context, opened_options
from processors.engine.errors import GatehouseError
from processors.engine.processor import ChainEntry
from processors.engine.registry import registry
from processors.models import Processor

TIME_FOR_ALL = 60.0
"""Seconds for all examples of a publish together."""
MOST_EXAMPLES = 200


@dataclass(slots=True)
class Outcome:
    """What became of one example. problem: why it could not be run."""

    example: Example
    guardrail: str
    trial: Trial | None
    problem: str = ""

    @property
    def passed(self) -> bool:
        if self.trial is None or self.trial.verdict == "error":
            return False
        caught = self.trial.verdict != "passed"
        return caught == (self.example.expected == Example.Expected.CATCH)

    @property
    def sentence(self) -> str:
        """What went wrong, as one line."""
        if self.problem:
            return self.problem
        if self.trial is not None and self.trial.verdict == "error":
            return _("The guardrail failed: %(reason)s") % {"reason": self.trial.reason}
        if self.example.expected == Example.Expected.CATCH:
            return _("It let the text pass, but must catch it.")
        return _("It caught the text, but must let it pass.")


def run_examples(guardrail: Processor, options: dict[str, Any], examples: Iterable[Example]) -> list[Outcome]:
    """Run examples of one guardrail with these settings."""
    try:
        built = registry.build(guardrail.kind, guardrail.slug, options, build_context())
    except (GatehouseError, ValueError) as problem:
        return [Outcome(example, guardrail.name, None, str(problem)) for example in examples]
    return [_run(guardrail, ChainEntry(built), example) for example in examples]


def failing_examples(agent: Agent) -> list[Outcome]:
    """The examples that fail among those of the draft's guardrails. One that there was no time for counts as failing."""
    guardrails = {
        link.processor.pk: link.processor
        for chain in effective_chains(agent)
        for link in chain.links
        if not link.broken
    }
    examples: dict[int, list[Example]] = {}
    for example in Example.objects.filter(processor__in=guardrails)[:MOST_EXAMPLES]:
        examples.setdefault(example.processor_id, []).append(example)
    failing: list[Outcome] = []
    end = time.monotonic() + TIME_FOR_ALL
    for number, own in examples.items():
        guardrail = guardrails[number]
        if time.monotonic() > end:
            failing += [
                Outcome(one, guardrail.name, None, _("There was no time left to run it.")) for one in own
            ]
            continue
        failing += [
            one
            for one in run_examples(
                guardrail, opened_options(guardrail.slug, guardrail.kind, guardrail.options), own
            )
            if not one.passed
        ]
    return failing


def _run(guardrail: Processor, entry: ChainEntry, example: Example) -> Outcome:
    try:
        trial = run_trial([entry], example.text, text_as(example.used_as))
    except TimeoutError:
        return Outcome(example, guardrail.name, None, _("It took longer than 15 seconds."))
    except GatehouseError as problem:
        return Outcome(example, guardrail.name, None, str(problem))
    return Outcome(example, guardrail.name, trial)
