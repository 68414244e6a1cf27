"""Patterns that people write, on RE2: linear time whatever the pattern, and able to stream.

What RE2 does not know (look-around, back references …) is refused in words when it is saved.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import re2

from processors.builtin.detectors.findings import Finding
from processors.builtin.detectors.pattern_shape import (
    Atom,
    Choice,
    Node,
    PatternError,
    Repeat,
    Series,
    longest_match,
    parse,
    unfinished_pattern,
)

LONGEST_PATTERN: Final = 1_000
"""Characters of a pattern."""
LONGEST_STREAMED_MATCH: Final = 1_000
"""Characters a match may have at most to be held back in a stream."""
MEMORY: Final = 8 << 20
"""Bytes that RE2 may use for one pattern."""
STREAM_MEMORY: Final = 64 << 20
"""Bytes that RE2 may use for the unfinished matches of all patterns together."""

_REFUSED: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(construct), advice)
    for construct, advice in (
        (r"\(\?=|\(\?!", "look-ahead is not supported; match the following text too, or write \\b for a word border"),
        (r"\(\?<=|\(\?<!", "look-behind is not supported; match the preceding text too, or write \\b for a word border"),
        (r"\\[1-9]|\(\?P=|\\k<", "back references are not supported; write the repeated part out"),
        (r"\(\?>", "atomic groups are not supported; write (?:…)"),
        (r"[*+?}]\+", "possessive repeats are not supported; leave the second + out"),
        (r"\(\?#", "comments are not supported; leave it out"),
        (r"\(\?[a-zA-Z]*x", "the x flag is not supported; write the pattern without extra blanks"),
        (r"\\Z", "write \\z for the end of the text"),
        (r"\\u[0-9A-Fa-f]{4}", "write \\x{…} instead of \\u…"),
        (r"\\C", "\\C splits characters into bytes; write . for any character"),
        (r"\(\?\(", "conditions are not supported; write the two cases with |"),
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AdminPattern:
    """A pattern that RE2 accepted.

    longest: characters of its longest match, None without limit. endless: a match can go on over blanks without limit,
    so ordinary text would never end it; a match without limit that ends at a blank is no trouble.
    """

    source: str
    compiled: Any
    node: Node
    longest: int | None
    endless: bool


def compile_pattern(pattern: str) -> AdminPattern:
    """Check and compile a pattern. Raises PatternError with the place and what to write instead."""
    if len(pattern) > LONGEST_PATTERN:
        raise PatternError(f"The pattern has {len(pattern)} characters; at most {LONGEST_PATTERN} are allowed. Split it into several rules.")  # fmt: skip
    for construct, advice in _REFUSED:
        if (found := construct.search(pattern)) and not _escaped(pattern, found.start()):
            raise PatternError(f"At character {found.start() + 1} ({found.group()}): {advice}.")
    try:
        compiled = re2.compile(pattern, _options())
    except re2.error as problem:
        raise PatternError(_explain(problem, pattern)) from None
    if compiled.search("") is not None:
        raise PatternError("The pattern matches the empty text, so it would match everywhere; ask for at least one character.")  # fmt: skip
    try:
        node = parse(pattern)
    except PatternError as problem:
        raise PatternError(f"The pattern can't be used: {problem}.") from None
    longest = longest_match(node)
    return AdminPattern(pattern, compiled, node, longest, longest is None and _endless(node))


def _endless(node: Node) -> bool:
    """Whether a repeat without limit can match a blank."""
    match node:
        case Series(items):
            return any(map(_endless, items))
        case Choice(options):
            return any(map(_endless, options))
        case Repeat(item, _, high):
            return _endless(item) or (high is None and any(map(_matches_a_blank, _atoms(item))))
        case _:
            return False


def _atoms(node: Node) -> list[Atom]:
    match node:
        case Atom():
            return [node]
        case Series(items) | Choice(items):
            return [atom for item in items for atom in _atoms(item)]
        case Repeat(item, _, _):
            return _atoms(item)
        case _:
            return []


def _matches_a_blank(atom: Atom) -> bool:
    return re2.compile(atom.text, _options()).fullmatch(" ") is not None


def _options(memory: int = MEMORY) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = memory
    return options


def _escaped(pattern: str, at: int) -> bool:
    """Whether the character at this place is escaped by an odd number of backslashes before it."""
    return (at - len(pattern[:at].rstrip("\\"))) % 2 == 1


def _explain(problem: Exception, pattern: str) -> str:
    reason = problem.args[0] if problem.args else ""
    words = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
    cause = words.rpartition(": ")[2]
    at = pattern.find(cause)
    if "repetition size" in words or "too large" in words or "nested" in words:
        return f"A repeat is too large ({cause or words}): at most 1000, repeats inside repeats multiplied."
    place = f"At character {at + 1} ({cause}): " if cause and at >= 0 and cause != words else ""
    return f"{place}the pattern can't be read: {words}."


@dataclass(frozen=True, slots=True)
class PatternRule:
    """One rule of a `PatternMatcher`. replacement: what stands in place of a match."""

    name: str
    pattern: AdminPattern
    replacement: str | None = None
    type: str = "pattern"


class PatternMatcher:
    """Several RE2 patterns as one matcher. Raises PatternError if they are too large together to be streamed."""

    look_back = 1

    def __init__(self, rules: Sequence[PatternRule], *, whole_blocks: bool = False) -> None:
        self._rules = tuple(rules)
        self._any = _union([rule.pattern.source for rule in rules]) if len(rules) > 1 else None
        self._whole_blocks = whole_blocks
        lengths = [rule.pattern.longest for rule in rules]
        self._tail = None if None in lengths else max((n for n in lengths if n is not None), default=0) + 1
        if not self._whole_blocks:
            self._unfinished = _unfinished_union([rule.pattern.node for rule in rules])
            self._may_begin = _first_characters(self._unfinished)

    def find(self, text: str, start: int) -> list[Finding]:
        if self._any is not None and self._any.search(text, start) is None:
            return []
        return [
            Finding(match.start(), match.end(), rule.type, rule.name, rule.replacement)
            for rule in self._rules
            for match in rule.pattern.compiled.finditer(text, start)
            if match.end() > match.start()
        ]

    def open_from(self, text: str, start: int) -> int:
        if self._whole_blocks:
            return start
        tail = start if self._tail is None else max(start, len(text) - self._tail)
        begin = self._may_begin.search(text, tail)
        if begin is None:
            return len(text)
        match = self._unfinished.search(text, begin.start())
        return match.start() if match is not None else len(text)


def _union(sources: Sequence[str]) -> Any:
    """All patterns as one, to learn cheaply that none matches; None if RE2 finds it too large."""
    try:
        return re2.compile("|".join(f"(?:{source})" for source in sources), _options())
    except re2.error:
        return None


def _unfinished_union(nodes: Sequence[Node]) -> Any:
    pattern = "|".join(f"(?:{unfinished_pattern(node)})" for node in nodes)
    try:
        return re2.compile(f"(?:{pattern})\\z", _options(STREAM_MEMORY))
    except re2.error:
        raise PatternError("These patterns are too large to be streamed; use smaller repeats, or judge at the end of the block.") from None  # fmt: skip


def _first_characters(unfinished: Any) -> re.Pattern[str]:
    """Where an unfinished match may begin: a class of ASCII characters and everything else beyond ASCII."""
    first = [
        chr(code)
        for code in range(128)
        if any(_begins(unfinished, before, chr(code)) for before in ("", "a", " ", "\n", "-"))
    ]
    return re.compile("[" + "".join(re.escape(character) for character in first) + "\x80-\U0010ffff]")


def _begins(unfinished: Any, before: str, character: str) -> bool:
    match = unfinished.search(before + character, len(before))
    return match is not None and match.start() == len(before)
