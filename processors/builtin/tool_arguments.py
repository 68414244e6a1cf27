"""Rules for what tools may be called with: allowed and denied values, patterns, ranges, lengths, a JSON Schema."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Callable, Iterator
from typing import Any, Final, Literal

import jsonschema
from pydantic import Field, field_validator, model_validator

from processors.builtin.detectors.findings import keyed_hash
from processors.builtin.detectors.pattern_rules import compile_pattern
from processors.engine.chunks import Chunk
from processors.engine.hooks import ProcessOutputStreamArgs
from processors.engine.ports import BuildContext
from processors.engine.processor import Processor
from processors.engine.registry import Options, ProcessorKind, Registry

SLUG: Final = "tool-arguments"
Test = Literal[
    "matches", "matches-not", "one-of", "none-of", "at-least", "at-most", "longest", "required", "forbidden", "schema"
]  # fmt: skip
_TEST_TITLES: Final = {
    "matches": "must match the pattern", "matches-not": "must not match the pattern", "one-of": "must be one of the values", "none-of": "must be none of the values",
    "at-least": "must be at least the number", "at-most": "must be at most the number", "longest": "has at most so many characters or items",
    "required": "must be given", "forbidden": "must not be given", "schema": "must match the JSON Schema",
}  # fmt: skip
_PATTERN, _VALUES, _NUMBER = (
    ("matches", "matches-not"),
    ("one-of", "none-of"),
    ("at-least", "at-most", "longest"),
)


class ToolArgumentRule(Options):
    """One condition on one argument."""

    tool: str = Field(title="Tool", description="Name of the tool; * stands for any letters: send_*.", min_length=1, max_length=100)  # fmt: skip
    argument: str = Field("", title="Argument", description="Name of the argument; dots lead inside: filter.country; * stands for every item. Empty: all arguments, wherever they stand.", max_length=200)  # fmt: skip
    test: Test = Field(title="Condition", description="What must be true of it.", json_schema_extra={"x-labels": _TEST_TITLES})  # fmt: skip
    pattern: str = Field("", title="Pattern", description="RE2; searched anywhere in the text. (?i) ignores case; ^…$ asks for the whole text.", json_schema_extra={"x-widget": "pattern", "x-show-if": {"test": list(_PATTERN)}})  # fmt: skip
    values: list[str] = Field(default_factory=list, title="Values", description="One per line, compared exactly.", max_length=1000, json_schema_extra={"x-show-if": {"test": list(_VALUES)}})  # fmt: skip
    number: float | None = Field(None, title="Number", description="The limit.", json_schema_extra={"x-show-if": {"test": list(_NUMBER)}})  # fmt: skip
    schema_text: str = Field("", title="JSON Schema", description="As JSON.", max_length=20_000, json_schema_extra={"x-widget": "textarea", "x-show-if": {"test": ["schema"]}})  # fmt: skip
    message: str = Field("", title="Message", description="What the model is told, so that it can do better. Empty: the condition in words.", max_length=180)  # fmt: skip

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        if pattern:
            compile_pattern(pattern)
        return pattern

    @field_validator("schema_text")
    @classmethod
    def _is_a_schema(cls, text: str) -> str:
        if text.strip():
            read_schema(text)
        return text

    @model_validator(mode="after")
    def _has_what_it_compares(self) -> ToolArgumentRule:
        missing = (
            "a pattern" if self.test in _PATTERN and not self.pattern
            else "at least one value" if self.test in _VALUES and not self.values
            else "a number" if self.test in _NUMBER and self.number is None
            else "a schema" if self.test == "schema" and not self.schema_text.strip()
            else "the name of an argument" if self.test in ("required", "forbidden") and not self.argument
            else ""
        )  # fmt: skip
        if missing:
            raise ValueError(f"The condition “{_TEST_TITLES[self.test]}” needs {missing}.")
        return self


def read_schema(text: str) -> dict[str, Any]:
    """A JSON Schema object. Raises ValueError that says what is wrong with it; references to other places are refused."""
    try:
        schema = json.loads(text)
    except ValueError as problem:
        raise ValueError(f"This is no JSON: {problem}.") from None
    if not isinstance(schema, dict):
        raise ValueError('A JSON Schema is an object, such as {"type": "object"}.')
    if any(not str(reference).startswith("#") for reference in _references(schema)):
        raise ValueError("References ($ref) must point inside the schema itself, such as #/$defs/address.")
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as problem:
        raise ValueError(f"This is no JSON Schema: {problem.message}.") from None
    return schema


def _references(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key in ("$ref", "$dynamicRef"):
                yield item
            yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)


class ToolArgumentsOptions(Options):
    """The rules and what happens to a call that breaks one."""

    rules: list[ToolArgumentRule] = Field(title="Rules", description="All of them must hold.", min_length=1, max_length=200)  # fmt: skip
    strategy: Literal["refuse", "block", "warn"] = Field(
        "refuse", title="What to do",
        description="Refuse: the tool does not run, the model is told why and goes on. Block: the run ends. Report: the tool runs.",
        json_schema_extra={"x-labels": {"refuse": "Refuse the call", "block": "Block the run", "warn": "Only report"}},
    )  # fmt: skip


_Check = Callable[[Any], bool]


class ToolArguments(Processor):
    """Checks each tool call before anything else happens with it; also arguments that a person changed on approval."""

    def __init__(self, id: str, options: ToolArgumentsOptions, context: BuildContext) -> None:
        super().__init__(id)
        self._strategy, self._hash_key = options.strategy, context.hash_key
        self._rules = [(rule, _check_of(rule)) for rule in options.rules]

    def process_output_stream(self, args: ProcessOutputStreamArgs) -> Chunk:
        part = args.part
        if part.type != "tool-call":
            return part
        payload = part.payload or {}
        name = str(payload.get("toolName", ""))
        called_with = getattr(payload.get("args"), "for_tool", payload.get("args"))
        for number, (rule, check) in enumerate(self._rules, 1):
            if not fnmatch.fnmatchcase(name, rule.tool):
                continue
            broken = next((value for value in _values(called_with, rule.argument) if not check(value)), _FINE)
            if broken is _FINE:
                continue
            reason = rule.message or _in_words(rule, name)
            detail = {
                "type": "tool-arguments", "rule": f"rule {number}", "strategy": self._strategy, "where": "tool-args", "tool": name,
                "argument": rule.argument, "test": rule.test, "matches": [{"type": "tool-arguments", "rule": f"rule {number}", "start": 0, "end": len(str(broken))}],
                "excerpt": f"‹{rule.argument or 'argument'}›", "hash": keyed_hash(self._hash_key, str(broken)),
            }  # fmt: skip
            if self._strategy == "block":
                args.abort(reason, metadata=detail)
            args.report_violation(reason, detail)
            if self._strategy == "refuse":
                return part.replace(payload={**payload, "refused": reason})
        return part


_FINE: Final = object()
_MISSING: Final = object()


def _values(value: Any, path: str) -> Iterator[Any]:
    """The values at a path, `_MISSING` if there is none. An empty path: every value that is no list and no object."""
    if not path:
        yield from _leaves(value)
        return
    head, _, rest = path.partition(".")
    if head == "*" and isinstance(value, list):
        for item in value:
            yield from _values(item, rest) if rest else [item]
    elif isinstance(value, dict) and head in value:
        yield from _values(value[head], rest) if rest else [value[head]]
    else:
        yield _MISSING


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _check_of(rule: ToolArgumentRule) -> _Check:
    """Whether a value fulfils the rule. A missing value breaks only rules that need one."""
    if rule.test == "required":
        return lambda value: value is not _MISSING and value not in (None, "")
    if rule.test == "forbidden":
        return lambda value: value is _MISSING
    present = _check_present(rule)
    allows_missing = rule.test in ("matches-not", "none-of", "longest", "at-most", "at-least", "schema")
    return lambda value: allows_missing if value is _MISSING else present(value)


def _check_present(rule: ToolArgumentRule) -> _Check:
    number = rule.number or 0.0
    if rule.test in _PATTERN:
        compiled = compile_pattern(rule.pattern).compiled
        wanted = rule.test == "matches"
        return lambda value: (compiled.search(_text(value)) is not None) == wanted
    if rule.test in _VALUES:
        values, wanted = set(rule.values), rule.test == "one-of"
        return lambda value: (_text(value) in values) == wanted
    if rule.test == "longest":
        return lambda value: len(value if isinstance(value, (str, list, dict)) else str(value)) <= number
    if rule.test == "schema":
        validator = jsonschema.Draft202012Validator(read_schema(rule.schema_text))
        return lambda value: bool(validator.is_valid(value))
    at_least = rule.test == "at-least"

    def compares(value: Any) -> bool:
        try:
            given = float(value)
        except (TypeError, ValueError):
            return False
        return given >= number if at_least else given <= number

    return compares


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _in_words(rule: ToolArgumentRule, tool: str) -> str:
    what = f"The argument {rule.argument} of {tool}" if rule.argument else f"Each argument of {tool}"
    shown = f" ({', '.join(rule.values[:8])})" if rule.test == "one-of" else f" ({rule.number:g})" if rule.number is not None else ""  # fmt: skip
    return f"Refused by a guardrail: {what} {_TEST_TITLES[rule.test]}{shown}."


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> ToolArguments:
        return ToolArguments(id, options, context)

    registry.register(ProcessorKind(
        slug=SLUG, title="Tool argument rules", description="Says what tools may be called with; a call that breaks a rule does not run.",
        options=ToolArgumentsOptions, factory=build, stages=frozenset({"output"}), group="Tools",
    ))  # fmt: skip
