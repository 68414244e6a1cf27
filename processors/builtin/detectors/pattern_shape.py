r"""Reads a pattern far enough to know how long its matches can be and what an unfinished match looks like.

The second is what streaming needs: for `foo(bar)?` an unfinished match is "", "f", "fo", "foo", "foob" or "fooba" at the
end of the text. `unfinished_pattern` writes that as a pattern of its own; searched from the left and anchored at the end,
it gives the earliest place where a match may still be under way. A position that looks at the next character
(`\b`, `$`) counts as unfinished as long as there is no next character.

Grammar: RE2's (github.com/google/re2/wiki/Syntax), plus look-around for patterns of our own that run on `re`. Character
classes are copied, not understood. Whether a pattern is valid is for its engine to say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, TypeAlias


class PatternError(ValueError):
    """The pattern cannot be used. The message says where and what to write instead."""


@dataclass(slots=True)
class Atom:
    """Matches exactly one character."""

    text: str


@dataclass(slots=True)
class Look:
    """Matches a position. `ahead`: the next character decides."""

    text: str
    ahead: bool


@dataclass(slots=True)
class Series:
    items: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class Choice:
    options: list[Node]


@dataclass(slots=True)
class Repeat:
    item: Node
    low: int
    high: int | None


Node: TypeAlias = Atom | Look | Series | Choice | Repeat

_TOKEN: Final = re.compile(
    r"""\\Q.*?(?:\\E|\Z)                                      # quoted text
      | \\[pP](?:\{[^}]*\}|.) | \\x(?:\{[^}]*\}|..) | \\u....  # one character with an argument
      | \\.                                                   # one escaped character, or a position
      | \[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]               # a class
      | \(\?P?<(?![=!])\w+> | \(\?P?<?[=!] | \(\?[a-zA-Z-]*[:)] | \(   # groups, look-around, flags
      | \{\d+(?:,\d*)?\} | .""",
    re.VERBOSE | re.DOTALL,
)
_POSITIONS: Final = {"^": False, "$": True, "\\A": False, "\\z": True, "\\Z": True, "\\b": True, "\\B": True}


class _Parser:
    def __init__(self, pattern: str) -> None:
        self.tokens = [match.group() for match in _TOKEN.finditer(pattern)]
        self.at = 0

    def peek(self) -> str | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def choice(self, flags: str) -> Node:
        options: list[Node] = []
        while True:
            series, flags = self.series(flags)
            options.append(series)
            if self.peek() != "|":
                return options[0] if len(options) == 1 else Choice(options)
            self.at += 1

    def series(self, flags: str) -> tuple[Series, str]:
        items: list[Node] = []
        while (token := self.peek()) is not None and token not in ("|", ")"):
            self.at += 1
            if token.startswith("(?") and token.endswith(")"):
                flags = _with_flags(flags, token[2:-1])
            elif token.startswith("("):
                items.append(self.quantified(self.group(token, flags)))
            elif token.startswith("\\Q"):
                quoted = [Atom(_flagged(re.escape(c), flags)) for c in token[2:].removesuffix("\\E")]
                items += [*quoted[:-1], self.quantified(quoted[-1])] if quoted else []
            elif token in _POSITIONS:
                items.append(self.quantified(Look(_flagged(token, flags), _POSITIONS[token])))
            else:
                items.append(self.quantified(Atom(_flagged(token, flags))))
        return Series(items), flags

    def group(self, token: str, flags: str) -> Node:
        if token[-1] in "=!":
            start = self.at
            self.choice(flags)
            body = "".join(self.tokens[start : self.at])
            node: Node = Look(f"{token}{body})", ahead="<" not in token)
        else:
            inner = (
                _with_flags(flags, token[2:-1]) if token.startswith("(?") and token.endswith(":") else flags
            )
            node = self.choice(inner)
        if self.peek() != ")":
            raise PatternError(
                "a bracket ( is never closed; add the missing ) or write \\( for the character"
            )
        self.at += 1
        return node

    def quantified(self, node: Node) -> Node:
        token = self.peek()
        if token in ("*", "+", "?"):
            low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[token]
        elif token is not None and len(token) > 2 and token[0] == "{":
            first, comma, last = token[1:-1].partition(",")
            low, high = int(first), int(last) if last else None if comma else int(first)
        else:
            return node
        self.at += 1
        if self.peek() in ("?", "+"):  # lazy or possessive: the set of matches is the same
            self.at += 1
        return self.quantified(Repeat(node, low, high))


def _with_flags(flags: str, change: str) -> str:
    on, _, off = change.partition("-")
    return "".join(sorted((set(flags) | set(on)) - set(off) - {"U", "P"}))


def _flagged(text: str, flags: str) -> str:
    return f"(?{flags}:{text})" if flags else text


def parse(pattern: str) -> Node:
    """The pattern's structure. Raises PatternError for unbalanced brackets."""
    parser = _Parser(pattern)
    node = parser.choice("")
    if parser.peek() is not None:
        raise PatternError("a bracket ) was never opened; remove it or write \\) for the character")
    return node


def longest_match(node: Node) -> int | None:
    """The most characters a match can have; None if there is no limit."""
    match node:
        case Atom():
            return 1
        case Look():
            return 0
        case Series(items):
            return _total([longest_match(item) for item in items])
        case Choice(options):
            lengths = [longest_match(option) for option in options]
            return None if None in lengths else max((n for n in lengths if n is not None), default=0)
        case Repeat(item, _, high):
            length = longest_match(item)
            if length == 0:
                return 0
            return None if length is None or high is None else length * high


def _total(lengths: list[int | None]) -> int | None:
    return None if None in lengths else sum(length for length in lengths if length is not None)


def _write(node: Node) -> str:
    match node:
        case Atom(text) | Look(text, _):
            return text
        case Series(items):
            return "".join(map(_write, items))
        case Choice(options):
            return f"(?:{'|'.join(map(_write, options))})"
        case Repeat(item, low, high):
            return f"(?:{_write(item)}){{{low},{'' if high is None else high}}}"


def _unfinished(node: Node) -> str | None:
    """A pattern for the proper beginnings of the node's matches, the empty one included; None if there are none."""
    match node:
        case Atom():
            return ""
        case Look(_, ahead):
            return "" if ahead else None
        case Series(items):
            rest: str | None = None
            for item in reversed(items):
                here = _unfinished(item)
                later = None if rest is None else _write(item) + rest
                if here is None:
                    rest = later
                else:
                    rest = _either([option for option in (later, here) if option is not None])
            return rest
        case Choice(options):
            begun = [text for option in options if (text := _unfinished(option)) is not None]
            return _either(begun) if begun else None
        case Repeat(item, _, high):
            inside = _unfinished(item)
            if inside is None or high == 0:
                return None
            return f"(?:{_write(item)}){{0,{'' if high is None else high - 1}}}{inside}"


def _either(options: list[str]) -> str:
    """One of the options. An option that is empty stands last, so that longer ones are tried first."""
    unique = list(dict.fromkeys(options))
    if len(unique) == 1:
        return unique[0]
    filled = [option for option in unique if option]
    body = f"(?:{'|'.join(filled)})"
    return f"{body}?" if len(filled) < len(unique) else body


def unfinished_pattern(node: Node) -> str:
    """A pattern for an unfinished match at the end of the text, without its end anchor. It matches the empty text too."""
    return _unfinished(node) or ""
