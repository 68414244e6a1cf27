"""The cache replays only what passed, only to whom it belongs, and only for the very same question."""

from __future__ import annotations

from typing import Any

import pytest

from agents.loop.tools import Tool
from agents.providers.scripted import finish, says, tool_call
from processors.engine.chunks import text_delta
from processors.engine.errors import ConfigError
from processors.engine.hooks import RequestContext
from processors.engine.ports import BuildContext
from tests.builtin.judged import Shelf, built, talk
from tests.engine.stage import Echo


def cache(shelf: Any, **options: Any) -> Any:
    return built("response-cache", "cache", context=BuildContext(cache=shelf), **options)


async def asked(keeper: Any, **call: Any) -> int:
    """How often the model was asked for one run."""
    return len((await talk([says("Hi.")], input=[keeper], **call)).model.requests)


async def test_the_same_question_of_the_same_person_is_answered_from_the_cache() -> None:
    keeper = cache(Shelf())
    first = await talk([says("Hi.")], input=[keeper])
    again = await talk([], input=[keeper])
    assert (first.delivered, again.delivered, again.model.requests) == ("Hi.", "Hi.", [])
    assert again.result.usage.total_tokens == 0


@pytest.mark.parametrize(
    "difference",
    [
        {"user": "alice"},
        {"says": "Another question."},
        {"model_settings": {"temperature": 1}},
        {"provider_options": {"openai": {"seed": 1}}},
        {"agent": {"tools": [Tool("clock")]}},
        {"tool_choice": "none"},
        {"structured_output": {"schema": {"type": "string"}}},
        {"request_context": RequestContext(user_id="bob", agent="other")},
        {"request_context": RequestContext(user_id="bob", response_cache="refresh")},
        {"request_context": RequestContext(user_id="bob", response_cache="skip")},
    ],
    ids=[
        "user",
        "question",
        "settings",
        "provider options",
        "tools",
        "tool choice",
        "schema",
        "agent",
        "refresh",
        "skip",
    ],
)
async def test_whatever_may_change_the_answer_asks_the_model(difference: dict[str, Any]) -> None:
    keeper = cache(Shelf())
    assert await asked(keeper) == 1
    assert (await talk([says('"Hi."')], input=[keeper], **difference)).model.requests != []
    assert await asked(keeper) == 0


async def test_everyone_gets_a_kept_answer_only_if_the_admin_said_so() -> None:
    keeper = cache(Shelf(), scope="everyone")
    assert [await asked(keeper, user=user) for user in ("alice", "bob", "charlie")] == [1, 0, 0]


async def test_a_replayed_answer_passes_the_output_chain() -> None:
    class Guard:
        id = "guard"

        def process_output_stream(self, args: Any) -> Any:
            if "Hi" in args.part.text:
                args.abort("No greetings.")
            return args.part

    keeper = cache(Shelf())
    await asked(keeper)
    refused = await talk([], input=[keeper], output=[Guard()])
    assert (refused.result.status, refused.delivered) == ("blocked", "")


async def test_what_a_guardrail_refused_or_changed_is_not_kept_as_it_was() -> None:
    class Redactor:
        id = "redactor"

        def process_output_stream(self, args: Any) -> Any:
            return (
                args.part.with_text(args.part.text.replace("secret", "[…]")) if args.part.text else args.part
            )

    shelf = Shelf()
    await talk([says("A secret.")], input=[cache(shelf)], output=[Redactor()])
    assert "secret" not in repr(shelf.values)
    assert "A […]." in repr(shelf.values)


async def test_in_both_chains_it_keeps_nothing_of_a_run_that_was_refused_at_its_end() -> None:
    class Late:
        id = "late"

        def process_output_result(self, args: Any) -> None:
            args.abort("No.")

    shelf = Shelf()
    keeper = cache(shelf)
    await talk([says("Hi.")], input=[keeper], output=[Late(), keeper])
    assert shelf.values == {}
    await talk([says("Hi.")], input=[keeper], output=[keeper])
    assert len(shelf.values) == 1


async def test_a_refused_answer_does_not_come_again_from_the_cache() -> None:
    class Picky:
        id = "picky"

        def process_output_step(self, args: Any) -> None:
            if args.text == "Hi.":
                args.abort("Say more.", retry=True)

    played = await talk(
        [says("Hi."), says("Hello, Bob.")],
        input=[cache(Shelf())],
        output=[Picky()],
        agent={"max_processor_retries": 1},
    )
    assert (played.result.text, len(played.model.requests)) == ("Hello, Bob.", 2)


async def test_an_answer_that_was_cut_off_is_not_kept() -> None:
    shelf = Shelf()
    await talk([[text_delta("Hi, I am"), finish("length")]], input=[cache(shelf)])
    assert shelf.values == {}


async def test_the_tools_of_a_replayed_answer_run_again() -> None:
    echo, keeper = Echo(), cache(Shelf())
    script = [[tool_call("echo", {"n": 1})], says("Done.")]
    await talk(script, input=[keeper], agent={"tools": [echo.tool()]})
    again = await talk([], input=[keeper], agent={"tools": [echo.tool()]})
    assert (again.result.text, len(echo.runs)) == ("Done.", 2)


async def test_a_cache_that_is_broken_changes_nothing() -> None:
    class Broken:
        async def get(self, key: str) -> Any:
            raise OSError("gone")

        async def set(self, key: str, value: Any, *, ttl: float) -> None:
            raise OSError("gone")

    keeper = cache(Broken())
    assert [await asked(keeper), await asked(keeper)] == [1, 1]


def test_without_a_cache_it_is_refused() -> None:
    with pytest.raises(ConfigError, match="no cache"):
        built("response-cache")
