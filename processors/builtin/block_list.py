"""Blocks or redacts words and phrases of a list: thousands of them, in any script, across chunks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pydantic import Field, field_validator, model_validator

from processors.builtin.detectors.findings import Region
from processors.builtin.detectors.words import WordMatcher
from processors.builtin.screening import Screen, ScreenOptions, Strategy
from processors.engine.ports import BuildContext
from processors.engine.registry import ProcessorKind, Registry

SLUG: Final = "block-list"
MOST_WORDS: Final = 50_000
LONGEST_WORD: Final = 200


class BlockListOptions(ScreenOptions):
    """The words, how they are compared, and what happens."""

    words: list[str] = Field(title="Words and phrases", description="One per line. Upper and lower case are the same; several blanks count as one.", min_length=1, max_length=MOST_WORDS)  # fmt: skip
    exceptions: list[str] = Field(default_factory=list, title="Allowed phrases", description="A word inside one of these phrases is let through, such as “Scunthorpe” or “ass's milk”.", max_length=MOST_WORDS)  # fmt: skip
    strategy: Strategy = Field("block", title="What to do", description="Block the run, ask for another answer, redact the words, withhold the message, or only report.", json_schema_extra={"x-labels": {"retry": "Ask for another answer"}})  # fmt: skip
    whole_words: bool = Field(True, title="Whole words only", description="“ass” does not match “class”. Scripts without blanks between words, such as Chinese or Thai, always match inside.")  # fmt: skip
    look_alikes: bool = Field(True, title="See through disguises", description="Also match accents and letters of other scripts that look the same (Cyrillic “а” for “a”).")  # fmt: skip
    replacement: str = Field("[…]", title="Replacement", description="Stands in place of a word when redacting.", max_length=100, json_schema_extra={"x-show-if": {"strategy": ["redact"]}})  # fmt: skip

    @field_validator("words", "exceptions")
    @classmethod
    def _words_can_match(cls, words: list[str]) -> list[str]:
        kept = [word for word in words if word.strip()]
        for number, word in enumerate(kept, 1):
            if len(word) > LONGEST_WORD:
                raise ValueError(f"Entry {number} has {len(word)} characters; at most {LONGEST_WORD} are allowed. Use a shorter phrase.")  # fmt: skip
            if not any(character.isalnum() for character in word) and not word.isascii() and not any(ord(c) > 0x2000 for c in word):  # fmt: skip
                raise ValueError(f"Entry {number} has no letter and no digit, so nothing can be compared; remove it.")  # fmt: skip
        return kept

    @model_validator(mode="after")
    def _replacement_is_no_listed_word(self) -> BlockListOptions:
        if not self.words:
            raise ValueError("The list is empty; write at least one word.")
        if self.strategy == "redact" and _matcher(self).find(self.replacement, 0):
            raise ValueError("The replacement holds a word of the list; choose another replacement.")
        return self


def _matcher(options: BlockListOptions) -> WordMatcher:
    labels = {word: f"entry {number}" for number, word in enumerate(options.words, 1)}
    return WordMatcher(labels, whole_words=options.whole_words, look_alikes=options.look_alikes, allowed=options.exceptions)  # fmt: skip


class BlockList(Screen):
    """Searches with one automaton, whatever the number of words. Violations name the entry's number, never the word."""

    subject = "A blocked word"

    def __init__(self, id: str, options: BlockListOptions, context: BuildContext) -> None:
        super().__init__(id, options, _matcher(options), context)
        self._replacement = options.replacement

    def redaction(self, region: Region, text: str) -> str:
        return self._replacement

    def reason(self, types: Sequence[str], rules: Sequence[str]) -> str:
        return "A blocked word was found."


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> BlockList:
        return BlockList(id, options, context)

    registry.register(ProcessorKind(
        slug=SLUG, title="Block list", description="Stops or redacts words and phrases of a list, in any script, also when they arrive in pieces.",
        options=BlockListOptions, factory=build, stages=frozenset({"input", "output"}), redacts=True, group="Words and patterns",
    ))  # fmt: skip
