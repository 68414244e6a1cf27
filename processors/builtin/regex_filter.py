"""Blocks or redacts what patterns match. Patterns run on RE2: linear time, whatever an admin writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from processors.builtin.detectors.pattern_rules import (
    LONGEST_STREAMED_MATCH,
    AdminPattern,
    PatternMatcher,
    PatternRule,
    compile_pattern,
)
from processors.builtin.screening import Screen, ScreenOptions, Strategy
from processors.engine.ports import BuildContext
from processors.engine.registry import Options, ProcessorKind, Registry

SLUG: Final = "regex-filter"
MOST_RULES: Final = 100

PRESETS: Final[dict[str, tuple[tuple[str, str, str], ...]]] = {
    "pii": (
        ("email", r"[A-Za-z0-9\x{C0}-\x{24F}._%+-]{1,64}(?:@(?:[A-Za-z0-9\x{C0}-\x{24F}-]{1,63}\.){1,5}[A-Za-z]{2,24}){1,2}", "[EMAIL]"),
        ("phone", r"(?:\+\d{1,3}[ .-]?)?\(?\b\d{3}\)?[ .-]?\d{3}[ .-]?\d{4}\b", "[PHONE]"),
        ("ssn", r"\b\d{3}-\d{2}-\d{4}\b", "[SSN]"),
        ("credit-card", r"\b(?:\d{4}[ -]?){3}\d{4}\b|\b3[47]\d{2}[ -]?\d{6}[ -]?\d{5}\b", "[CREDIT_CARD]"),
    ),
    "secrets": (
        ("api-key", r"\b(?:sk|pk|rk)[-_](?:(?:proj|ant|live|test)[-_])?[A-Za-z0-9_-]{16,200}", "[API_KEY]"),
        ("bearer-token", r"(?i)\bbearer [a-z0-9._~+/-]{16,600}=?=?", "[BEARER_TOKEN]"),
        ("aws-key", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", "[AWS_KEY]"),
    ),
    "urls": (("url", r"\bhttps?://[^\s<>\"'\[\]]{1,600}", "[URL]"),),
}  # fmt: skip
"""Preset → (rule, RE2 pattern, replacement)."""


class RegexRule(Options):
    """One pattern."""

    name: str = Field(title="Name", description="Shown in violations instead of what was matched.", min_length=1, max_length=60)  # fmt: skip
    pattern: str = Field(
        title="Pattern", min_length=1,
        description="RE2 syntax. \\d and \\w mean ASCII; write [\\pL\\pN_] for letters and digits of any script. Blanks at the start and end count.",
        json_schema_extra={"x-widget": "pattern"},
    )  # fmt: skip
    replacement: str = Field("[REDACTED]", title="Replacement", description="Stands in place of a match when redacting.", max_length=200)  # fmt: skip

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        compile_pattern(pattern)
        return pattern


class RegexFilterOptions(ScreenOptions):
    """The rules, where they hold, and what happens."""

    long_matches: Literal["refuse", "end-of-block"] = Field(
        "refuse", title="Patterns without a longest match",
        description=f"A pattern such as “secret.*” can go on without end, so streamed text would wait for it for ever. Refuse it here "
        f"(write a limit: .{{0,200}}; at most {LONGEST_STREAMED_MATCH} characters), or judge whole text blocks, which shows an answer only when it is complete.",
        json_schema_extra={"x-group": "Streaming", "x-advanced": True, "x-labels": {"refuse": "Refuse when saved", "end-of-block": "Judge whole text blocks"}},
    )  # fmt: skip
    rules: list[RegexRule] = Field(default_factory=list, title="Rules", description="Your own patterns.", max_length=MOST_RULES)  # fmt: skip
    presets: list[Literal["pii", "secrets", "urls"]] = Field(default_factory=list, title="Ready-made rules", description="Simple formats. The personal data and secrets guardrails know many more and check them.", json_schema_extra={"x-labels": {"pii": "Personal data", "secrets": "Secrets", "urls": "Web addresses"}})  # fmt: skip
    strategy: Strategy = Field("block", title="What to do", description="Block the run, ask for another answer, redact matches, withhold the message, or only report.", json_schema_extra={"x-labels": {"retry": "Ask for another answer"}})  # fmt: skip
    phase: Literal["all", "input", "output"] = Field("all", title="Direction", description="What people write, what the agent answers, or both.", json_schema_extra={"x-group": "Where"})  # fmt: skip

    @field_validator("rules")
    @classmethod
    def _rules_can_be_streamed(cls, rules: list[RegexRule], values: ValidationInfo) -> list[RegexRule]:
        names = [rule.name for rule in rules]
        if doubled := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"Two rules are called {doubled!r}; give each its own name.")
        if values.data.get("long_matches") == "refuse":
            for rule in rules:
                if _too_long(compile_pattern(rule.pattern)):
                    raise ValueError(
                        f"The rule {rule.name!r} can match a text without end, so streamed text would wait too long. Write limits such as "
                        f".{{0,200}} instead of .* (at most {LONGEST_STREAMED_MATCH} characters in all), or choose to judge whole text blocks."
                    )
        return rules

    @model_validator(mode="after")
    def _rules_can_work(self) -> RegexFilterOptions:
        if not self.rules and not self.presets:
            raise ValueError("There is no rule; write one or choose ready-made rules.")
        matcher = _matcher(self)
        if self.strategy == "redact":
            for rule in self.rules:
                if matcher.find(rule.replacement, 0):
                    raise ValueError(f"The replacement of {rule.name!r} is matched by a rule itself; choose another replacement.")  # fmt: skip
        return self


def _matcher(options: RegexFilterOptions) -> PatternMatcher:
    rules = [PatternRule(rule.name, compile_pattern(rule.pattern), rule.replacement, rule.name) for rule in options.rules]  # fmt: skip
    for preset in dict.fromkeys(options.presets):
        rules += [
            PatternRule(name, compile_pattern(pattern), put, name) for name, pattern, put in PRESETS[preset]
        ]
    return PatternMatcher(rules, whole_blocks=any(_too_long(rule.pattern) for rule in rules))


def _too_long(pattern: AdminPattern) -> bool:
    return pattern.endless or (pattern.longest or 0) > LONGEST_STREAMED_MATCH


class RegexFilter(Screen):
    """All rules as one matcher."""

    subject = "Refused patterns"

    def __init__(self, id: str, options: RegexFilterOptions, context: BuildContext) -> None:
        super().__init__(id, options, _matcher(options), context)
        self._phase = options.phase

    def screens(self, stage: Literal["input", "output"]) -> bool:
        return self._phase in ("all", stage)

    def reason(self, types: Sequence[str], rules: Sequence[str]) -> str:
        return f"The text matches a refused pattern: {', '.join(dict.fromkeys(rules))}."


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> RegexFilter:
        return RegexFilter(id, options, context)

    registry.register(ProcessorKind(
        slug=SLUG, title="Pattern filter", description="Stops or redacts what patterns match, also across chunks. Patterns run in linear time.",
        options=RegexFilterOptions, factory=build, stages=frozenset({"input", "output"}), redacts=True, group="Words and patterns",
    ))  # fmt: skip
