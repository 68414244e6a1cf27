"""Comparing a run's result."""

from __future__ import annotations

import json
from typing import Any

from agents.loop.result import RunResult
from tests.conformance.facets import same


def result_dict(result: RunResult) -> dict[str, Any]:
    """The result as a case writes it."""
    trip = result.tripwire
    return {
        "finish_reason": result.finish_reason, "text": result.text, "reasoning_text": result.reasoning_text,
        "step_count": len(result.steps), "object": result.object,
        "tripwire": None if trip is None else {"reason": trip.reason, "retry": trip.retry, "metadata": trip.metadata,
                                               "processor_id": trip.processor_id},
        "tool_calls": [{"tool_name": c.tool_name, "args": c.args} for c in result.tool_calls],
        "tool_results": [{"tool_name": r.tool_name, "result": r.result} for r in result.tool_results if not r.error],
        "usage": {"input_tokens": result.usage.input_tokens, "output_tokens": result.usage.output_tokens,
                  "total_tokens": result.usage.total_tokens},
    }  # fmt: skip


def causes(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__
    return found


def check_result(want: dict[str, Any], result: RunResult) -> list[str]:
    status = result.status
    wrong = []
    accepted = {"not_completed": ("blocked", "failed")}.get(want["status"], (want["status"],))
    if status not in accepted:
        wrong.append(f"status {status} instead of {want['status']} ({result.error!r})")
    got = result_dict(result)
    wrong += [
        f"result.{key}: {got[key]!r} instead of {want[key]!r}"
        for key in got
        if key in want and not same(want[key], got[key])
    ]
    if "text_ends_with" in want and not result.text.endswith(want["text_ends_with"]):
        wrong.append(f"text {result.text!r} does not end with {want['text_ends_with']!r}")
    if "text_prefix_of" in want and not want["text_prefix_of"].startswith(result.text):
        wrong.append(f"text {result.text!r} is no prefix of {want['text_prefix_of']!r}")
    everything = json.dumps([result.text, [[s.text, [c.args for c in s.tool_calls], [r.result for r in s.tool_results]]
                                           for s in result.steps]], ensure_ascii=False, default=str)  # fmt: skip
    wrong += [f"result holds {text!r}" for text in want.get("not_containing", []) if text in everything]
    chain = causes(result.error)
    if "error_name" in want and want["error_name"] not in [type(error).__name__ for error in chain]:
        wrong.append(f"error {chain!r} instead of {want['error_name']}")
    words = want.get("error_contains", [])
    for word in [words] if isinstance(words, str) else words:
        if not any(word in str(error) for error in chain):
            wrong.append(f"error {chain!r} lacks {word!r}")
    return wrong
