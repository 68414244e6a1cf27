"""Limits how much a person may write and an agent may answer, in characters and words."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field, model_validator

from processors.engine.chunks import TEXT_DELTA, Chunk
from processors.engine.hooks import HookArgs, ProcessInputArgs, ProcessOutputStreamArgs, ProcessToolResultArgs
from processors.engine.ports import BuildContext
from processors.engine.processor import Processor
from processors.engine.registry import Options, ProcessorKind, Registry

SLUG: Final = "length-limit"
CUT: Final = "…"


class LengthLimitOptions(Options):
    """The limits. Leave one empty for no limit."""

    input_chars: int | None = Field(20_000, title="Characters of a message", description="Longest message of a person.", ge=1, le=10_000_000, json_schema_extra={"x-group": "Messages"})  # fmt: skip
    input_words: int | None = Field(None, title="Words of a message", description="Longest message in words.", ge=1, le=1_000_000, json_schema_extra={"x-group": "Messages"})  # fmt: skip
    output_chars: int | None = Field(None, title="Characters of an answer", description="Longest answer of a run, all steps together.", ge=1, le=10_000_000, json_schema_extra={"x-group": "Answers"})  # fmt: skip
    output_words: int | None = Field(None, title="Words of an answer", description="Longest answer in words.", ge=1, le=1_000_000, json_schema_extra={"x-group": "Answers"})  # fmt: skip
    tool_result_chars: int | None = Field(None, title="Characters of a tool's result", description="Longer results are cut when they are text and refused otherwise.", ge=1, le=10_000_000, json_schema_extra={"x-group": "Tools"})  # fmt: skip
    strategy: Literal["block", "truncate", "warn"] = Field("block", title="What to do", description="Block the run, cut the text at the limit, or only report.", json_schema_extra={"x-labels": {"truncate": "Cut the text"}})  # fmt: skip

    @model_validator(mode="after")
    def _limits_something(self) -> LengthLimitOptions:
        if not any((self.input_chars, self.input_words, self.output_chars, self.output_words, self.tool_result_chars)):  # fmt: skip
            raise ValueError("There is no limit; set at least one.")
        return self


class LengthLimit(Processor):
    """Counts as it goes; nothing behind the limit is shown."""

    def __init__(self, id: str, options: LengthLimitOptions) -> None:
        super().__init__(id)
        self.options = options

    def process_input(self, args: ProcessInputArgs) -> None:
        options = self.options
        for message in args.messages:
            text = message.text
            kept = within(text, options.input_chars, options.input_words)
            if kept < len(text):
                self._act(args, "input", len(text), kept)
                if options.strategy == "truncate":
                    message.set_text(text[:kept])

    def process_tool_result(self, args: ProcessToolResultArgs) -> None:
        limit = self.options.tool_result_chars
        text = args.result if isinstance(args.result, str) else str(args.result)
        if limit is None or len(text) <= limit:
            return
        self._act(args, "tool-result", len(text), limit)
        if self.options.strategy == "truncate":
            shown = text[:limit] + CUT if isinstance(args.result, str) else f"[withheld: longer than {limit} characters]"  # fmt: skip
            args.message_list.update_tool_invocation(tool_call_id=args.tool_call_id, result=shown)

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk | None:
        part, options = args.part, self.options
        if part.type != TEXT_DELTA or (options.output_chars is None and options.output_words is None):
            return part
        state = args.state
        if state.get("full"):
            return None
        text = part.text
        kept = self._kept(state, text)
        if kept >= len(text):
            return part
        self._act(args, "text", state["chars"] + len(text), state["chars"] + kept)
        if options.strategy == "warn":
            state["chars"] = state["words"] = -(10**12)  # one report is enough
            return part
        state["full"] = True
        return part.with_text(text[:kept]) if kept else None

    def _kept(self, state: dict[str, Any], text: str) -> int:
        """How many characters of a delta still fit; counts them in when all do."""
        chars, words = state.setdefault("chars", 0), state.setdefault("words", 0)
        options = self.options
        kept = len(text) if options.output_chars is None else min(len(text), options.output_chars - chars)
        if options.output_words is not None:
            # A word is counted where it begins, so a delta that continues one adds none.
            in_word = state.get("in_word", False)
            for at, character in enumerate(text[:kept]):
                begins = not character.isspace() and not in_word
                if begins and words >= options.output_words:
                    return at
                words += begins
                in_word = not character.isspace()
            state["in_word"] = in_word
        if kept >= len(text):
            state["chars"], state["words"] = chars + len(text), words
        return kept

    def _act(self, args: HookArgs, where: str, size: int, limit: int) -> None:
        what = {"input": "The message", "text": "The answer", "tool-result": "The tool's result"}[where]
        message = f"{what} is too long; at most {limit} characters of it are allowed."
        detail = {
            "type": "length", "rule": "length", "strategy": "filter" if self.options.strategy == "truncate" else self.options.strategy, "where": where,
            "matches": [{"type": "length", "rule": "length", "start": limit, "end": size}],
        }  # fmt: skip
        if self.options.strategy == "block":
            args.abort(message, metadata=detail)
        args.report_violation(message, detail)


def within(text: str, chars: int | None, words: int | None) -> int:
    """How many characters of a text fit into both limits."""
    kept = len(text) if chars is None else min(len(text), chars)
    if words is None:
        return kept
    in_word, count = False, 0
    for at, character in enumerate(text[:kept]):
        if not character.isspace() and not in_word:
            count += 1
            if count > words:
                return at
        in_word = not character.isspace()
    return kept


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> LengthLimit:
        return LengthLimit(id, options)

    registry.register(ProcessorKind(
        slug=SLUG, title="Length", description="Limits the length of messages, answers and tool results.",
        options=LengthLimitOptions, factory=build, stages=frozenset({"input", "output"}), redacts=True, group="Limits",
    ))  # fmt: skip
