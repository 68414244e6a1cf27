"""Checks that tell personal numbers from other numbers: check digits, national rules, and the words before them."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from importlib import import_module
from typing import Final

import phonenumbers
from stdnum import luhn

from processors.builtin.detectors.candidates import Span, before

_DIGITS: Final = re.compile(r"\d+")
_BLANK: Final = re.compile(" ")
_BIRTH: Final = re.compile(
    r"\b(?:born|birth|birthday|birthdate|dob|d\.o\.b|geboren|geb\b|geburt\w*|né|née|naissance|nac(?:ido|ida|imiento)|nascid[oa]|nascimento|nat[oa]|nascita)\b"
)
_CALL: Final = re.compile(
    r"\b(?:phone|telephone|tel|mobile|mobil|cell|cellphone|fax|call|dial|ring|text|sms|whatsapp|signal|desk|office|hotline|landline|contact|"
    r"answering|reach|messages?|registered|telefon|handy|rufnummer|téléphone|teléfono|móvil|cellulare|telefono|telefone)\b"
)
MOST_ENDS: Final = 8
"""Ends that are tried for a number with something behind it."""
_SOCIAL: Final = re.compile(r"\b(?:ssn|social security|soc\.? sec)\b")
_VERSION: Final = re.compile(r"\b(?:version|release|build|v|ver)\.? ?$")

_DATE_OR_ADDRESS: Final = re.compile(
    r"(?:19|20)\d\d[-/. ](?:0\d|1[0-2])[-/. ][0-3]\d\b|[0-3]?\d[-/.][0-3]?\d[-/.](?:19|20)?\d\d(?!\d)"
    r"|\d{1,3}(?:\.\d{1,3}){3}$"
)

IBAN_LENGTHS: Final[dict[str, int]] = {
    country: int(length)
    for length, countries in {
        15: "NO", 16: "BE", 18: "DK FI FO GL NL SD", 19: "MK SI", 20: "AT BA EE KZ LT LU MN XK", 21: "CH HR LI LV",
        22: "BG BH CR DE GB GE IE ME RS VA", 23: "AE GI IL IQ OM SO TL", 24: "AD CZ DZ ES MD PK RO SA SE SK TN VG", 25: "LY PT ST",
        26: "IS TR", 27: "BI DJ FR GR IT MC MR SM", 28: "AL AZ BY CY DO GT HN HU LB NI PL SV", 29: "BR EG PS QA UA", 30: "JO KW MU YE",
        31: "MT SC", 32: "LC", 33: "RU",
    }.items()
    for country in countries.split()
}  # fmt: skip
"""Characters of an IBAN by country, from the SWIFT registry."""


def digits_of(text: str) -> str:
    return "".join(_DIGITS.findall(text))


def card(text: str, start: int, end: int) -> Span | None:
    """Payment cards: issuer prefix, length and the Luhn digit. What follows behind a separator may be another number."""
    if text[start] not in "123456":
        return None
    separators = [at for at in range(end - 1, start + 11, -1) if text[at] in " -"]
    for stop in (end, *separators[:MOST_ENDS]):
        digits = digits_of(text[start:stop])
        if len(digits) < 12:
            break
        if _issuer_fits(digits) and luhn.is_valid(digits) and len(set(digits)) > 1:
            return start, stop
    return None


def _issuer_fits(digits: str) -> bool:
    size, two, three, four = len(digits), int(digits[:2]), int(digits[:3]), int(digits[:4])
    if digits[0] == "4":
        return size in (13, 16, 19)
    if 51 <= two <= 55 or 2221 <= four <= 2720 or two == 35:
        return size == 16
    if two in (34, 37) or four in (1800, 2131):
        return size == 15
    if two in (36, 38, 39) or 300 <= three <= 305:
        return size in (14, 16)
    return (two == 50 or 56 <= two <= 69) and 12 <= size <= 19


def iban(text: str, start: int, end: int) -> Span | None:
    """IBANs, with blanks or without: the country's length and the remainder by 97."""
    length = IBAN_LENGTHS.get(text[start : start + 2].upper())
    if length is None:
        return None
    compact, at = [], start
    while at < end and len(compact) < length:
        if text[at].isalnum():
            compact.append(text[at].upper())
        at += 1
    if len(compact) < length or (at < len(text) and text[at].isalnum()):
        return None
    number = "".join(compact[4:] + compact[:4])
    value = "".join(str(int(character, 36)) for character in number)
    return (start, at) if int(value) % 97 == 1 else None


def social_security(text: str, start: int, end: int) -> Span | None:
    """US social security numbers: area, group and serial that were ever given out; bare digits only with a word before."""
    digits = digits_of(text[start:end])
    if digits[:3] in ("000", "666") or digits[0] == "9" or digits[3:5] == "00" or digits[5:] == "0000":
        return None
    if end - start == len(digits) and not _SOCIAL.search(before(text, start)):
        return None
    return start, end


def ip4(text: str, start: int, end: int) -> Span | None:
    numbers = text[start:end].split(".")
    if len(numbers) != 4 or any(int(number) > 255 for number in numbers):
        return None
    return None if _VERSION.search(before(text, start)) else (start, end)


