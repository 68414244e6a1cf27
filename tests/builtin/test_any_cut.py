"""Law 2: any cut, same answer. For every screening guardrail and for patterns made up at random."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processors.builtin.detectors.holdback import HoldBack, screen_text
from processors.builtin.detectors.pattern_rules import PatternMatcher, PatternRule, compile_pattern
from processors.builtin.detectors.pattern_shape import PatternError
from processors.builtin.detectors.words import WordMatcher
from tests.builtin.harness import guard, pieces_of, stream

REDACTORS = {
    "pii, masks": guard("pii-detector"),
    "pii, placeholders": guard("pii-detector", redaction_method="placeholder"),
    "pii, hashes": guard("pii-detector", redaction_method="hash"),
    "pii, encodings": guard("pii-detector", encoded=True),
    "secrets": guard("secrets-detector"),
    "links": guard("link-guard", allowed_domains=["example.org"]),
    "words": guard("block-list", words=["persimmon", "foo bar", "foo", "straße", "柿子", "bar baz"], strategy="redact"),
    "words inside": guard("block-list", words=["simm", "mon", "aba", "ab"], strategy="redact", whole_words=False),
    "patterns": guard("regex-filter", strategy="redact", presets=["pii", "secrets", "urls"], rules=[
        {"name": "key", "pattern": r"sk-test-[a-z0-9]{10,}", "replacement": "[KEY]"},
        {"name": "lines", "pattern": r"(?m)^note: .{1,20}$", "replacement": "[NOTE]"},
    ]),
}  # fmt: skip
# A rule about the length of lines may match a line that another rule made shorter, so "patterns" is left out below.
FRAGMENTS = (
    "pat@example.org", "write to ", "123-45-6789", "4111 1111 1111 1111", "4111111111111111", "+49 30 1234567", " (415) 555-2671",
    "DE89 3704 0044 0532 0130 00", "born on March 3, 1980", "1980-03-03", "https://example.org/a?b=c", "10.0.0.1", "sk-test-abcdef1234567890",
    "persimmon", "PERSIM\u200bMON", "рersimmon", "foo  bar", "foo bar baz", "STRASSE", "吃柿子吗", "abababab", "note: hello", "\n", " ", ".", ",", "@", "-", "x",
    "7", "12", "é", "\u0301", "\u200b", "😀", "ghp_" + "a1" * 18, "00:1b:44:11:3a:b7", "2001:db8::8a2e:370:7334", "fax", "office", "password", "secret key", "api key", " is ", ": ", "hunter2!Horse", "correcthorse", "Bearer abcdefghijklmnopqrstuvwxyz", "token",
    "![a](https://evil.test/x?y=z)", "[a](", "https://evil.test/" + "A" * 50, ")", "<img src=x>", "<", "javascript:alert", "data:", "cGF0QGV4YW1wbGUub3Jn", "706174406578616d706c652e6f7267", "www.example.org",
)  # fmt: skip
texts = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=4), max_size=9).map("".join)
spaced_texts = st.lists(
    st.sampled_from([f for f in FRAGMENTS if f not in ("1980-03-03", "fax", "office")]), max_size=9
).map(" ".join)
"""Data with something between them: where one follows another directly, a mask gives the second a border it had not. No
data that a word before them decides about: a short mask brings the word nearer."""
cuts = st.lists(st.integers(0, 160), max_size=12)


@pytest.mark.parametrize("name", REDACTORS)
@given(text=texts, where=cuts)
@settings(max_examples=60, deadline=None)
def test_a_redacted_stream_reads_like_the_redacted_text(name: str, text: str, where: list[int]) -> None:
    processor = REDACTORS[name]
    whole, regions = screen_text(processor._matcher, text, processor.redaction)
    heard = stream(processor, pieces_of(text, where))
    assert heard.text == whole
    assert "" not in heard.deltas
    assert [m["start"] for d in heard.details for m in d["matches"]] == [
        m.start for r in regions for m in r.members
    ]


@pytest.mark.parametrize("name", REDACTORS)
@given(text=texts)
@settings(max_examples=40, deadline=None)
def test_a_stream_of_single_characters_reads_like_the_redacted_text(name: str, text: str) -> None:
    processor = REDACTORS[name]
    assert stream(processor, list(text)).text == screen_text(processor._matcher, text, processor.redaction)[0]


@pytest.mark.parametrize("name", [name for name in REDACTORS if name not in ("patterns", "links")])
@given(text=spaced_texts)
@settings(max_examples=60, deadline=None)
def test_redacting_a_redacted_text_changes_nothing(name: str, text: str) -> None:
    processor = REDACTORS[name]
    once = screen_text(processor._matcher, text, processor.redaction)[0]
    assert screen_text(processor._matcher, once, processor.redaction)[0] == once


@given(text=texts, where=cuts)
@settings(max_examples=60, deadline=None)
def test_a_blocked_stream_shows_the_text_before_the_finding_and_no_more(text: str, where: list[int]) -> None:
    processor = guard("block-list", words=["persimmon", "foo bar"])
    regions = screen_text(processor._matcher, text)[1]
    heard = stream(processor, pieces_of(text, where))
    assert heard.text == stream(processor, [text]).text
    assert (heard.tripwire is not None) == bool(regions)
    if regions:
        assert text[: regions[0].start].startswith(heard.text)


atoms = st.sampled_from(["a", "b", " ", "[ab]", ".", r"\w", r"\b", "^", "$", "(?i:A)", r"\x61"])
patterns: st.SearchStrategy[str] = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda options: f"(?:{'|'.join(options)})"),
        st.tuples(inner, st.sampled_from(["{1,3}", "{2}", "?", "{0,2}?", "+"])).map(
            lambda pair: f"({pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=8,
)


@given(pattern=patterns, text=st.text(alphabet="abA \n", max_size=24), where=cuts)
@settings(max_examples=300, deadline=None)
def test_any_pattern_finds_the_same_in_pieces(pattern: str, text: str, where: list[int]) -> None:
    try:
        matcher: Any = PatternMatcher([PatternRule("one", compile_pattern(pattern), "#")])
    except PatternError:
        return
    hold = HoldBack(matcher, lambda region, _: "#")
    shown = "".join([hold.feed(piece) for piece in pieces_of(text, where)]) + hold.finish()
    assert shown == screen_text(matcher, text, lambda region, _: "#")[0]


@given(
    words=st.lists(st.text(alphabet="ab \u0301ß", min_size=1, max_size=5), min_size=1, max_size=6), whole=st.booleans(),
    text=st.text(alphabet="abAB \u200b\u0301ßs,", max_size=30), where=cuts,
)  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_any_word_list_finds_the_same_in_pieces(
    words: list[str], whole: bool, text: str, where: list[int]
) -> None:
    matcher = WordMatcher(words, whole_words=whole, allowed=words[1:2])
    hold = HoldBack(matcher, lambda region, _: "#")
    shown = "".join([hold.feed(piece) for piece in pieces_of(text, where)]) + hold.finish()
    assert shown == screen_text(matcher, text, lambda region, _: "#")[0]
