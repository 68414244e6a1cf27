"""Cases of the field about streamed answers: each is named after its id."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest

from processors.engine.chunks import Chunk
from tests.builtin.harness import call, guard, stream
from tests.engine.stage import MODES, Mode, agent_with, play


def test_c01_an_email_cut_in_two_is_replaced_and_reported_once() -> None:
    pii = guard("pii-detector", redaction_method="placeholder")
    heard = stream(pii, ["Write to pat@", "example.org today"])
    assert heard.text == "Write to [EMAIL] today"
    assert not any("pat@" in delta for delta in heard.deltas)
    assert [detail["type"] for detail in heard.details] == ["email"]


def test_c02_a_number_cut_in_two_is_masked_once() -> None:
    heard = stream(guard("pii-detector", detection_types=["ssn"]), ["Number 123-45-", "6789 ok"])
    assert heard.text == "Number ***-**-6789 ok"
    assert len(heard.violations) == 1


def test_c03_an_own_pattern_without_a_longest_match_is_redacted_across_chunks() -> None:
    rules = [{"name": "test key", "pattern": "sk-test-[a-z0-9]{10,}", "replacement": "[KEY]"}]
    heard = stream(
        guard("regex-filter", rules=rules, strategy="redact"), ["key: sk-test-", "abcdef1234567890 done"]
    )
    assert heard.text == "key: [KEY] done"


def test_c06_overlapping_rules_make_one_region_and_the_longest_wins() -> None:
    rules = [
        {"name": "phone", "pattern": r"\d{10}", "replacement": "[PHONE]"},
        {"name": "card", "pattern": r"\d{16}", "replacement": "[CARD]"},
    ]
    heard = stream(
        guard("regex-filter", rules=rules, strategy="redact"), ["Charge 41111", "11111111111 today"]
    )
    assert heard.text == "Charge [CARD] today"
    pii = guard("pii-detector", redaction_method="placeholder", detection_types=["phone", "credit-card"])
    assert stream(pii, ["Charge 4111111111111111 today"]).text == "Charge [CREDIT_CARD] today"


@pytest.mark.parametrize("mode", MODES)
async def test_c08_nothing_of_a_banned_phrase_is_delivered_or_stored(mode: Mode) -> None:
    before = "A long and friendly answer. " * 20
    lines = [
        [
            Chunk("text-delta", {"id": "b", "text": piece})
            for piece in (before, "purple per", "simmon", " and more")
        ]
    ]
    agent, model = agent_with(lines, output_processors=[guard("block-list", words=["purple persimmon"])])
    played = await play(agent, model, mode)
    assert played.result.status == "blocked"
    assert played.types("tripwire") == (["tripwire"] if mode == "stream" else [])
    assert "purple" not in played.delivered + played.thread.everything
    assert mode == "generate" or played.delivered == before
    assert [entry.outcome for entry in played.audit.entries] == ["violation"]


def test_c09_a_word_cut_in_two_is_blocked() -> None:
    heard = stream(guard("block-list", words=["persimmon"]), ["pers", "immon"])
    assert heard.tripwire is not None
    assert heard.text == ""


def test_c10_forty_clean_deltas_pass_unchanged() -> None:
    deltas = [f"word{'' if number % 3 else ' '}, " for number in range(40)]
    for slug, options in SCREENS.items():
        heard = stream(guard(slug, **options), deltas)
        assert heard.text == "".join(deltas), slug
        assert "" not in heard.deltas, slug
        assert heard.violations == [], slug


SCREENS: dict[str, dict[str, Any]] = {
    "pii-detector": {}, "secrets-detector": {}, "link-guard": {}, "block-list": {"words": ["persimmon"]},
    "regex-filter": {"presets": ["pii", "secrets", "urls"]}, "topic-rules": {"topics": [{"name": "fruit", "words": ["persimmon"]}]},
    "system-prompt-scrubber": {},
}  # fmt: skip


@pytest.mark.parametrize("slug", ["pii-detector", "regex-filter", "block-list"])
def test_c15_fast_mode_shows_text_at_once_and_still_stops(slug: str) -> None:
    options = {
        "block-list": {"words": ["persimmon"]},
        "regex-filter": {"presets": ["pii"]},
        "pii-detector": {},
    }[slug]
    heard = stream(
        guard(slug, strategy="block", release="fast", **options), ["ann@exa", "mple.org per", "simmon "]
    )
    assert heard.deltas[0] == "ann@exa"
    assert heard.tripwire is not None


@pytest.mark.parametrize("slug", ["pii-detector", "secrets-detector", "link-guard"])
def test_c16_redaction_with_fast_mode_is_a_form_error(slug: str) -> None:
    with pytest.raises(pydantic.ValidationError, match="safe release"):
        guard(slug, strategy="redact", release="fast")


def test_c17_a_clean_prefix_is_shown_at_once_and_the_tail_is_not_lost() -> None:
    heard = stream(guard("pii-detector"), ["All is well, ask pat"])
    assert heard.deltas[0] == "All is well, ask "
    assert heard.text == "All is well, ask pat"


@pytest.mark.parametrize(
    ("policy", "shown", "tool_gets"),
    [("redact", "[EMAIL]", "[EMAIL]"), ("allow", "[EMAIL]", "pat@example.org")],
)
def test_c19_people_see_redacted_arguments_and_the_tool_gets_what_the_policy_says(policy: str, shown: str, tool_gets: str) -> None:  # fmt: skip
    pii = guard("pii-detector", redaction_method="placeholder", tool_arguments=policy)
    pieces = [Chunk("tool-call-delta", {"toolCallId": "c1", "argsTextDelta": text}) for text in ('{"to":"pat@exam', 'ple.org"}')]  # fmt: skip
    heard = stream(pii, [*pieces, call("send", {"to": "pat@example.org", "count": 3})])
    calls = [chunk for chunk in heard.chunks if chunk.type.startswith("tool-call")]
    assert [chunk.type for chunk in calls] == ["tool-call"]
    args = (calls[0].payload or {})["args"]
    assert dict(args) == {"to": shown, "count": 3}
    assert getattr(args, "for_tool", args)["to"] == tool_gets


def test_c19_a_call_with_personal_data_can_be_blocked() -> None:
    heard = stream(guard("pii-detector", tool_arguments="block"), [call("send", {"to": "pat@example.org"})])
    assert heard.tripwire is not None
    assert "pat@example.org" not in repr(heard.tripwire.metadata)
