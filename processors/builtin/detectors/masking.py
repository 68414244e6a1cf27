"""What stands in place of personal data: masks that keep the shape, hashes, placeholders. The shapes are the reference's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from processors.builtin.detectors.findings import keyed_hash

Method = Literal["mask", "hash", "placeholder", "remove"]


def redact(kind: str, text: str, method: Method, *, keep_shape: bool, hash_key: bytes) -> str:
    """The replacement for `text` of type `kind`. None of the results is found by the detectors again."""
    if method == "remove":
        return ""
    if method == "placeholder":
        return f"[{kind.upper().replace('-', '_')}]"
    if method == "hash":
        return f"[HASH:{keyed_hash(hash_key, text)[:8]}]"
    if not keep_shape:
        return "*" * min(len(text), 8)
    return _SHAPES.get(kind, _first_and_last)(text)


def _email(text: str) -> str:
    local, _, domain = text.rpartition("@")
    ending = domain.rpartition(".")[2]
    return f"{_first_and_last(local)}@****.{ending}"


def _last_four(sign: str) -> Callable[[str], str]:
    def mask(text: str) -> str:
        left = sum(character.isalnum() for character in text) - 4
        pieces = []
        for character in text:
            hidden = character.isalnum() and left > 0
            left -= character.isalnum()
            pieces.append(sign if hidden else character)
        return "".join(pieces)

    return mask


def _all(text: str) -> str:
    return "".join("*" if character.isalnum() else character for character in text)


def _wallet(text: str) -> str:
    return f"{text[:4]}{'*' * (len(text) - 8)}{text[-4:]}"


def _iban(text: str) -> str:
    return text[:2] + _last_four("*")(text[2:])


def _web(text: str) -> str:
    scheme, separator, _ = text.partition("://")
    return f"{scheme}{separator}***" if separator else "***"


def _first_and_last(text: str) -> str:
    if len(text) <= 2:
        return "*" * len(text)
    middle = "".join("*" if character.isalnum() else character for character in text[1:-1])
    return f"{text[0]}{middle}{text[-1]}"


_SHAPES: Final[dict[str, Callable[[str], str]]] = {
    "email": _email,
    "phone": _last_four("X"),
    "credit-card": _last_four("*"),
    "ssn": _last_four("*"),
    "national-id": _all,
    "uuid": _all,
    "mac-address": _all,
    "ip-address": _all,
    "date-of-birth": _all,
    "crypto-wallet": _wallet,
    "iban": _iban,
    "url": _web,
}