def ip6(text: str, start: int, end: int) -> Span | None:
    address = text[start:end]
    if sum(bool(part) for part in address.split(":")) < 3 and not address.startswith("fe80:"):
        return None
    try:
        ipaddress.IPv6Address(address)
    except ValueError:
        return None
    return start, end


def birth_date(text: str, start: int, end: int) -> Span | None:
    """Dates with a word of birth before them."""
    return (start, end) if _BIRTH.search(before(text, start)) else None


def web_address(text: str, start: int, end: int) -> Span | None:
    """Leaves the punctuation of the sentence outside."""
    address = text[start:end].rstrip(".,;:!?'\"*_")
    while address.endswith(")") and address.count(")") > address.count("("):
        address = address[:-1].rstrip(".,;:!?'\"*_")
    return start, start + len(address)


def bitcoin(text: str, start: int, end: int) -> Span | None:
    from stdnum import bitcoin as number

    return (start, end) if number.is_valid(text[start:end]) else None


def labelled_phone(text: str, start: int, end: int) -> Span | None:
    """Numbers with a word such as "fax" behind them."""
    return (start, end) if _phone_like(text[start:end], 6) else None


def phone_check(regions: tuple[str, ...]) -> Callable[[str, int, int], Span | None]:
    """Telephone numbers: international ones, those that look like one in print, valid ones of `regions` after a word."""

    def check(text: str, start: int, end: int) -> Span | None:
        called = bool(_CALL.search(before(text, start)))
        for stop in _possible_ends(text, start, end):
            number = text[start:stop]
            if not _phone_like(number, 7) or (_thousands(number) and not called):
                continue
            if called or _printed_like_a_phone(number):
                return start, stop
            if number[0] == "+" and _possible(number, None):
                return start, stop
            if stop == end and any(_valid(number, region) for region in regions):
                return start, stop
        return None

    return check


def _possible_ends(text: str, start: int, end: int) -> list[int]:
    """Where the number may end: two numbers with a blank between them look like one."""
    ends = [match.start() for match in _BLANK.finditer(text, start, end) if text[match.start() - 1].isdigit()]
    return [end, *reversed(ends)] if len(ends) <= MOST_ENDS else [end]


def _phone_like(number: str, least: int) -> bool:
    """7 to 15 digits in groups as people write them, and no date, no decimal, no list of small numbers."""
    groups = _DIGITS.findall(number.partition("x")[0])
    digits = "".join(groups)
    if not least <= len(digits) <= 16 or len(set(digits)) == 1 or number.count("(") != number.count(")"):
        return False
    if len(digits) < 2 * len(groups) - 1 and number[0] != "+":
        return False
    return _DATE_OR_ADDRESS.match(number) is None


def _thousands(number: str) -> bool:
    """Whether the groups are those of a large number, such as 1.250.000."""
    groups = _DIGITS.findall(number)
    grouped = all(len(group) == 3 for group in groups[1:]) and not set("()+x-") & set(number)
    return grouped and len(groups) > 1 and groups[0][0] != "0" and len(groups[0]) < 3


_PRINTED: Final = re.compile(
    r"(?:\+?1[ .-]|001-)?(?:\(\d{3}\) ?|\d{3}[.-])\d{3}[ .-]\d{4}"  # North America
    r"|(?:\+|00)\d{1,3}[ .-]?\(?\d[\d ().-]{5,}\d"  # international
    r"|0\d{1,4}[ /.-]\d{2,4}(?:[ .-]\d{2,4}){1,3}|0\d{2,5}[ /-]\d{5,8}"  # trunk zero and groups
    r"|\(0?\d{1,4}\) ?\d{3,4}[ -]\d{3,4}(?:[ -]\d{2,4})?"
)


def _printed_like_a_phone(number: str) -> bool:
    return _PRINTED.fullmatch(number.partition("x")[0].rstrip()) is not None


def _possible(number: str, region: str | None) -> bool:
    try:
        return phonenumbers.is_possible_number(phonenumbers.parse(number, region))
    except phonenumbers.NumberParseException:
        return False


def _valid(number: str, region: str) -> bool:
    """Valid in the region, with separators and with the region's trunk prefix: other digits are order numbers as often."""
    digits = digits_of(number)
    prefix = phonenumbers.ndd_prefix_for_region(region, True) or ""
    if number.isdigit() or (prefix == "0" and digits[0] != "0") or len(digits) < 9:
        return False
    try:
        return bool(phonenumbers.is_valid_number_for_region(phonenumbers.parse(number, region), region))
    except phonenumbers.NumberParseException:
        return False


def national_check(module: str, words: str) -> Callable[[str, int, int], Span | None]:
    """A check of python-stdnum. words: what must stand before it; empty if the format speaks for itself."""
    context = re.compile(rf"\b(?:{words})\b") if words else None

    def check(text: str, start: int, end: int) -> Span | None:
        if context is not None and not context.search(before(text, start)):
            return None
        try:
            valid = import_module(f"stdnum.{module}").is_valid(text[start:end])
        except LookupError:  # a few of its tables have holes; such a number was never given out
            return None
        return (start, end) if valid else None

    return check
