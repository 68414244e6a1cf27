"""Keeps the agent's instructions to itself: compares what it says with its own system messages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from pydantic import Field, field_validator

from processors.builtin.detectors.findings import Finding, Region
from processors.builtin.detectors.holdback import Matcher
from processors.builtin.detectors.pattern_rules import PatternMatcher, PatternRule, compile_pattern
from processors.builtin.detectors.words import WordMatcher
from processors.builtin.screening import Screen, ScreenOptions, Strategy
from processors.engine.hooks import HookArgs
from processors.engine.ports import BuildContext
from processors.engine.registry import ProcessorKind, Registry

SLUG: Final = "system-prompt-scrubber"
_WORD: Final = re.compile(r"\w+(?:['’]\w+)*")
REMEMBERED: Final = 8
"""Sets of instructions whose words are kept prepared, per guardrail."""
LONGEST_INSTRUCTIONS: Final = 20_000
"""Words of the instructions that are compared."""


class SystemPromptOptions(ScreenOptions):
    """How much of the instructions may be said, and what happens."""

    strategy: Strategy = Field("redact", title="What to do", description="Redact what was quoted, block the run, ask for another answer, withhold the rest of the answer, or only report.", json_schema_extra={"x-labels": {"retry": "Ask for another answer"}})  # fmt: skip
    words_in_a_row: int = Field(8, title="Words in a row", description="So many words of the instructions one after another count as a leak. Fewer catches more and may stop ordinary phrases.", ge=4, le=30)  # fmt: skip
    custom_patterns: list[str] = Field(default_factory=list, title="Further patterns", description="RE2 patterns that count as a leak too, such as a canary word from the instructions. One per line.", max_length=50, json_schema_extra={"x-group": "More"})  # fmt: skip
    placeholder_text: str = Field("[SYSTEM_PROMPT]", title="Replacement", description="Stands in place of what was quoted.", max_length=100)  # fmt: skip

    @field_validator("custom_patterns")
    @classmethod
    def _patterns_work(cls, patterns: list[str]) -> list[str]:
        for pattern in patterns:
            if compile_pattern(pattern).endless:
                raise ValueError(f"The pattern {pattern!r} can match without end; write a limit such as {{0,200}} instead of *.")  # fmt: skip
        return patterns


class LeakMatcher:
    """Words of the instructions in a row, whatever stands between them, and the admin's own patterns."""

    look_back = 8

    def __init__(self, runs: WordMatcher | None, patterns: PatternMatcher | None) -> None:
        self._matchers: list[Matcher] = [matcher for matcher in (runs, patterns) if matcher is not None]

    def find(self, text: str, start: int) -> list[Finding]:
        return [finding for matcher in self._matchers for finding in matcher.find(text, start)]

    def open_from(self, text: str, start: int) -> int:
        return min((matcher.open_from(text, start) for matcher in self._matchers), default=len(text))


def runs_of(instructions: Sequence[str], length: int) -> list[str]:
    """All runs of so many words; shorter instructions are one run if they have at least four words."""
    runs: dict[str, None] = {}
    for text in instructions:
        words = _WORD.findall(text.lower())[:LONGEST_INSTRUCTIONS]
        size = min(length, len(words))
        if size >= 4:
            runs |= dict.fromkeys(" ".join(words[at : at + size]) for at in range(len(words) - size + 1))
    return list(runs)


class SystemPromptScrubber(Screen):
    """Reads the instructions from the run's own system messages, so there is nothing to configure."""

    subject = "The agent's instructions"

    def __init__(self, id: str, options: SystemPromptOptions, context: BuildContext) -> None:
        patterns = [PatternRule(f"pattern {n}", compile_pattern(p), None, "pattern") for n, p in enumerate(options.custom_patterns, 1)]  # fmt: skip
        self._patterns = PatternMatcher(patterns) if patterns else None
        super().__init__(id, options, LeakMatcher(None, self._patterns), context)
        self._length, self._placeholder = options.words_in_a_row, options.placeholder_text
        self._prepared: dict[tuple[str, ...], LeakMatcher] = {}

    def screens(self, stage: str) -> bool:
        return stage == "output"

    def matcher_for(self, args: HookArgs) -> Matcher:
        message_list = getattr(args, "message_list", None)
        texts = (
            tuple(message.text for message in message_list.system_messages)
            if message_list is not None
            else ()
        )
        matcher = self._prepared.get(texts)
        if matcher is None:
            words = WordMatcher(dict.fromkeys(runs_of(texts, self._length), "words in a row"), type="instructions", between_words=True)  # fmt: skip
            while len(self._prepared) >= REMEMBERED:
                self._prepared.pop(next(iter(self._prepared)))
            matcher = self._prepared[texts] = LeakMatcher(words, self._patterns)
        return matcher

    def redaction(self, region: Region, text: str) -> str:
        return self._placeholder

    def reason(self, types: Sequence[str], rules: Sequence[str]) -> str:
        return "The answer quotes the agent's instructions."


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> SystemPromptScrubber:
        return SystemPromptScrubber(id, options, context)

    registry.register(ProcessorKind(
        slug=SLUG, title="System prompt leak", description="Keeps the agent from quoting its own instructions, however the quotation is cut or punctuated.",
        options=SystemPromptOptions, factory=build, stages=frozenset({"output"}), redacts=True, group="Attacks",
    ))  # fmt: skip
