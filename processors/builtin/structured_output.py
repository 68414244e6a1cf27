"""Makes an answer match a JSON Schema: asked of the model itself, or put into shape by a second model."""

from __future__ import annotations

import json
from typing import Annotated, Any, Final, Literal

import jsonschema
from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from processors.builtin.judge import (
    DEFAULT_TIMEOUT,
    JudgeError,
    ModelName,
    enclosed,
    json_object_in,
    reply_of,
    resolved_model,
)
from processors.engine.chunks import Chunk
from processors.engine.hooks import ProcessInputStepArgs, ProcessOutputStepArgs, ProcessOutputStreamArgs
from processors.engine.ports import BuildContext, LanguageModel, ModelRequest
from processors.engine.processor import Processor
from processors.engine.registry import Options, ProcessorKind, Registry

SLUG: Final = "structured-output"
LONGEST_SCHEMA: Final = 50_000


def _read_schema(value: Any) -> Any:
    if isinstance(value, str):
        if len(value) > LONGEST_SCHEMA:
            raise ValueError(f"The schema has {len(value)} characters; at most {LONGEST_SCHEMA} are allowed.")
        try:
            value = json.loads(value)
        except ValueError as error:
            raise ValueError(f"The schema is no JSON: {error}.") from error
    if not isinstance(value, dict) or value.get("type", "object") != "object":
        raise ValueError('The schema must describe an object: {"type": "object", "properties": {…}}.')
    try:
        jsonschema.validators.validator_for(value).check_schema(value)
    except jsonschema.SchemaError as error:
        raise ValueError(f"This is no valid JSON Schema: {error.message}.") from error
    return value


def _read_json(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if not value.strip():
        return None
    try:
        return json.loads(value)
    except ValueError as error:
        raise ValueError(f"The value is no JSON: {error}.") from error


JSONText = WithJsonSchema({"type": "string", "x-widget": "textarea"})
Schema = Annotated[dict[str, Any], BeforeValidator(_read_schema), JSONText]
"""A JSON Schema as a dictionary, or as JSON text."""


class StructuredOutputOptions(Options):
    """The shape, and what happens when the answer does not have it."""

    json_schema: Schema = Field(title="JSON Schema", description="The shape of the answer, as JSON.")
    model: ModelName | None = Field(None, title="Model that shapes", description="provider/name. Empty: the agent's own model must answer in this shape.")  # fmt: skip
    instructions: str = Field("", title="Instructions", description="What the shaping model should know.", max_length=4000, json_schema_extra={"x-widget": "textarea"})  # fmt: skip
    error_strategy: Literal["strict", "warn", "fallback"] = Field("strict", title="When it does not fit", description="Strict: ask for another answer, and stop the run if that fails. Warn: let the text pass and report. Fallback: use the value below.")  # fmt: skip
    fallback_value: Annotated[Any, BeforeValidator(_read_json), JSONText] = Field(None, title="Fallback value", description="A JSON value that matches the schema.", json_schema_extra={"x-show-if": {"error_strategy": ["fallback"]}})  # fmt: skip
    timeout: float = Field(DEFAULT_TIMEOUT, title="Time-out", description="Seconds that the shaping model may take.", gt=0, le=300, json_schema_extra={"x-advanced": True})  # fmt: skip
    budget: int = Field(2000, title="Length of the value", description="Tokens that the shaping model may answer with.", ge=50, le=50_000, json_schema_extra={"x-advanced": True})  # fmt: skip

    @model_validator(mode="after")
    def _fallback_fits(self) -> StructuredOutputOptions:
        if self.error_strategy == "fallback":
            problem = _problem(self.fallback_value, self.json_schema)
            if problem:
                raise ValueError(f"The fallback value does not match the schema: {problem}.")
        return self


class StructuredOutput(Processor):
    """In the input chain it hands the schema to the model call; in the output chain it checks or shapes the finished answer.

    The value is streamed as an `object-result` chunk with the end of its step.
    """

    def __init__(self, id: str, options: StructuredOutputOptions, model: LanguageModel | None) -> None:
        super().__init__(id)
        self.options, self._model = options, model

    def process_input_step(self, args: ProcessInputStepArgs) -> dict[str, Any] | None:
        return (
            None if self._model is not None else {"structured_output": {"schema": self.options.json_schema}}
        )

    async def process_output_step(self, args: ProcessOutputStepArgs) -> None:
        args.state.pop("value", None)
        if args.tool_calls:
            return
        value, problem = await self._value(args)
        if problem is not None:
            detail = {
                "type": "structured-output",
                "rule": "schema",
                "strategy": self.options.error_strategy,
                "where": "text",
            }
            if self.options.error_strategy == "strict":
                args.abort(
                    f"The answer does not match the schema: {problem}.",
                    retry=True,
                    metadata={**detail, "strategy": "retry"},
                )
            args.report_violation("The answer does not match the schema.", {**detail, "strategy": "warn"})
            if self.options.error_strategy == "warn":
                return
            value = self.options.fallback_value
        args.state["value"] = (value,)

    async def _value(self, args: ProcessOutputStepArgs) -> tuple[Any, str | None]:
        """The value, and what is wrong with it."""
        text = args.text
        if self._model is not None:
            text = await self._shaped(self._model, args)
        value = json_object_in(text)
        return value, "it holds no JSON object" if value is None else _problem(
            value, self.options.json_schema
        )

    async def _shaped(self, model: LanguageModel, args: ProcessOutputStepArgs) -> str:
        system = (
            "Put the facts of the text into one JSON object that matches this JSON Schema. Invent nothing. Answer with the object only.\n"
            f"{json.dumps(self.options.json_schema, ensure_ascii=False)}\n{self.options.instructions}"
        )  # fmt: skip
        request = ModelRequest(
            [{"role": "system", "content": system}, {"role": "user", "content": [{"type": "text", "text": enclosed(args.text)}]}],
            settings={"temperature": 0, "max_output_tokens": self.options.budget}, response_schema=self.options.json_schema,
        )  # fmt: skip
        try:
            return await reply_of(model, request, seconds=self.options.timeout, signal=args.abort_signal)
        except JudgeError:
            if self.options.error_strategy == "strict":
                raise
            return ""

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk | list[Chunk]:
        if args.part.type == "step-finish" and "value" in args.state:
            (value,) = args.state.pop("value")
            return [Chunk("object-result", {"object": value}), args.part]
        return args.part


def _problem(value: Any, schema: dict[str, Any]) -> str | None:
    """What does not fit, by its place only: the value may hold what nobody should read in a log."""
    try:
        jsonschema.validate(value, schema)
    except jsonschema.ValidationError as error:
        place = ".".join(map(str, error.absolute_path)) or "the object"
        return f"{place} breaks the rule “{error.validator}”"
    return None


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> StructuredOutput:
        return StructuredOutput(
            id, options, None if options.model is None else resolved_model(options.model, context)
        )

    registry.register(ProcessorKind(
        slug=SLUG, title="Structured answer", description="Makes answers match a JSON Schema, with the agent's own model or a second one.",
        options=StructuredOutputOptions, factory=build, stages=frozenset({"input", "output"}), group="Plumbing",
    ))  # fmt: skip
