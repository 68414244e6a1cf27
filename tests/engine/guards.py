"""Small honest guards for the property tests: each finds its word however the text is cut.

They hold text back as long as it may turn into their word, and release what they hold before any other chunk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from processors.engine.chunks import Chunk, text_delta
from processors.engine.hooks import ProcessOutputStreamArgs
from processors.engine.processor import Processor


class WordGuard(Processor):
    """Looks for one word. `found` says what becomes of it: a replacement text, or an exception by `abort`."""

    def __init__(self, id: str, word: str, found: Callable[[Any], str]) -> None:
        super().__init__(id)
        self.word, self.found = word, found

    def _held(self, text: str) -> int:
        """How many of the last characters may still turn into the word."""
        longest = min(len(text), len(self.word) - 1)
        return next((size for size in range(longest, 0, -1) if self.word.startswith(text[-size:])), 0)

    def _screened(self, args: Any, text: str) -> str:
        out = []
        while (at := text.find(self.word)) >= 0:
            out.append(text[:at] + self.found(args))
            text = text[at + len(self.word) :]
        return "".join([*out, text])

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk | list[Chunk] | None:
        part, state = args.part, args.state
        if part.type == "step-start":
            state["held"] = ""  # a refused attempt left it behind
        held = state.get("held", "")
        if part.type != "text-delta":
            state["held"] = ""
            return [text_delta(held), part] if held else part
        text = self._screened_prefix(args, held + part.text)
        keep = self._held(text)
        state["held"] = text[len(text) - keep :]
        ready = text[: len(text) - keep]
        return part.with_text(ready) if ready else None

    def _screened_prefix(self, args: Any, text: str) -> str:
        return self._screened(args, text)


def redactor(word: str, by: str = "#") -> WordGuard:
    """Replaces its word."""
    return WordGuard(f"redact-{word}", word, lambda args: by)


def dropper(word: str) -> WordGuard:
    """Takes its word out."""
    return WordGuard(f"drop-{word}", word, lambda args: "")


def blocker(word: str) -> WordGuard:
    """Refuses an answer with its word."""
    return WordGuard(
        f"block-{word}", word, lambda args: args.abort("refused", metadata={"length": len(word)})
    )


class Holder(Processor):
    """Holds a whole block back and releases it at its end."""

    def __init__(self) -> None:
        super().__init__("holder")

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk | list[Chunk] | None:
        part, held = args.part, args.state.setdefault("held", [])
        if part.type == "step-start":
            held.clear()
        if part.type == "text-delta":
            held.append(part.text)
            return None
        if not held:
            return part
        text = "".join(held)
        held.clear()
        return [text_delta(text), part]


def awaited(guard: Processor) -> Processor:
    """The same guard with an async hook: it takes the engine's slower road."""
    plain: Any = guard

    async def process_output_stream(self: Processor, args: ProcessOutputStreamArgs) -> Any:
        return plain.process_output_stream(args)

    made: Processor = type("Awaited", (Processor,), {"process_output_stream": process_output_stream})(
        guard.id
    )
    return made
