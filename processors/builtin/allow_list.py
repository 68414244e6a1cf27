"""Lets only listed texts through: commands, codes or answers from a closed set."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field, field_validator, model_validator

from processors.builtin.detectors.findings import keyed_hash
from processors.builtin.detectors.pattern_rules import compile_pattern
from processors.builtin.detectors.words import Folding
from processors.engine.chunks import TEXT_DELTA, Chunk
from processors.engine.hooks import HookArgs, ProcessInputArgs, ProcessOutputStreamArgs
from processors.engine.ports import BuildContext
from processors.engine.processor import Processor
from processors.engine.registry import Options, ProcessorKind, Registry

SLUG: Final = "allow-list"


class AllowListOptions(Options):
    """What may be said."""

    phrases: list[str] = Field(default_factory=list, title="Texts", description="Whole texts, one per line. Upper and lower case and blanks do not matter.", max_length=50_000)  # fmt: skip
    patterns: list[str] = Field(default_factory=list, title="Patterns", description="RE2 patterns that the whole text must match, one per line: order \\d{4,8}", max_length=100)  # fmt: skip
    strategy: Literal["block", "retry", "warn"] = Field("block", title="What to do", description="Block the run, ask the model for another answer, or only report.", json_schema_extra={"x-labels": {"retry": "Ask for another answer"}})  # fmt: skip
    hint: str = Field("", title="What people are told", description="Such as: Please send an order number. Empty: a general sentence.", max_length=300)  # fmt: skip

    @field_validator("patterns")
    @classmethod
    def _patterns_work(cls, patterns: list[str]) -> list[str]:
        for pattern in patterns:
            compile_pattern(pattern)
        return patterns

    @model_validator(mode="after")
    def _allows_something(self) -> AllowListOptions:
        if not self.patterns and not any(phrase.strip() for phrase in self.phrases):
            raise ValueError("The list is empty, so nothing could pass; write texts or patterns.")
        return self


class AllowList(Processor):
    """A text is judged as a whole, so streamed text waits until its block is complete."""

    def __init__(self, id: str, options: AllowListOptions, context: BuildContext) -> None:
        super().__init__(id)
        self._options, self._hash_key = options, context.hash_key
        self._folding = Folding()
        self._phrases = {self._folded(phrase) for phrase in options.phrases if phrase.strip()}
        self._patterns = [compile_pattern(pattern).compiled for pattern in options.patterns]

    def _folded(self, text: str) -> str:
        return self._folding.fold(text.strip())[0].strip()

    def allows(self, text: str) -> bool:
        """Whether this whole text is on the list."""
        return self._folded(text) in self._phrases or any(p.fullmatch(text.strip()) is not None for p in self._patterns)  # fmt: skip

    def process_input(self, args: ProcessInputArgs) -> None:
        for message in args.messages:
            if message.role == "user" and not self.allows(message.text):
                self._refuse(args, message.text, "input")

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk | list[Chunk] | None:
        part, state = args.part, args.state
        held: list[Chunk] = state.setdefault("held", [])
        if part.type == "step-start":
            held.clear()
        if part.type == TEXT_DELTA and self._options.strategy != "warn":
            held.append(part)
            return None
        if part.type == TEXT_DELTA:
            held.append(part)
            return part
        if part.is_data or not held:
            return part
        text = "".join(chunk.text for chunk in held)
        released, state["held"] = held, []
        if text.strip() and not self.allows(text):
            self._refuse(args, text, "text")
        return part if self._options.strategy == "warn" else [released[0].with_text(text), part]

    def _refuse(self, args: HookArgs, text: str, where: str) -> None:
        message = self._options.hint or "This text is not on the list of what may be said here."
        detail = {
            "type": "not-listed", "rule": "allow-list", "strategy": self._options.strategy, "where": where, "excerpt": "‹not listed›",
            "matches": [{"type": "not-listed", "rule": "allow-list", "start": 0, "end": len(text)}], "hash": keyed_hash(self._hash_key, text),
        }  # fmt: skip
        if self._options.strategy != "warn":
            args.abort(message, retry=self._options.strategy == "retry", metadata=detail)
        args.report_violation(message, detail)


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> AllowList:
        return AllowList(id, options, context)

    registry.register(ProcessorKind(
        slug=SLUG, title="Allow list", description="Lets only listed texts and patterns through.",
        options=AllowListOptions, factory=build, stages=frozenset({"input", "output"}), redacts=True, group="Words and patterns",
    ))  # fmt: skip
