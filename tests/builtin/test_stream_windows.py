"""Windows of a streamed answer: cut at the same places, at sentences where there are some, between words elsewhere."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processors.builtin.stream_windows import StreamWindows, Window
from processors.engine.chunks import text_delta


def windows_of(text: str, sizes: list[int], size: int = 10) -> list[Window]:
    stream = StreamWindows(size, 1e9)
    found: list[Window] = []
    at = turn = 0
    while at < len(text):
        piece = text_delta(text[at : at + sizes[turn % len(sizes)]])
        at, turn = at + len(piece.text), turn + 1
        if stream.belongs(piece):
            stream.take(piece)
        else:
            stream.open(piece)
        found += stream.full()
    return [*found, *stream.rest()]


@settings(deadline=None, max_examples=60)
@given(text=st.text("ab .!\n。é👩", max_size=300), sizes=st.lists(st.integers(1, 20), min_size=1, max_size=5))
def test_every_cut_gives_the_same_windows_and_their_chunks_are_their_text(
    text: str, sizes: list[int]
) -> None:
    found, whole = windows_of(text, sizes), windows_of(text, [1000])
    assert [(w.text, w.start, w.context) for w in found] == [(w.text, w.start, w.context) for w in whole]
    assert all("".join(chunk.text for chunk in w.chunks) == w.text for w in found)
    assert "".join(w.text for w in found) == text


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Fifteen words. Then more of them, and more.", "Fifteen words. "),
        ("No sentence ends in here ever at all", "No sentence ends in "),
        ("x" * 50, "x" * 20),
    ],
)
def test_a_window_ends_with_a_sentence_or_a_word_or_at_twice_its_size(text: str, first: str) -> None:
    assert windows_of(text, [3])[0].text == first


def test_windows_grow_so_that_a_long_answer_costs_few_of_them() -> None:
    sizes = [len(window.text) for window in windows_of("word " * 200, [7])]
    assert sizes[0] < sizes[1] < sizes[2]
    assert max(sizes) <= 160


def test_text_that_waits_too_long_is_due_with_the_next_delta() -> None:
    stream = StreamWindows(1000, 0.0)
    stream.open(text_delta("Half a wor"))
    [window] = stream.full()
    assert window.text == "Half a "
    assert [chunk.text for chunk in stream.give_up()] == ["wor"]
