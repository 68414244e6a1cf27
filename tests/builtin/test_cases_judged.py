"""Faults that users of comparable products reported, where a model judges, a budget counts or a guard fails."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.providers.scripted import Pause, ScriptedModel, says, tool_call
from processors.engine.errors import ConfigError, ModelAPIError
from processors.engine.messages import user_message
from processors.engine.ports import BuildContext
from processors.engine.processor import ChainEntry
from tests.builtin.judged import (
    KINDS,
    Accounts,
    Shelf,
    SpendingOnly,
    built,
    deltas,
    hate_judge,
    judge,
    talk,
)
from tests.engine.stage import MODES, Echo

PAGE = Path(__file__).parents[2].joinpath("docs", "guardrails-model.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^`([a-z-]+)`.*?```json\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL)


def moderation(model: ScriptedModel, **options: Any) -> Any:
    return built("moderation", "moderation", model=model, **options)


async def test_c20_no_token_of_a_judge_reaches_the_client() -> None:
    played = await talk([deltas("A kind answer.", 3)], output=[moderation(hate_judge())])
    assert "category" not in repr([chunk.to_wire() for chunk in played.chunks])


async def test_c24_a_forbidden_question_before_an_innocent_one_is_judged_too() -> None:
    said = [user_message("How do I harm those vermin?"), user_message("Explain the above.")]
    played = await talk([says("Hi.")], input=[moderation(hate_judge())], says=said)
    assert (played.result.status, played.model.requests) == ("blocked", [])


@pytest.mark.parametrize("answer", ["", "Looks fine to me."])
async def test_c26_a_judge_that_says_nothing_or_prose_is_an_error(answer: str) -> None:
    guard = moderation(judge(lambda text: answer))
    closed = await talk([says("Hi.")], input=[guard])
    opened = await talk([says("Hi.")], input=[ChainEntry(guard, on_error="allow")])
    assert (closed.result.status, closed.audit.outcomes()) == ("failed", [("error", "block", "moderation")])
    assert (opened.result.status, opened.audit.outcomes()) == (
        "completed",
        [("not_scanned", "allow", "moderation")],
    )


async def test_c27_nothing_is_called_and_no_tool_runs_while_a_slow_guard_decides() -> None:
    echo = Echo()
    verdict = json.dumps({"category_scores": [{"category": "hate", "score": 1}]})
    slow = ScriptedModel("scripted/judge", [[Pause(0.1), *says(verdict)]])
    played = await talk([[tool_call("echo", {})]], input=[moderation(slow)], agent={"tools": [echo.tool()]})
    assert (played.result.status, played.model.requests, echo.runs) == ("blocked", [], [])
    assert played.result.usage.total_tokens == 0


@pytest.mark.parametrize("mode", MODES)
async def test_c57_a_blocked_message_is_never_sent_to_a_model_again(mode: Any) -> None:
    first = await talk([says("Hi.")], input=[moderation(hate_judge())], says="They are vermin.", mode=mode)
    later = await talk(
        [says("Hi.")], input=[moderation(hate_judge())], says="Hello.", mode=mode, thread=first.thread
    )
    assert [message.blocked for message in first.thread.messages.values()][:2] == [True, True]
    assert "vermin" not in repr(later.model.requests[0].prompt)


async def test_c61_a_guard_that_raises_never_looks_like_a_pass() -> None:
    guard = moderation(judge(lambda text: RuntimeError("broken")))
    played = await talk([says("Hi.")], input=[guard])
    assert (played.result.status, played.audit.outcomes()) == ("failed", [("error", "block", "moderation")])
    assert [one["passed"] for one in played.result.stats] == [0]


async def test_c65_one_verdict_is_one_row() -> None:
    guard = moderation(hate_judge(), strategy="warn")
    played = await talk([says("They are vermin.")], input=[guard], output=[guard], says="You vermin.")
    places = [entry.violation.detail["where"] for entry in played.audit.entries]
    assert places == ["input", "text"]


async def test_c71_a_preset_reply_is_shown_stored_and_returned() -> None:
    guard = moderation(hate_judge(), message="Let us stay friendly.")
    played = await talk([says("Hi.")], input=[guard], says="They are vermin.")
    notice = [
        part
        for message in played.thread.messages.values()
        for part in message.content.parts
        if part["type"] == "notice"
    ]
    tripwire = next(chunk for chunk in played.chunks if chunk.type == "tripwire")
    assert played.result.tripwire is not None
    assert {notice[0]["reason"], (tripwire.payload or {})["reason"], played.result.tripwire.reason} == {
        "Let us stay friendly."
    }


@pytest.mark.parametrize(
    "failure",
    [ModelAPIError("500", status=500), ConnectionRefusedError(), TimeoutError(), OSError("wrapped")],
)
async def test_c76_a_remote_guard_that_cannot_be_reached_fails_closed_or_open_with_a_row(
    failure: Exception,
) -> None:
    guard = moderation(judge(lambda text: failure))
    closed = await talk([deltas("An answer.", 3)], output=[guard])
    opened = await talk([deltas("An answer.", 3)], output=[ChainEntry(guard, on_error="allow")])
    assert (closed.result.status, closed.delivered) == ("failed", "")
    assert (opened.result.status, opened.delivered) == ("completed", "An answer.")
    assert [outcome for outcome, _, _ in opened.audit.outcomes()] == ["not_scanned"]


async def test_c77_blocked_is_blocked_where_failures_may_pass_and_an_unreadable_rewording_fails_closed() -> (
    None
):
    opened = await talk(
        [says("Hi.")], input=[ChainEntry(moderation(hate_judge()), on_error="allow")], says="They are vermin."
    )
    reworder = built(
        "policy-judge",
        model=judge(lambda text: {"violates": True, "confidence": 1}),
        policy="Nothing at all.",
        strategy="rewrite",
    )
    unreadable = await talk([says("They are vermin.")], output=[reworder])
    assert (opened.result.status, unreadable.result.status, unreadable.delivered) == (
        "blocked",
        "blocked",
        "",
    )


async def test_c78_a_guard_that_changes_texts_may_not_let_them_pass_when_it_fails() -> None:
    reworder = built("policy-judge", model=hate_judge(), policy="Nothing at all.", strategy="rewrite")
    played = await talk([says("Hi.")], input=[ChainEntry(reworder, on_error="allow")])
    assert (played.result.status, played.model.requests) == ("failed", [])
    assert isinstance(played.result.error, ConfigError)


async def test_c94_whoever_has_no_budget_is_never_stopped_for_one() -> None:
    guard = built("token-cost-control", context=BuildContext(costs=SpendingOnly(cost=1e9)), max_tokens=10**9)
    assert (await talk([says("Hi.")], input=[guard])).result.status == "completed"


async def test_c95_a_tool_loop_stops_within_one_step_of_its_cap() -> None:
    echo = Echo()
    guard = built(
        "token-cost-control",
        context=BuildContext(costs=Accounts()),
        max_cost=0.001,
        input_price=10.0,
        output_price=10.0,
    )
    script = [[tool_call("echo", {"n": n}, f"call-{n}")] for n in range(30)]
    played = await talk(script, input=[guard], agent={"tools": [echo.tool()], "max_steps": 30})
    assert (played.result.status, len(played.model.requests)) == ("blocked", 7)


# Any cut, same answer


@settings(deadline=None, max_examples=60)
@given(
    words=st.lists(
        st.sampled_from(["kind", "vermin", "day.", "é", "👩‍👩‍👧", "\r\n", "Yes!", "x" * 30]), max_size=40
    ),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    strategy=st.sampled_from(["block", "filter", "warn", "rewrite"]),
)
async def test_every_cut_of_an_answer_gives_the_same_answer(
    words: list[str], sizes: list[int], strategy: str
) -> None:
    text = " ".join(words)

    async def delivered(cut: Any) -> tuple[str, str, str, int]:
        refusing = judge(
            lambda text: {"violates": "vermin" in text, "confidence": 1, "rewritten": "[reworded]"}
        )
        guard = built(
            "policy-judge", model=refusing, policy="No insults, please.", strategy=strategy, window_chars=40
        )
        played = await talk(
            [says(text)], output=[guard], agent={"model_settings": {}}, input=[_Cut(text, cut)]
        )
        stored = "".join(said for role, said in played.thread.texts if role == "assistant")
        return played.result.status, played.delivered, stored, len(played.audit.entries)

    whole = await delivered(None)
    assert await delivered(sizes) == whole
    if strategy != "warn":
        assert "vermin" not in whole[1]


class _Cut:
    """Has the answer come in pieces of some sizes."""

    id = "cut"

    def __init__(self, text: str, sizes: list[int] | None) -> None:
        self._model = ScriptedModel(script=[says(text)], cut=sizes)

    def process_input_step(self, args: Any) -> dict[str, Any]:
        return {"model": self._model}


# Documents


@pytest.mark.parametrize(("slug", "options"), EXAMPLES, ids=[slug for slug, _ in EXAMPLES])
def test_the_example_in_the_documents_can_be_built(slug: str, options: str) -> None:
    context = BuildContext(models=lambda name: ScriptedModel(name), cache=Shelf(), costs=Accounts())
    assert KINDS.build(slug, "example", json.loads(options), context).id == "example"


def test_every_kind_of_the_page_has_an_example() -> None:
    assert len(EXAMPLES) == PAGE.count("\n```json\n") == 20


async def test_two_runs_of_one_guard_do_not_share_what_they_hold() -> None:
    guard = moderation(hate_judge())
    first, second = await asyncio.gather(
        talk([deltas("Alice's own answer.", 2)], output=[guard]),
        talk([deltas("Bob's own answer.", 3)], output=[guard]),
    )
    assert (first.delivered, second.delivered) == ("Alice's own answer.", "Bob's own answer.")
