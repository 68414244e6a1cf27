"""Letters that look like Latin ones, by hand from Unicode's confusables (TR 39), for comparing, never for showing."""

from __future__ import annotations

from typing import Final

_PAIRS: Final = (
    # Cyrillic, capitals and small letters
    ("АаӐӑӒӓ", "a"), ("ВвЬь", "b"), ("СсҪҫ", "c"), ("Ԁԁ", "d"), ("ЕеЁёЀѐӖӗ", "e"), ("Ғғ", "f"), ("Ԍԍ", "g"), ("НнҺһҢң", "h"),
    ("ІіЇїӀӏ", "i"), ("Јј", "j"), ("КкҚқ", "k"), ("Мм", "m"), ("Пп", "n"), ("ОоӦӧ", "o"), ("Рр", "p"), ("Ԛԛ", "q"), ("Гг", "r"),
    ("Ѕѕ", "s"), ("Тт", "t"), ("УуЎўҮүҰұ", "y"), ("Ѵѵ", "v"), ("Ԝԝ", "w"), ("ХхҲҳ", "x"), ("Зз", "3"),
    # Greek
    ("Αα", "a"), ("Ββ", "b"), ("Ϲϲ", "c"), ("Εε", "e"), ("ϝϜ", "f"), ("Η", "h"), ("Ιι", "i"), ("ϳͿ", "j"), ("Κκ", "k"), ("Μ", "m"), ("Νη", "n"),
    ("Οοσ", "o"), ("Ρρ", "p"), ("Ττ", "t"), ("υ", "u"), ("ν", "v"), ("ω", "w"), ("Χχ", "x"), ("Υγ", "y"), ("Ζ", "z"),
    # Armenian and others
    ("ա", "w"), ("օ", "o"), ("ս", "u"), ("հ", "h"), ("ո", "n"), ("զ", "q"), ("ց", "g"), ("ռ", "n"),
    # Small capitals, letters turned or struck, letterlike signs
    ("ᴀɑ", "a"), ("ʙ", "b"), ("ᴄ", "c"), ("ᴅ", "d"), ("ᴇɛ", "e"), ("ꜰ", "f"), ("ɢɡ", "g"), ("ʜ", "h"), ("ɪıɩ", "i"), ("ᴊ", "j"),
    ("ᴋ", "k"), ("ʟł", "l"), ("ᴍ", "m"), ("ɴ", "n"), ("ᴏøɵ", "o"), ("ᴘ", "p"), ("ʀ", "r"), ("ꜱ", "s"), ("ᴛŧ", "t"), ("ᴜʋ", "u"), ("ᴠ", "v"),
    ("ᴡ", "w"), ("ʏ", "y"), ("ᴢ", "z"), ("đ", "d"), ("ħ", "h"), ("ƀ", "b"),
)  # fmt: skip

LATIN_LOOK_ALIKES: Final[dict[str, str]] = {letter: latin for letters, latin in _PAIRS for letter in letters}
"""One foreign letter → the Latin letter (or digit) it looks like, small."""
