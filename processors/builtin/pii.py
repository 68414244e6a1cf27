"""Finds personal data by format: check digits, national rules and context instead of guesses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

from pydantic import Field, field_validator, model_validator

from processors.builtin.detectors.encoded_data import EncodedMatcher
from processors.builtin.detectors.findings import Region
from processors.builtin.detectors.masking import Method, redact
from processors.builtin.detectors.pii_formats import NATIONAL, formats_for, pii_matcher
from processors.builtin.screening import Screen, ScreenOptions, Strategy
from processors.engine.ports import BuildContext
from processors.engine.registry import ProcessorKind, Registry

SLUG: Final = "pii-detector"

PIIType = Literal[
    "email", "phone", "credit-card", "ssn", "national-id", "iban", "ip-address", "mac-address", "url", "date-of-birth",
    "crypto-wallet", "uuid", "api-key",
]  # fmt: skip
_TITLES: Final = {
    "email": "E-mail addresses", "phone": "Telephone numbers", "credit-card": "Payment cards", "ssn": "US social security numbers",
    "national-id": "National identity and tax numbers", "iban": "IBANs", "ip-address": "IP addresses", "mac-address": "MAC addresses",
    "url": "Web addresses", "date-of-birth": "Dates of birth", "crypto-wallet": "Crypto wallets", "uuid": "UUIDs", "api-key": "API keys",
}  # fmt: skip
ALL_TYPES: Final[tuple[PIIType, ...]] = PIIType.__args__  # type: ignore[attr-defined]
Country = Literal[tuple(NATIONAL)]  # type: ignore[valid-type]


class PIIOptions(ScreenOptions):
    """What counts as personal data and what happens to it."""

    detection_types: list[PIIType] = Field(list(ALL_TYPES), title="Personal data", description="Formats to look for. Names and postal addresses have no format; a model-judged guardrail finds those.", min_length=1, json_schema_extra={"x-labels": _TITLES})  # fmt: skip
    strategy: Strategy = Field("redact", title="What to do", description="Redact, block the run, ask for another answer, withhold the message, or only report.", json_schema_extra={"x-labels": {"retry": "Ask for another answer"}})  # fmt: skip
    redaction_method: Method = Field(
        "mask", title="Redaction",
        description="Mask keeps the shape (a***e@****.com), hash gives equal data equal marks, placeholder names the type ([EMAIL]), remove leaves nothing.",
        json_schema_extra={"x-show-if": {"strategy": ["redact"]}},
    )  # fmt: skip
    preserve_format: bool = Field(True, title="Keep the format", description="When masking: keep separators and last digits. Otherwise a few stars stand there.", json_schema_extra={"x-show-if": {"redaction_method": ["mask"]}})  # fmt: skip
    countries: list[Country] = Field(
        sorted(NATIONAL), title="Countries", description="Whose identity and tax numbers to look for. Numbers that are digits only need a word such as “NHS” before them.", json_schema_extra={"x-advanced": True},
    )  # fmt: skip
    phone_regions: list[str] = Field(
        ["US", "GB", "DE", "FR", "ES", "IT", "NL", "CH", "AT"], title="Telephone regions", max_length=50,
        description="Countries (two letters) whose national numbers are recognised without a word such as “phone” before them. International numbers (+…) always are.",
        json_schema_extra={"x-advanced": True},
    )  # fmt: skip

    encoded: bool = Field(False, title="Look inside encodings", description="Also find personal data in base64, hex and percent encodings. Streamed text then waits for the end of a word without blanks, however long.", json_schema_extra={"x-advanced": True})  # fmt: skip

    @field_validator("phone_regions")
    @classmethod
    def _regions_exist(cls, regions: list[str]) -> list[str]:
        import phonenumbers

        regions = [region.strip().upper() for region in regions]
        if unknown := [region for region in regions if region not in phonenumbers.SUPPORTED_REGIONS]:
            raise ValueError(f"{unknown[0]!r} is no country with telephone numbers; write two letters such as US, GB or DE.")  # fmt: skip
        return regions

    @model_validator(mode="after")
    def _countries_for_national_ids(self) -> PIIOptions:
        if "national-id" in self.detection_types and not self.countries:
            raise ValueError("National numbers are chosen but no country is; choose countries, or leave national numbers out.")  # fmt: skip
        return self


class PIIDetector(Screen):
    """Redacts, blocks or reports personal data in every direction."""

    subject = "Personal data"

    def __init__(self, id: str, options: PIIOptions, context: BuildContext) -> None:
        formats = formats_for(
            options.detection_types, countries=options.countries, phone_regions=options.phone_regions
        )
        matcher = pii_matcher(formats)
        super().__init__(id, options, EncodedMatcher(matcher) if options.encoded else matcher, context)
        self._method, self._keep_shape = options.redaction_method, options.preserve_format

    def redaction(self, region: Region, text: str) -> str:
        if region.owner.replacement is not None:  # an encoded run
            return region.owner.replacement
        return redact(
            region.owner.type, text, self._method, keep_shape=self._keep_shape, hash_key=self._hash_key
        )

    def reason(self, types: Sequence[str], rules: Sequence[str]) -> str:
        return f"Personal data found: {', '.join(types)}."


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> PIIDetector:
        return PIIDetector(id, options, context)

    registry.register(ProcessorKind(
        slug=SLUG, title="Personal data", description="Redacts or stops e-mail addresses, phone, card and account numbers, national ids and more, also across chunks.",
        options=PIIOptions, factory=build, stages=frozenset({"input", "output"}), redacts=True, group="Personal data",
    ))  # fmt: skip
