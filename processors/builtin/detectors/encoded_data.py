"""Personal data inside base64, hex and percent encodings."""

from __future__ import annotations

import re
from typing import Final

from processors.builtin.detectors.encodings import RUNS, decoded
from processors.builtin.detectors.findings import Finding
from processors.builtin.detectors.holdback import Matcher

_RUNS: Final = {
    "base64": RUNS["base64"],
    "hex": re.compile(r"(?<![0-9A-Za-z])[0-9A-Fa-f]{20,50000}(?![0-9A-Za-z])"),
    "percent": RUNS["percent"],
}
"""None of them has a blank in it, so a word is all that has to wait."""
_OPEN: Final = re.compile(r"\S*\Z")


class EncodedMatcher:
    """What another matcher finds, and encoded runs in whose plain text it finds something.

    An encoded finding is the whole run; its replacement is "<EMAIL_ENCODED>" and the like.
    """

    def __init__(self, inner: Matcher) -> None:
        self._inner = inner
        self.look_back = inner.look_back

    def find(self, text: str, start: int) -> list[Finding]:
        found = self._inner.find(text, start)
        for name, run in _RUNS.items():
            for match in run.finditer(text, start):
                plain = decoded(name, match.group())
                inside = self._inner.find(plain, 0) if plain is not None and plain != match.group() else []
                if inside:
                    kind = max(inside, key=lambda finding: finding.end - finding.start).type
                    mark = f"<{kind.upper().replace('-', '_')}_ENCODED>"
                    found.append(Finding(match.start(), match.end(), kind, f"encoded:{name}", mark))
        return found

    def open_from(self, text: str, start: int) -> int:
        match = _OPEN.search(text, start)
        opened = match.start() if match is not None else len(text)
        return min(opened, self._inner.open_from(text, start))
