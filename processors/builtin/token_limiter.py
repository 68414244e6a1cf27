"""Keeps the prompt and the answer within a number of tokens."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final, Literal

from pydantic import Field, model_validator

from processors.builtin.token_count import FILE_TOKENS, Method, RunningCount, count
from processors.engine.chunks import REASONING_DELTA, TEXT_DELTA, Chunk
from processors.engine.hooks import ProcessLLMRequestArgs, ProcessOutputStreamArgs
from processors.engine.ports import BuildContext, Prompt, PromptMessage
from processors.engine.processor import Processor
from processors.engine.registry import Options, ProcessorKind, Registry

SLUG: Final = "token-limiter"
ALL_BLOCKS: Final = "*"
PER_MESSAGE: Final = 3.8
PER_CONVERSATION: Final = 24
"""What providers add to the texts: the reference's figures."""


class TokenLimiterOptions(Options):
    """How many tokens, and what happens beyond them."""

    limit: int = Field(title="Limit", description="Tokens of the prompt (input chain) or of the answer (output chain).", ge=1, le=10_000_000)  # fmt: skip
    strategy: Literal["truncate", "abort"] = Field("truncate", title="Beyond the limit", description="Truncate: leave out the oldest messages, or end the answer. Abort: stop the run.")  # fmt: skip
    count_mode: Literal["cumulative", "part"] = Field("cumulative", title="What an answer's limit counts", description="Cumulative: the whole run. Part: each text block by itself.", json_schema_extra={"x-advanced": True})  # fmt: skip
    trim_mode: Literal["best-fit", "contiguous"] = Field("best-fit", title="Which messages go", description="Best fit: newest first, and older ones that still fit. Contiguous: nothing older than the first that does not fit.", json_schema_extra={"x-advanced": True})  # fmt: skip
    at_max_remove_tokens: int = Field(0, title="Room to make", description="Tokens that are freed beyond the limit when messages are left out, so that a provider's prompt cache lives longer.", ge=0, json_schema_extra={"x-advanced": True})  # fmt: skip
    counting: Method = Field("estimate", title="How tokens of the prompt are counted", description="Estimate: quick, within a fifth. Exact: OpenAI's vocabulary; takes a second to load.", json_schema_extra={"x-advanced": True})  # fmt: skip
    reasoning: bool = Field(True, title="Count reasoning", description="What the model thinks aloud counts towards the answer's limit.", json_schema_extra={"x-advanced": True})  # fmt: skip

    @model_validator(mode="after")
    def _room_is_left(self) -> TokenLimiterOptions:
        if self.at_max_remove_tokens >= self.limit:
            raise ValueError("The room to make is as large as the limit, so no message would be left; choose less than the limit.")  # fmt: skip
        return self


