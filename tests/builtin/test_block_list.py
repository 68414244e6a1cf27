"""Block lists: borders, scripts, disguises, exceptions, size."""

from __future__ import annotations

import time

import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builtin.harness import guard, pieces_of, read, stream


@pytest.mark.parametrize(("text", "blocked"), [
    ("a persimmon pie", True), ("PERSIMMON!", True), ("persimmons", False), ("per\u200bsimmon", True), ("рersimmon", True), ("pérsimmon", True),
    ("ｐｅｒｓｉｍｍｏｎ", True), ("ripe\npersimmon", True), ("per simmon", False), ("persimmon_pie", False), ("我吃柿子", True), ("STRASSE", True), ("foo   bar", True),
])  # fmt: skip
def test_words_are_found_as_people_read_them(text: str, blocked: bool) -> None:
    words = guard("block-list", words=["persimmon", "柿子", "straße", "foo bar"])
    assert (read(words, text).tripwire is not None) == blocked


def test_exceptions_let_innocent_words_pass() -> None:
    words = guard("block-list", words=["ass"], exceptions=["ass's milk"])
    assert read(words, "I drink ass's milk in class").tripwire is None
    assert read(words, "you ass").tripwire is not None


def test_the_reason_names_no_word_of_the_list() -> None:
    tripwire = read(guard("block-list", words=["lemon", "persimmon"]), "a persimmon").tripwire
    assert tripwire is not None
    assert "persimmon" not in str(tripwire) + repr(tripwire.metadata)
    assert tripwire.metadata["rule"] == "entry 2"


def test_twenty_thousand_words_cost_little() -> None:
    words = guard("block-list", words=[f"forbidden{number}" for number in range(20_000)], strategy="redact")
    started = time.perf_counter()
    text = "Thank you for writing about the parcel. " * 500
    assert stream(words, [text[at : at + 5] for at in range(0, len(text), 5)]).text == text
    assert time.perf_counter() - started < 2
    assert stream(words, ["a forbidden", "19999 b"]).text == "a […] b"


@given(text=st.text(alphabet="a persimon\u200b", max_size=40), where=st.lists(st.integers(0, 40), max_size=8))
@settings(max_examples=80, deadline=None)
def test_any_cut_gives_the_same_answer(text: str, where: list[int]) -> None:
    words = guard("block-list", words=["persimmon", "no"], strategy="redact")
    assert stream(words, pieces_of(text, where)).text == stream(words, [text]).text


@pytest.mark.parametrize(("options", "words"), [
    ({"words": []}, "at least 1"), ({"words": ["  "]}, "empty"), ({"words": ["x" * 300]}, "at most 200"),
    ({"words": ["lemon"], "strategy": "redact", "replacement": "a lemon"}, "another replacement"), ({"words": ["a"], "colour": 1}, "not permitted"),
])  # fmt: skip
def test_lists_that_can_not_work_are_refused_in_words(options: dict[str, object], words: str) -> None:
    with pytest.raises(pydantic.ValidationError, match=words):
        guard("block-list", **options)
