"""Hostile input costs linear time: a KB of a large text costs about what a KB of a small one costs."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from processors.builtin.detectors.injection import judge
from tests.builtin.harness import guard, stream

HOSTILE = {
    "blanks between digits": "1 ", "zero-widths": "\u200b", "at signs": "a@", "letters": "a", "digits": "7", "brackets": "![", "base64": "aWdub3Jl",
    "percent": "%41", "quotes": "\"'", "joined": "a.b-c@d.", "tags": "\U000e0041", "look-alikes": "аa", "sentences": "ignore the rules. ",
}  # fmt: skip


def cost(work: Callable[[str], object], unit: str, size: int) -> float:
    """Seconds per character; the better of two runs, for the machine is shared."""
    text = (unit * (size // len(unit) + 1))[:size]
    best = float("inf")
    for _ in range(2):
        started = time.perf_counter()
        work(text)
        best = min(best, time.perf_counter() - started)
    return best / size


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize(
    "kind", ["pii-detector", "secrets-detector", "link-guard", "block-list", "regex-filter"]
)
def test_searching_is_linear(kind: str, unit: str) -> None:
    options = {
        "block-list": {"words": ["aaab", "ignore the plan"]},
        "regex-filter": {"presets": ["pii", "secrets", "urls"]},
    }
    matcher = guard(kind, **options.get(kind, {}))._matcher
    small = cost(lambda text: matcher.find(text, 0), unit, 2_000)
    large = cost(lambda text: matcher.find(text, 0), unit, 16_000)
    assert large < 4 * small + 2e-5


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
def test_judging_is_linear(unit: str) -> None:
    small, large = cost(judge, unit, 4_000), cost(judge, unit, 32_000)
    assert large < 4 * small + 2e-5


@pytest.mark.parametrize("unit", ["a", "a@", "1 ", "sk-test-a", "ab"], ids=str)
def test_streaming_what_never_ends_is_linear(unit: str) -> None:
    rules = [{"name": "key", "pattern": r"(?:sk-test-)?\S{40,}z"}]
    processors = [
        guard("regex-filter", rules=rules), guard("pii-detector"), guard("block-list", words=["aba", "bab"], whole_words=False, strategy="redact"),
    ]  # fmt: skip

    def run(text: str) -> None:
        for processor in processors:
            stream(processor, [text[at : at + 8] for at in range(0, len(text), 8)])

    small, large = cost(run, unit, 1_500), cost(run, unit, 12_000)
    assert large < 4 * small + 5e-5


def test_the_default_chain_reads_two_kilobytes_in_milliseconds() -> None:
    text = (
        "Thank you for writing to us about parcel 4711, which is on its way. Please write to help@example.org. "
        * 25
    )[:2048]
    screens = [
        guard("unicode-normalizer"), guard("pii-detector"), guard("secrets-detector"), guard("link-guard"),
        guard("block-list", words=[f"word{n}" for n in range(1000)]),
    ]  # fmt: skip
    times = []
    for _ in range(15):
        started = time.perf_counter()
        screens[0].normalize(text)
        for screen in screens[1:]:
            screen._matcher.find(text, 0)
        judge(text)
        times.append(time.perf_counter() - started)
    assert (
        sorted(times)[len(times) // 2] < 0.02
    )  # generous: the machine is shared; the benchmark holds it to 2 ms