class TokenLimiter(Processor):
    """In the input chain it trims the prompt of each call (nothing stored changes), in the output chain the answer."""

    def __init__(self, id: str, options: TokenLimiterOptions) -> None:
        super().__init__(id)
        self.options = options

    # Prompt

    def process_llm_request(self, args: ProcessLLMRequestArgs) -> dict[str, Prompt] | None:
        limit, sizes = self.options.limit, [self._size(message) for message in args.prompt]
        if sum(sizes) + PER_CONVERSATION <= limit:
            return None
        systems = sum(
            size for message, size in zip(args.prompt, sizes, strict=True) if message["role"] == "system"
        )
        base = systems + PER_CONVERSATION
        detail = {
            "type": "token-limit",
            "rule": "prompt",
            "strategy": "block",
            "where": "input",
            "limit": limit,
        }
        if self.options.strategy == "abort":
            args.abort(
                f"The prompt has more than {limit} tokens.",
                metadata={**detail, "tokens": round(sum(sizes) + PER_CONVERSATION)},
            )
        if base >= limit:
            args.abort(
                f"The instructions alone have more than {limit} tokens.",
                metadata={**detail, "systemTokens": round(systems, 1)},
            )
        kept = self._kept(args.prompt, sizes, limit - base)
        if not any(args.prompt[at]["role"] != "system" for at in kept):
            args.abort(
                f"Not even the last message fits into {limit} tokens.",
                metadata={**detail, "systemTokens": round(systems, 1)},
            )
        return {"prompt": [message for at, message in enumerate(args.prompt) if at in kept]}

    def _kept(self, prompt: Prompt, sizes: list[float], room: float) -> set[int]:
        """Positions that stay: system messages, then units from the newest on. Calls and their results are one unit."""
        kept = {at for at, message in enumerate(prompt) if message["role"] == "system"}
        room = max(room - self.options.at_max_remove_tokens, 1) if self.options.at_max_remove_tokens else room
        newest = True
        for unit in reversed(_units(prompt)):
            size = sum(sizes[at] for at in unit)
            if size <= room:
                kept.update(unit)
                room -= size
            elif newest or self.options.trim_mode == "contiguous":
                break
            newest = False
        return kept

    def _size(self, message: PromptMessage) -> float:
        return PER_MESSAGE + sum(self._part_size(part) for part in _parts(message))

    def _part_size(self, part: dict[str, Any]) -> int:
        if part.get("type") == "file":
            return FILE_TOKENS
        texts = [part.get("text"), part.get("toolName"), part.get("args"), part.get("result")]
        return sum(count(text if isinstance(text, str) else json.dumps(text, ensure_ascii=False, default=str), self.options.counting) for text in texts if text is not None)  # fmt: skip

    # Answer

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk | None:
        part = args.part
        if part.type == "step-start":
            args.state["answer"] = _copy(args.state.get("accepted"))  # a withdrawn attempt does not count
            args.state["over"] = None
            return part
        if part.type == "step-finish":
            args.state["accepted"] = _copy(args.state.get("answer"))
            return part
        if part.type != TEXT_DELTA and not (part.type == REASONING_DELTA and self.options.reasoning):
            return part
        block = (part.payload or {}).get("id")
        if args.state.get("over") in (block, ALL_BLOCKS):
            return None
        counter = self._counter(args, block)
        within = counter.add(part.text, self.options.limit)
        if within == len(part.text):
            return part
        return self._beyond(args, part, within)

    def _counter(self, args: ProcessOutputStreamArgs, block: Any) -> RunningCount:
        counter: RunningCount | None = args.state.get("answer")
        if counter is None or (self.options.count_mode == "part" and args.state.get("block") != block):
            counter = args.state["answer"] = RunningCount()
        args.state["block"] = block
        return counter

    def _beyond(self, args: ProcessOutputStreamArgs, part: Chunk, within: int) -> Chunk | None:
        limit = self.options.limit
        detail = {
            "type": "token-limit",
            "rule": "answer",
            "strategy": "filter",
            "where": "text",
            "limit": limit,
        }
        if self.options.strategy == "abort":
            args.abort(f"The answer has more than {limit} tokens.", metadata={**detail, "strategy": "block"})
        args.state["over"] = (part.payload or {}).get("id")
        if self.options.count_mode == "cumulative":
            args.state["over"] = ALL_BLOCKS
            args.abort_signal.end_reply()
        args.report_violation(f"The answer was ended after {limit} tokens.", detail)
        if args.writer is not None:
            args.writer.custom({"type": "data-token-limit-reached", "transient": True, "data": {"processorId": self.id, "limit": limit}})  # fmt: skip
        return part.with_text(part.text[:within]) if within else None


def _copy(counter: RunningCount | None) -> RunningCount | None:
    if counter is None:
        return None
    made = RunningCount()
    made.tokens = counter.tokens
    return made


def _parts(message: PromptMessage) -> Iterable[dict[str, Any]]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def _units(prompt: Prompt) -> list[list[int]]:
    """Positions that belong together: an assistant's calls and the results that follow them."""
    units: list[list[int]] = []
    for at, message in enumerate(prompt):
        if message["role"] == "system":
            continue
        if message["role"] == "tool" and units:
            units[-1].append(at)
        else:
            units.append([at])
    return units


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> TokenLimiter:
        return TokenLimiter(id, options)

    registry.register(ProcessorKind(
        slug=SLUG, title="Token limit", description="Leaves out old messages when the prompt grows too long, or ends an answer that does.",
        options=TokenLimiterOptions, factory=build, stages=frozenset({"input", "output"}), group="Limits",
    ))  # fmt: skip
