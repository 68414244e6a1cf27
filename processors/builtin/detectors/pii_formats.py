"""The formats of personal data. Names and addresses are not among them: they have no format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from processors.builtin.detectors import pii_checks as checks
from processors.builtin.detectors.candidates import Candidate, CandidateMatcher
from processors.builtin.detectors.key_formats import API_KEYS

# Letters of scripts with blanks between words. In others an address may follow a sentence directly, and no text waits.
WORD: Final = "A-Za-z0-9_\u00aa\u00b5\u00ba\u00c0-\u02af\u0370-\u058f\u05d0-\u06ff\u0900-\u0dff\u10a0-\u10ff\u1e00-\u1fff"
_MONTH: Final = (
    "(?:[Jj]an(?:uar[yi]?|\\.)?|[Ff]eb(?:ruar[yi]?|\\.)?|[Mm]ar(?:ch|\\.)?|[Mm]ärz|[Aa]pr(?:il|\\.)?|[Mm]a[yi]|[Jj]un[ei]?|[Jj]ul[yi]?|[Aa]ug(?:ust|\\.)?|"
    "[Ss]ep(?:t|tember|\\.)?|[Oo]kt(?:ober)?|[Oo]ct(?:ober|\\.)?|[Nn]ov(?:ember|\\.)?|[Dd]e[cz](?:ember|\\.)?|enero|febrero|marzo|abril|mayo|junio|julio|"
    "agosto|septiembre|octubre|noviembre|diciembre|janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre)"
)
_GAP: Final = "(?:[ .\\-/\u00a0\u2010-\u2013]?[()][ .\\-]?|[ .\\-/\u00a0\u2010-\u2013])?"
_NUMBER: Final = (
    rf"(?<![\w+./-])(?<!\d,)(?<!HASH:)(?:\+|00)?\(?\d(?:{_GAP}\d){{5,17}}(?: ?(?:x|ext\.?) ?\d{{1,6}})?"
)
_SIX: Final = r"\d(?:\D{0,3}\d){5}"  # six digits, not far from each other
_IDS: Final = r"\d(?:[ .-]?\d){5}"
_OCTETS: Final = r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3,5}(?!\w)"

FORMATS: Final[tuple[Candidate, ...]] = (
    Candidate("email", "email", rf"(?<![{WORD}.%+-])[{WORD}.%+-]{{1,64}}(?:@(?:[{WORD}-]{{1,63}}\.){{1,5}}[A-Za-z\u00c0-\u1fff][{WORD}-]{{1,40}}){{1,9}}", None, "@"),
    Candidate("credit-card", "card", r"(?<![\w.])\d(?:[ -]?\d){11,18}(?!\w)", checks.card, _SIX),
    Candidate("iban", "iban", r"(?<!\w)[A-Za-z]{2}\d{2}(?:[ -]?[A-Za-z0-9]){11,30}(?!\w)", checks.iban, r"[A-Za-z]{2}\d{2}"),
    Candidate("ssn", "us-ssn", r"(?<![\w-])(?:\d{3}-\d{2}-\d{4}|\d{3} \d{2} \d{4}|\d{9})(?![\w-])", checks.social_security, _SIX),
    Candidate("ip-address", "ipv4", _OCTETS, checks.ip4, r"\d\.\d"),
    Candidate("ip-address", "ipv6", r"(?<![\w:.])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![\w:])", checks.ip6, "[0-9A-Fa-f:]:[0-9A-Fa-f:]"),
    Candidate("mac-address", "mac", r"(?<![\w:-])(?:[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}|[0-9A-Fa-f]{2}(?:-[0-9A-Fa-f]{2}){5}|[0-9A-Fa-f]{4}(?:\.[0-9A-Fa-f]{4}){2})(?![\w:-])", None, "[0-9A-Fa-f]{2}[:.-][0-9A-Fa-f]{2}"),
    Candidate("url", "url", r"(?<![A-Za-z0-9])(?:[Hh][Tt][Tt][Pp][Ss]?|[Ff][Tt][Pp])://[^\s<>\"\[\]{}|\\^`*][^\s<>\"\[\]{}|\\^`]{0,2000}", checks.web_address, "://"),
    Candidate("url", "www", r"(?<![\w./@-])[Ww]{3}\.[A-Za-z0-9-]{1,63}\.[^\s<>\"\[\]{}|\\^`]{2,500}", checks.web_address, "[Ww]{3}\\."),
    Candidate("date-of-birth", "numeric date", r"(?<![\w/.-])(?:\d{1,2}[/.-]\d{1,2}[/.-](?:\d{4}|\d{2})|\d{4}[/.-]\d{1,2}[/.-]\d{1,2})(?!\w)", checks.birth_date, r"\d[/.-]\d"),
    Candidate("date-of-birth", "day month year", rf"(?<![\w/.-])\d{{1,2}}(?:st|nd|rd|th|\.)? ?(?:of |de )?{_MONTH},? (?:de )?\d{{4}}(?!\w)", checks.birth_date, r"\d{4}"),
    Candidate("date-of-birth", "month day year", rf"(?<!\w){_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}(?!\w)", checks.birth_date, r"\d{4}"),
    Candidate("crypto-wallet", "bitcoin", r"(?<!\w)[13][1-9A-HJ-NP-Za-km-z]{25,34}(?!\w)", checks.bitcoin, "[A-Za-z0-9]{24}"),
    Candidate("crypto-wallet", "bitcoin bech32", r"(?<!\w)(?:bc1|BC1)[02-9ac-hj-np-zAC-HJ-NP-Z]{11,71}(?!\w)", checks.bitcoin, "bc1|BC1"),
    Candidate("crypto-wallet", "ethereum", r"(?<!\w)0x[0-9a-fA-F]{40}(?!\w)", None, "0x"),
    Candidate("uuid", "uuid", r"(?<![\w-])[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?![\w-])", None, "[0-9a-fA-F]{8}-"),
    Candidate("phone", "labelled phone", rf"({_NUMBER})(?:[ -](?:[Oo]ffice|[Ff]ax|[Mm]obile|[Cc]ell|[Hh]ome|[Ww]ork|[Dd]esk))", checks.labelled_phone, _SIX, group=1),
    *API_KEYS,
)  # fmt: skip

NATIONAL: Final[dict[str, tuple[Candidate, ...]]] = {
    country: tuple(
        Candidate("national-id", f"{country}-{module}", pattern, checks.national_check(f"{country.lower().replace('in', 'in_') if country == 'IN' else country.lower()}.{module}", words), r"[A-Za-z]{4}\d\d" if country == "IT" else r"[A-Z]{5}\d" if module == "pan" else _IDS)
        for module, pattern, words in rules
    )
    for country, rules in {
        "AU": [("tfn", r"(?<![\w-])\d{3} ?\d{3} ?\d{3}(?!\w)", "tfn|tax file")],
        "BE": [("nn", r"(?<![\w-])\d{2}\.\d{2}\.\d{2}-\d{3}\.\d{2}(?!\w)", "")],
        "BR": [("cpf", r"(?<![\w-])\d{3}\.\d{3}\.\d{3}-\d{2}(?!\w)", ""), ("cpf", r"(?<!\w)\d{11}(?!\w)", "cpf")],
        "CA": [("sin", r"(?<![\w-])\d{3}[ -]?\d{3}[ -]?\d{3}(?!\w)", "sin|social insurance|nas")],
        "CH": [("ssn", r"(?<!\w)756\.?\d{4}\.?\d{4}\.?\d{2}(?!\w)", "")],
        "CN": [("ric", r"(?<!\w)\d{17}[\dXx](?!\w)", "")],
        "DE": [("idnr", r"(?<!\w)\d{2} ?\d{3} ?\d{3} ?\d{3}(?!\w)", "steuer\\S*|idnr|id-nr|tax|tin")],
        "ES": [("dni", r"(?<!\w)\d{8}-?[A-Za-z](?!\w)", ""), ("nie", r"(?<!\w)[XYZxyz]-?\d{7}-?[A-Za-z](?!\w)", "")],
        "FI": [("hetu", r"(?<!\w)\d{6}[-+A]\d{3}[0-9A-Za-z](?!\w)", "")],
        "FR": [("nir", r"(?<!\w)[12] ?\d{2} ?\d{2} ?\d[\dABab] ?\d{3} ?\d{3} ?\d{2}(?!\w)", "")],
        "GB": [("nhs", r"(?<![\w-])\d{3}[ -]?\d{3}[ -]?\d{4}(?!\w)", "nhs"), ("utr", r"(?<!\w)\d{10}K?(?!\w)", "utr|taxpayer")],
        "IE": [("pps", r"(?<!\w)\d{7}[A-Wa-w][A-IWa-iw]?(?!\w)", "pps\\S*")],
        "IN": [("aadhaar", r"(?<![\w-])[2-9]\d{3}[ -]?\d{4}[ -]?\d{4}(?!\w)", "aadhaar|aadhar|uid"), ("pan", r"(?<!\w)[A-Z]{5}\d{4}[A-Z](?!\w)", "pan|permanent account")],
        "IT": [("codicefiscale", r"(?<!\w)[A-Za-z]{6}\d{2}[A-Za-z]\d{2}[A-Za-z]\d{3}[A-Za-z](?!\w)", "")],
        "KR": [("rrn", r"(?<!\w)\d{6}-[1-8]\d{6}(?!\w)", "")],
        "MX": [("curp", r"(?<!\w)[A-Z]{4}\d{6}[HM][A-Z]{5}[A-Z0-9]\d(?!\w)", "")],
        "NL": [("bsn", r"(?<!\w)\d{9}(?!\w)", "bsn|burgerservice\\S*|sofi\\S*")],
        "NO": [("fodselsnummer", r"(?<!\w)\d{6} ?\d{5}(?!\w)", "fødsel\\S*|personnummer")],
        "PL": [("pesel", r"(?<!\w)\d{11}(?!\w)", "pesel")],
        "SE": [("personnummer", r"(?<!\w)\d{6}(?:\d{2})?[-+]\d{4}(?!\w)", "")],
        "US": [("itin", r"(?<![\w-])9\d{2}-\d{2}-\d{4}(?![\w-])", ""), ("ein", r"(?<![\w-])\d{2}-\d{7}(?!\w)", "ein|employer identification")],
        "ZA": [("idnr", r"(?<!\w)\d{13}(?!\w)", "id|identity")],
    }.items()
}  # fmt: skip
"""Country → national identity and tax numbers, checked with python-stdnum."""


def formats_for(
    types: Iterable[str], *, countries: Iterable[str], phone_regions: Iterable[str]
) -> list[Candidate]:
    """The formats of these types. phone_regions: countries (ISO 3166, two letters) whose national numbers are known."""
    wanted = set(types)
    formats = [candidate for candidate in FORMATS if candidate.type in wanted]
    if "phone" in wanted:
        pattern = rf"{_NUMBER}(?!\w)"
        formats.append(Candidate("phone", "phone", pattern, checks.phone_check(tuple(phone_regions)), _SIX))
    if "national-id" in wanted:
        formats += [candidate for country in countries for candidate in NATIONAL[country]]
    return formats


def pii_matcher(formats: Sequence[Candidate]) -> CandidateMatcher:
    """One matcher for these formats. A text without digits and signs can only be in the middle of a word."""
    return CandidateMatcher(
        formats,
        signs=r"[\d@:(+%.-]",
        word=f"[{WORD}]",
        begins=f"{_MONTH} ?",
        gate=r"[\d@:._-]|A[KSBCI][IACz]",
    )
