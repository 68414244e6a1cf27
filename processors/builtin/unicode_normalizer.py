"""Brings user input into one form: composed characters, no invisible ones, blanks tidied."""

from __future__ import annotations

import re
import unicodedata
from typing import Any, Final

from pydantic import Field

from processors.engine.hooks import ProcessInputArgs
from processors.engine.ports import BuildContext
from processors.engine.processor import Processor
from processors.engine.registry import Options, ProcessorKind, Registry

SLUG: Final = "unicode-normalizer"

_BLANKS: Final = re.compile(r"\s+")
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_HIDDEN: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff9-\ufffb\U000e0000-\U000e007f\U000e0100-\U000e01ef]"
)
"""Characters that show nothing and carry no meaning in running text. Joiners are not among them: emoji and Indic
scripts need them."""
_FLAG_TAGS: Final = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{2,6}\U000e007f")
_PICTOGRAPHS: Final = re.compile(
    "[\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2934\u2935\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)


class UnicodeNormalizerOptions(Options):
    """What is tidied. The names and defaults are the reference's, plus hidden characters."""

    strip_control_chars: bool = Field(False, title="Remove control characters", description="Such as bell and escape. Tabs and line breaks stay.")  # fmt: skip
    strip_hidden_chars: bool = Field(True, title="Remove hidden characters", description="Zero-width, direction and tag characters, which can smuggle text past readers. Emoji and scripts that need joiners keep them.")  # fmt: skip
    preserve_emojis: bool = Field(True, title="Keep emoji as they are", description="Otherwise pictographs are normalised too, which changes some of them (™ and ① stay plain text either way).")  # fmt: skip
    collapse_whitespace: bool = Field(True, title="Collapse blanks", description="Runs of blanks, tabs and line breaks become one blank.")  # fmt: skip
    trim: bool = Field(True, title="Trim", description="Remove blanks at the start and the end.")


class UnicodeNormalizer(Processor):
    """Normalises the text parts of the new messages in place. Other parts stay as they are."""

    def __init__(self, id: str, options: UnicodeNormalizerOptions) -> None:
        super().__init__(id)
        self.options = options

    def process_input(self, args: ProcessInputArgs) -> None:
        for message in args.messages:
            for part in message.text_parts():
                part["text"] = self.normalize(part["text"])

    def normalize(self, text: str) -> str:
        """The text in its normal form. Normalising twice changes nothing more."""
        options = self.options
        if not text.isascii():
            if options.strip_hidden_chars:
                text = self._without_hidden(text)
            text = self._composed(text)
        if options.strip_control_chars:
            text = _CONTROLS.sub("", text)
        if options.collapse_whitespace:
            text = _BLANKS.sub(" ", text)
        return text.strip() if options.trim else text

    def _without_hidden(self, text: str) -> str:
        """Remove hidden characters, but not the tags that make the flags of England, Scotland and Wales."""
        pieces, at = [], 0
        for flag in _FLAG_TAGS.finditer(text):
            pieces += [_HIDDEN.sub("", text[at : flag.start()]), flag.group()]
            at = flag.end()
        return "".join([*pieces, _HIDDEN.sub("", text[at:])])

    def _composed(self, text: str) -> str:
        """NFKC. Pictographs are left alone on request: NFKC turns a few of them into letters."""
        if not self.options.preserve_emojis:
            return unicodedata.normalize("NFKC", text)
        pieces, at = [], 0
        for match in _PICTOGRAPHS.finditer(text):
            pieces += [unicodedata.normalize("NFKC", text[at : match.start()]), match.group()]
            at = match.end()
        return "".join([*pieces, unicodedata.normalize("NFKC", text[at:])])


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> UnicodeNormalizer:
        return UnicodeNormalizer(id, options)

    registry.register(ProcessorKind(
        slug=SLUG, title="Unicode normaliser", description="Brings what people write into one form: composed characters, no hidden ones, tidy blanks.",
        options=UnicodeNormalizerOptions, factory=build, stages=frozenset({"input"}), redacts=True, group="Text",
    ))  # fmt: skip
