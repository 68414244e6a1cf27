"""Finds encoded runs in text and decodes those that say something in letters."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Final
from urllib.parse import unquote

LONGEST_RUN: Final = 50_000

RUNS: Final[dict[str, re.Pattern[str]]] = {
    "base64": re.compile(r"(?<![A-Za-z0-9+/_-])(?:[A-Za-z0-9+/_-]{16,50000})={0,2}"),
    "base32": re.compile(r"(?<![A-Za-z0-9])[A-Z2-7]{24,50000}={0,6}"),
    "hex": re.compile(r"(?<![0-9A-Fa-f])(?:(?:0x)?[0-9A-Fa-f]{2}[ ,:]?){10,25000}(?![0-9A-Za-z])"),
    "binary": re.compile(r"(?<![0-9])(?:[01]{7,8}[ ,]?){4,6000}(?![0-9])"),
    "ascii85": re.compile(r"<~[!-u\sz]{10,50000}~>"),
    "base85": re.compile(r"(?<!\S)[0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]{40,50000}(?!\S)"),
    "morse": re.compile(r"(?<!\S)(?:[.\-–—]{1,6}(?: / | {1,3}|/)?){8,20000}"),
    "percent": re.compile(r"[\w.,;:+@/&=?-]{0,200}(?:%[0-9A-Fa-f]{2}[\w.,;:+@/&=?-]{0,200}){3,5000}"),
    "escapes": re.compile(r"(?:\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|&#x?[0-9A-Fa-f]{1,6};){5,10000}"),
}  # fmt: skip
SIGNS: Final[dict[str, re.Pattern[str]]] = {
    "base64": re.compile(r"[A-Za-z0-9+/_-]{16}"),
    "base32": re.compile(r"[A-Z2-7]{24}"),
    "hex": re.compile(r"[0-9A-Fa-f]{20}|(?:[0-9A-Fa-f]{2}[ ,:]){9}|0x[0-9A-Fa-f]{2}"),
    "binary": re.compile("[01]{7}"),
    "ascii85": re.compile("<~"),
    "base85": re.compile(r"\S{40}"),
    "morse": re.compile(r"[.\-–—]{2} [.\-–—]{1,6} [.\-–—]"),
    "percent": re.compile("%[0-9A-Fa-f]{2}"),
    "escapes": re.compile(r"\\[ux]|&#"),
}
"""What a run of an encoding contains: quicker to look for than the run."""
_MORSE: Final = dict(
    zip(
        [
            ".-",
            "-...",
            "-.-.",
            "-..",
            ".",
            "..-.",
            "--.",
            "....",
            "..",
            ".---",
            "-.-",
            ".-..",
            "--",
            "-.",
            "---",
            ".--.",
            "--.-",
            ".-.",
            "...",
            "-",
            "..-",
            "...-",
            ".--",
            "-..-",
            "-.--",
            "--..",
            "-----",
            ".----",
            "..---",
            "...--",
            "....-",
            ".....",
            "-....",
            "--...",
            "---..",
            "----.",
            ".-.-.-",
            "--..--",
            "..--..",
        ],
        "abcdefghijklmnopqrstuvwxyz0123456789.,?",
        strict=True,
    )
)
_WORDY: Final = re.compile(r"[^\W\d_]{3,}")
_ESCAPE: Final = re.compile(r"\\u([0-9A-Fa-f]{4})|\\x([0-9A-Fa-f]{2})|&#x([0-9A-Fa-f]{1,6});|&#(\d{1,7});")


def decoded(name: str, run: str) -> str | None:
    """What a run says, or None if it says nothing: keys, hashes, images and ids decode to noise."""
    try:
        text = _DECODERS[name](run[:LONGEST_RUN])
    except (ValueError, binascii.Error):
        return None
    return text if _reads_like_text(text) else None


def _reads_like_text(text: str) -> bool:
    """Mostly printable, with words in it."""
    if len(text) < 4 or not _WORDY.search(text):
        return False
    odd = sum(not (character.isprintable() or character in "\n\r\t") for character in text)
    plain = sum(character.isalpha() or character in " .,'\n" for character in text)
    return odd * 20 <= len(text) and plain * 10 >= len(text) * 6


def _utf(data: bytes) -> str:
    if data.count(0) * 3 > len(data):
        return data.decode("utf-16-le" if data[1:2] == b"\0" else "utf-16-be")
    return data.decode("utf-8")


def _base64(run: str) -> str:
    body = run.rstrip("=").translate(str.maketrans("-_", "+/"))
    body = body[: len(body) // 4 * 4] if len(body) % 4 == 1 else body
    return _utf(base64.b64decode(body + "=" * (-len(body) % 4)))


def _base32(run: str) -> str:
    body = run.rstrip("=")
    body = body[: len(body) - (1 if len(body) % 8 in (1, 3, 6) else 0)]
    return _utf(base64.b32decode(body + "=" * (-len(body) % 8)))


def _binary(run: str) -> str:
    bits = re.sub(r"[ ,]", "", run)
    size = 8 if len(bits) % 8 == 0 or max(map(len, re.split(r"[ ,]", run))) == 8 else 7
    return bytes(int(bits[at : at + size], 2) for at in range(0, len(bits) - size + 1, size)).decode("utf-8")


def _morse(run: str) -> str:
    words = re.split(r" ?/ ?| {3}", run.replace("–", "-").replace("—", "-").strip())
    return " ".join("".join(_MORSE[sign] for sign in word.split() if sign in _MORSE) for word in words)


def _escape(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    value = int(code, 16) if code else int(match[4])
    return chr(value) if value < 0x110000 else "\ufffd"


_DECODERS: Final[dict[str, Callable[[str], str]]] = {
    "base64": _base64,
    "base32": _base32,
    "hex": lambda run: _utf(bytes.fromhex(re.sub(r"0x|[ ,:]", "", run))),
    "binary": _binary,
    "ascii85": lambda run: _utf(base64.a85decode(run, adobe=True)),
    "base85": lambda run: _utf(base64.b85decode(run)),
    "morse": _morse,
    "percent": lambda run: unquote(run.replace("+", " "), errors="strict"),
    "escapes": lambda run: _ESCAPE.sub(_escape, run),
}
