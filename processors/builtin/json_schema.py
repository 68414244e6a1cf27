"""Checks that an answer is JSON of a given shape, before anyone sees it."""

from __future__ import annotations

import json
import re
from typing import Any, Final, Literal

import jsonschema
from pydantic import Field, field_validator

from processors.builtin.detectors.findings import keyed_hash
from processors.builtin.tool_arguments import read_schema
from processors.engine.chunks import TEXT_DELTA, Chunk
from processors.engine.hooks import ProcessOutputStreamArgs
from processors.engine.ports import BuildContext
from processors.engine.processor import Processor
from processors.engine.registry import Options, ProcessorKind, Registry

SLUG: Final = "json-schema"
_FENCE: Final = re.compile(r"\s*```(?:json)?[ \t]*\n(.*?)\n?```\s*", re.S)
LONGEST_ANSWER: Final = 1_000_000
"""Characters that are held until the answer is complete."""


class JsonSchemaOptions(Options):
    """The shape and what happens to an answer of another shape."""

    schema_text: str = Field(title="JSON Schema", description="As JSON. References ($ref) may point inside the schema only.", min_length=2, max_length=50_000, json_schema_extra={"x-widget": "textarea"})  # fmt: skip
    code_fence: bool = Field(True, title="Allow a code fence", description="Accept JSON between ```json and ```; it is taken out of the fence.")  # fmt: skip
    strategy: Literal["retry", "block", "warn"] = Field(
        "retry", title="What to do", description="Ask for another answer and say what is wrong, block the run, or only report. Asking again needs a number of retries on the agent.",
        json_schema_extra={"x-labels": {"retry": "Ask for another answer"}},
    )  # fmt: skip

    @field_validator("schema_text")
    @classmethod
    def _is_a_schema(cls, text: str) -> str:
        read_schema(text)
        return text


class JsonSchemaCheck(Processor):
    """Holds the answer until it is complete: half a JSON value is of no use to anyone. Text before a tool call passes."""

    def __init__(self, id: str, options: JsonSchemaOptions, context: BuildContext) -> None:
        super().__init__(id)
        self._options, self._hash_key = options, context.hash_key
        self._validator = jsonschema.Draft202012Validator(read_schema(options.schema_text))

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk | list[Chunk] | None:
        part = args.part
        held: list[Chunk] = args.state.setdefault("held", [])
        if part.type == "step-start":
            held.clear()
            return part
        if part.type == TEXT_DELTA:
            held.append(part)
            if sum_of(args.state, len(part.text)) > LONGEST_ANSWER:
                args.abort(
                    f"The answer is longer than {LONGEST_ANSWER} characters, so its shape can't be checked."
                )
            return None
        if (
            part.type in ("text-start", "text-end", "reasoning-start", "reasoning-delta", "reasoning-end")
            or part.is_data
        ):
            if part.type in ("text-start", "text-end"):
                held.append(part)
                return None
            return part
        released, held[:] = list(held), []
        args.state["size"] = 0
        if part.type in ("finish", "step-finish") and any(chunk.type == TEXT_DELTA for chunk in released):
            released = self._checked(args, released)
        return [*released, part] if released else part

    def _checked(self, args: ProcessOutputStreamArgs, chunks: list[Chunk]) -> list[Chunk]:
        """The answer's chunks, out of their fence. Aborts if the answer has another shape."""
        text = "".join(chunk.text for chunk in chunks)
        fenced = _FENCE.fullmatch(text) if self._options.code_fence else None
        bare = fenced[1] if fenced else text
        fault = self._fault(bare)
        if fault is not None:
            detail = {
                "type": "json-schema", "rule": "schema", "strategy": self._options.strategy, "where": "text",
                "matches": [{"type": "json-schema", "rule": "schema", "start": 0, "end": len(text)}], "excerpt": "‹answer›",
                "hash": keyed_hash(self._hash_key, text),
            }  # fmt: skip
            reason = f"The answer must be JSON that matches the schema: {fault}."
            if self._options.strategy != "warn":
                args.abort(reason, retry=self._options.strategy == "retry", metadata=detail)
            args.report_violation(reason, detail)
            return chunks
        if fenced is None:
            return chunks
        deltas = [index for index, chunk in enumerate(chunks) if chunk.type == TEXT_DELTA]
        kept = [chunk for index, chunk in enumerate(chunks) if index not in deltas[1:]]
        kept[kept.index(chunks[deltas[0]])] = chunks[deltas[0]].with_text(bare)
        return kept

    def _fault(self, text: str) -> str | None:
        """What is wrong, by place and condition; never the values themselves."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return "it is no JSON"
        error = jsonschema.exceptions.best_match(self._validator.iter_errors(value))
        if error is None:
            return None
        place = "/".join(str(step) for step in error.absolute_path) or "the whole answer"
        return f"{place} breaks the condition {error.validator}"


def sum_of(state: dict[str, Any], more: int) -> int:
    """Characters held so far."""
    state["size"] = state.get("size", 0) + more
    return int(state["size"])


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> JsonSchemaCheck:
        return JsonSchemaCheck(id, options, context)

    registry.register(ProcessorKind(
        slug=SLUG, title="JSON answers", description="Lets only answers through that are JSON of a given shape, and asks for another one otherwise.",
        options=JsonSchemaOptions, factory=build, stages=frozenset({"output"}), redacts=True, group="Answers",
    ))  # fmt: skip
