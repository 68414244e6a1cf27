"""Finds keys, tokens and passwords: formats of services, private keys, addresses with a password, assignments."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, Literal

from pydantic import Field

from processors.builtin.detectors.candidates import Candidate, CandidateMatcher, Span, before
from processors.builtin.detectors.findings import Region
from processors.builtin.detectors.key_formats import API_KEYS
from processors.builtin.screening import Screen, ScreenOptions, Strategy
from processors.engine.ports import BuildContext
from processors.engine.registry import ProcessorKind, Registry

SLUG: Final = "secrets-detector"
SecretType = Literal["api-key", "private-key", "connection-string", "password", "aws-secret", "high-entropy"]

_PLACEHOLDER: Final = re.compile(
    r"(?i)^(?:\W*|[x*•.…#-]+|<.*|\{.*|\$.*|%.*|\[.*|(?:bearer|basic|digest|your|my|the|a|an|some|example|changeme|change_me|password|passwort|secret|token|none|null|true|false|required|"
    r"optional|hidden|redacted|placeholder|string|reset|field|policy|manager|hash|protected|incorrect|wrong|here|here's|forgotten)(?:[_\W].*)?)$"
)
_KEY_WORDS: Final = re.compile(r"aws|amazon|secret[_ ]?access|secret[_ ]?key")


def _worth_hiding(text: str, start: int, end: int) -> Span | None:
    """A value that somebody could use: no placeholder, no ordinary word."""
    value = text[start:end]
    if _PLACEHOLDER.match(value) or len(set(value)) < 4 or (value.isalpha() and value.islower()):
        return None
    return start, end


def _after_aws(text: str, start: int, end: int) -> Span | None:
    return (start, end) if _KEY_WORDS.search(before(text, start)) and entropy(text[start:end]) > 3.5 else None


def _random(text: str, start: int, end: int) -> Span | None:
    value = text[start:end]
    kinds = sum(
        (any(c.isdigit() for c in value), any(c.islower() for c in value), any(c.isupper() for c in value))
    )
    return (start, end) if kinds == 3 and entropy(value) > 4.2 else None


def entropy(text: str) -> float:
    """Bits a character, by how often each occurs."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())


_NAME: Final = "(?:[Pp]ass(?:word|wd|phrase|code|e)|PASS(?:WORD|WD)|[Pp]asswort|[Cc]ontraseña|[Pp]wd|PWD|[Ss]ecret(?:[_ -]?[Kk]ey)?|SECRET(?:_KEY)?|[Tt]oken|TOKEN|[Aa]pi[_ -]?[Kk]ey|API[_-]?KEY|[Aa]uth(?:orization)?|[Aa]ccess[_ -]?[Kk]ey)"
_BEGINS: Final = rf"(?<![A-Za-z])(?:{_NAME}|[Aa]pi|API|[Aa]ccess)[\"']? ?(?:is|ist|es|est|[Kk]ey|KEY)?[\"']? ?(?:is|ist|es|est)? ?[\"'`]?[^\s\"'`,;<>]{{0,200}}|[Bb]earer [A-Za-z]{{0,1000}}"
"""What an unfinished secret without a sign or a digit in it may look like, beside a single word."""
FORMATS: Final[tuple[Candidate, ...]] = (
    *API_KEYS,
    Candidate("private-key", "pem", r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----[A-Za-z0-9+/=\s:,.\\-]{20,8000}-----END [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----", None, "PRIVATE KEY"),
    Candidate("connection-string", "address with a password", r"(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+]{1,20}://[^\s:/@]{0,64}:[^\s/@]{3,128}@[^\s/@]{1,253}", None, "://"),
    Candidate("connection-string", "account key", r"(?:AccountKey|SharedAccessKey|sig)=([A-Za-z0-9+/%]{30,120}={0,2})", None, "Key=|sig=", 1),
    Candidate("password", "bearer", r"[Bb]earer ([A-Za-z0-9._~+/-]{20,1000}=?=?)", _worth_hiding, "earer ", 1),
    Candidate("password", "assignment", rf"(?<![A-Za-z]){_NAME}[\"']? ?(?:[:=]|is|=>|:=|ist|es|est) ?[\"'`]?([^\s\"'`,;<>]{{6,200}})", _worth_hiding, "[:=]|is|es", 1),
    Candidate("aws-secret", "aws", r"(?<![A-Za-z0-9/+])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])", _after_aws, "[A-Za-z0-9/+]{40}"),
    Candidate("high-entropy", "random text", r"(?<![A-Za-z0-9/+=_.-])[A-Za-z0-9/+_-]{32,128}(?![A-Za-z0-9/+=_.-])", _random, "[A-Za-z0-9/+_-]{32}"),
)  # fmt: skip
_TITLES: Final = {
    "api-key": "Keys and tokens of known services", "private-key": "Private keys (PEM)", "connection-string": "Addresses and connection strings with a password",
    "password": "Passwords and tokens behind a word such as “password:”", "aws-secret": "AWS secret keys", "high-entropy": "Any long random text (finds hashes and ids, too)",
}  # fmt: skip


class SecretsOptions(ScreenOptions):
    """Which secrets to look for and what happens."""

    detection_types: list[SecretType] = Field(
        ["api-key", "private-key", "connection-string", "password", "aws-secret"], title="Secrets",
        description="What to look for.", min_length=1, json_schema_extra={"x-labels": _TITLES},
    )  # fmt: skip
    strategy: Strategy = Field("redact", title="What to do", description="Redact, block the run, ask for another answer, withhold the message, or only report.", json_schema_extra={"x-labels": {"retry": "Ask for another answer"}})  # fmt: skip


class SecretsDetector(Screen):
    """Replaces secrets by their type; no character of them is kept anywhere."""

    subject = "A secret"

    def __init__(self, id: str, options: SecretsOptions, context: BuildContext) -> None:
        wanted = set(options.detection_types)
        matcher = CandidateMatcher(
            [candidate for candidate in FORMATS if candidate.type in wanted],
            signs=r"[\d:=_@/.+~-]", word=r"[A-Za-zñ]", begins=_BEGINS,
        )  # fmt: skip
        super().__init__(id, options, matcher, context)

    def redaction(self, region: Region, text: str) -> str:
        return f"[{region.owner.type.upper().replace('-', '_')}]"

    def reason(self, types: Sequence[str], rules: Sequence[str]) -> str:
        return f"A secret was found: {', '.join(types)}."


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> SecretsDetector:
        return SecretsDetector(id, options, context)

    registry.register(ProcessorKind(
        slug=SLUG, title="Secrets", description="Redacts or stops API keys, private keys, tokens and passwords, also across chunks.",
        options=SecretsOptions, factory=build, stages=frozenset({"input", "output"}), redacts=True, group="Personal data",
    ))  # fmt: skip
