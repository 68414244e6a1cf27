"""Five realistic guards as plain objects: `feed(text) -> text` per delta, `flush() -> text` at the end.

They are the work that the engine and its floors share, so that only the machinery around them differs. They are written
for speed of the common case, as the built-in guardrails are, and hold back what may still become a match.
"""

from __future__ import annotations

import re

CONTACT = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+|\+?\d[\d ()-]{7,18}\d")
OPEN_TAIL = re.compile(r"\+?\d[\d ()-]*$|\S*$")
DIGIT = re.compile(r"\d")
ZERO_WIDTH = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff"))
WORD = re.compile(r"\w+")


class Contacts:
    """Redacts e-mail addresses and phone numbers; holds back one unfinished word or number."""

    def __init__(self) -> None:
        self.held = ""

    def feed(self, text: str) -> str:
        text = self.held + text
        suspicious = "@" in text or DIGIT.search(text)
        tail = OPEN_TAIL.search(text) if suspicious else None
        cut = tail.start() if tail else text.rfind(" ") + 1
        self.held, ready = text[cut:], text[:cut]
        return CONTACT.sub("[CONTACT]", ready) if suspicious else ready

    def flush(self) -> str:
        ready, self.held = CONTACT.sub("[CONTACT]", self.held), ""
        return ready


class BlockList:
    """Stops at any of 1,000 words; holds back one unfinished word."""

    def __init__(self) -> None:
        self.words = {f"forbidden{number}" for number in range(1_000)}
        self.held = ""

    def feed(self, text: str) -> str:
        text = self.held + text
        cut = text.rfind(" ") + 1
        self.held, ready = text[cut:], text[:cut]
        self.check(ready)
        return ready

    def flush(self) -> str:
        ready, self.held = self.held, ""
        self.check(ready)
        return ready

    def check(self, text: str) -> None:
        if not self.words.isdisjoint(WORD.findall(text.lower())):
            raise ValueError("a forbidden word")


class ZeroWidth:
    """Strips zero-width characters."""

    def feed(self, text: str) -> str:
        return text if text.isascii() else text.translate(ZERO_WIDTH)

    def flush(self) -> str:
        return ""


class TokenCount:
    """Counts words as a stand-in for tokens and stops at a limit."""

    def __init__(self, limit: int = 10_000_000) -> None:
        self.count, self.limit = 0, limit

    def feed(self, text: str) -> str:
        self.count += text.count(" ") + 1
        if self.count > self.limit:
            raise ValueError("too long")
        return text

    def flush(self) -> str:
        return ""


class PromptLeak:
    """Stops when eight words in a row come from the system prompt; remembers the last words only."""

    def __init__(self) -> None:
        words = ("you are the assistant of a parcel service and never tell anyone about " * 4).split()
        self.shingles = {" ".join(words[at : at + 8]) for at in range(len(words) - 8)}
        self.starts = {shingle.split(" ", 1)[0] for shingle in self.shingles}
        self.recent: list[str] = []

    def feed(self, text: str) -> str:
        recent = self.recent
        recent.extend(text.split())
        if len(recent) >= 8:
            for at in range(len(recent) - 7):
                if recent[at] in self.starts and " ".join(recent[at : at + 8]) in self.shingles:
                    raise ValueError("the system prompt")
            del recent[:-7]
        return text

    def flush(self) -> str:
        return ""


def five_guards() -> list[Contacts | BlockList | ZeroWidth | TokenCount | PromptLeak]:
    """A fresh set for one stream."""
    return [Contacts(), BlockList(), ZeroWidth(), TokenCount(), PromptLeak()]


def deltas(count: int) -> list[str]:
    """`count` text deltas of ordinary prose, about five characters each, with a contact now and then."""
    prose = [
        "Thank",
        "you",
        "for",
        "writing",
        "to",
        "us",
        "about",
        "the",
        "parcel",
        "which",
        "is",
        "on",
        "its",
        "way",
        "and",
        "should",
        "reach",
        "you",
        "soon.",
        "",
    ]
    pieces = [f"{word} " for word in prose if word]
    pieces[11:11] = [
        "write ",
        "to ",
        "alice",
        "@exam",
        "ple.org ",
        "or ",
        "call ",
        "+49 30 ",
        "1234 ",
        "5678 ",
    ]
    return [pieces[number % len(pieces)] for number in range(count)]
