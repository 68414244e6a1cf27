"""Models: fallbacks, error processors, structured output, per-step choices, stop conditions."""

from __future__ import annotations

from typing import Any

import pytest

from agents.loop.agent import Agent
from agents.providers.scripted import ScriptedModel, finish, says, tool_call
from processors.engine.chunks import Chunk, text_delta
from processors.engine.errors import ConfigError, ModelAPIError
from tests.engine.stage import MODES, Echo, Mode, Thread, agent_with, one_hook, play

SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}


def busy() -> Exception:
    return ModelAPIError("busy", status=503, retryable=True)


@pytest.mark.parametrize("mode", MODES)
async def test_a_fallback_answers_when_the_main_model_fails_for_good(mode: Mode) -> None:
    agent, model = agent_with([[text_delta("Hel"), busy()]])
    other = ScriptedModel("scripted/other", script=[says("Hello, Alice.")])
    agent.fallbacks = [other]
    played = await play(agent, model, mode)
    assert (played.result.status, played.result.text) == ("completed", "Hello, Alice.")
    assert played.result.steps[0].model_id == "scripted/other"
    assert played.thread.texts == [("user", "Hello from Bob."), ("assistant", "Hello, Alice.")]
    if mode == "stream":
        assert played.delivered == "Hello, Alice."
        assert played.types("step-retry", "error") == ["step-retry"]


async def test_a_fallback_that_answered_stays_for_the_steps_that_follow() -> None:
    agent, model = agent_with([[busy()]], tools=[Echo().tool()])
    other = ScriptedModel("scripted/other", script=[[tool_call("echo", {})], says("Done.")])
    agent.fallbacks = [other]
    played = await play(agent, model)
    assert (played.result.text, len(model.requests), len(other.requests)) == ("Done.", 1, 2)


async def test_error_processors_come_before_the_fallback() -> None:
    calls: list[str] = []

    def handle(args: Any) -> Any:
        calls.append(str(args.error))
        return {"retry": len(calls) == 1}

    agent, model = agent_with([[busy()], [busy()]], one_hook("process_api_error", handle))
    agent.fallbacks = [ScriptedModel("scripted/other", script=[says("Hello, Alice.")])]
    played = await play(agent, model)
    assert (calls, played.result.text) == (["busy", "busy"], "Hello, Alice.")


@pytest.mark.parametrize("error", [ConnectionResetError("gone"), TimeoutError("slow"), busy()])
async def test_broken_connections_are_api_errors(error: Exception) -> None:
    agent, model = agent_with([[text_delta("Hel"), error], says("Hello, Alice.")],
                              one_hook("process_api_error", lambda a: {"retry": True}))  # fmt: skip
    played = await play(agent, model)
    assert (played.result.status, played.result.text, played.delivered) == ("completed",) + (
        "Hello, Alice.",
    ) * 2


async def test_a_stream_that_ends_without_a_finish_is_an_api_error() -> None:
    class Torn(ScriptedModel):
        async def stream(self, request: Any, *, signal: Any = None) -> Any:
            yield text_delta("Hel")

    agent, _ = agent_with([])
    agent.model = Torn()
    played = await play(agent, agent.model)
    assert isinstance(played.result.error, ModelAPIError)
    assert played.thread.texts == [("user", "Hello from Bob.")]


async def test_a_programming_error_of_a_client_is_no_api_error() -> None:
    seen: list[Any] = []
    agent, model = agent_with([[KeyError("choices")]], one_hook("process_api_error", seen.append))
    played = await play(agent, model)
    assert (played.result.status, seen) == ("failed", [])
    assert isinstance(played.result.error, KeyError)


async def test_changes_an_error_processor_makes_apply_to_the_next_attempt() -> None:
    def trim(args: Any) -> Any:
        args.message_list.remove_by_ids([args.message_list.all[0].id])
        return {"retry": True}

    from processors.engine.messages import assistant_message, user_message

    thread = Thread([user_message("old question"), assistant_message("old answer")])
    agent, model = agent_with([[busy()], says("Hello, Alice.")], one_hook("process_api_error", trim))
    played = await play(agent, model, thread=thread)
    assert "old question" not in repr(model.requests[1].prompt)
    assert ("user", "old question") in played.thread.texts


async def test_a_failed_run_is_kept_but_never_sent_again() -> None:
    agent, model = agent_with([[busy()], says("Hello, Alice.")])
    thread = Thread()
    failed = await play(agent, model, says="first words", thread=thread)
    assert failed.result.status == "failed"
    played = await play(agent, model, says="second words", thread=thread)
    assert played.result.text == "Hello, Alice."
    assert "first words" not in repr(model.requests[1].prompt)
    assert [role for role, _ in thread.texts] == ["user", "user", "assistant"]
    parts = [part for message in thread.messages.values() for part in message.content.parts]
    assert [part["error"] for part in parts if part["type"] == "error"] == [
        {"name": "ModelAPIError", "message": "busy"}
    ]


# ── structured output ────────────────────────────────────────────────────────
@pytest.mark.parametrize("mode", MODES)
async def test_an_answer_that_fits_its_schema_becomes_an_object(mode: Mode) -> None:
    agent, model = agent_with([says('{"answer": "yes"}')])
    played = await play(agent, model, mode, structured_output={"schema": SCHEMA})
    assert (played.result.object, model.requests[0].response_schema) == ({"answer": "yes"}, SCHEMA)
    if mode == "stream":
        chunk = next(chunk for chunk in played.chunks if chunk.type == "object-result")
        assert chunk.payload == {"object": {"answer": "yes"}}


async def test_the_object_is_made_of_what_the_guards_passed() -> None:
    def redact(args: Any) -> Any:
        if args.part.type == "text-delta":
            return args.part.with_text(args.part.text.replace("secret", "#"))
        return args.part

    agent, model = agent_with([says('{"answer": "secret"}')], one_hook("process_output_stream", redact))
    played = await play(agent, model, structured_output={"schema": SCHEMA})
    assert played.result.object == {"answer": "#"}
    assert "secret" not in repr([chunk.to_wire() for chunk in played.chunks])


async def test_an_object_follows_what_process_output_result_changed() -> None:
    def redact(args: Any) -> Any:
        for message in args.messages:
            message.set_text(message.text.replace("secret", "#"))

    agent, model = agent_with([says('{"answer": "secret"}')], one_hook("process_output_result", redact))
    played = await play(agent, model, structured_output={"schema": SCHEMA})
    assert played.result.object == {"answer": "#"}


async def test_a_misfit_is_asked_for_again_with_the_reason() -> None:
    agent, model = agent_with(
        [says("yes"), says('{"answer": 1}'), says('{"answer": "yes"}')], max_processor_retries=2
    )
    played = await play(agent, model, structured_output={"schema": SCHEMA})
    assert (played.result.status, played.result.object) == ("completed", {"answer": "yes"})
    assert played.result.text == '{"answer": "yes"}'
    assert played.audit.entries == []


@pytest.mark.parametrize("mode", MODES)
async def test_a_misfit_without_retries_fails_the_run(mode: Mode) -> None:
    agent, model = agent_with([says("yes")])
    played = await play(agent, model, mode, structured_output={"schema": SCHEMA})
    assert (played.result.status, played.result.object, played.result.tripwire) == ("failed", None, None)


# ── the loop's other knobs ───────────────────────────────────────────────────
async def test_a_name_that_a_processor_returns_is_resolved() -> None:
    other = ScriptedModel("scripted/other", script=[says("Hello, Alice.")])
    pick = one_hook("process_input_step", lambda a: {"model": "scripted/other"})
    agent, model = agent_with([], pick, resolver=lambda name: {"scripted/other": other}[name])
    assert (await play(agent, model)).result.steps[0].model_id == "scripted/other"
    agent, model = agent_with([], pick)
    played = await play(agent, model)
    assert isinstance(played.result.error, ConfigError)


async def test_prepare_step_is_the_last_word_before_the_call() -> None:
    first = one_hook("process_input_step", lambda a: {"model_settings": {"temperature": 1}})
    agent, model = agent_with([says("Hello, Alice.")], first)
    await play(agent, model, prepare_step=lambda a: {"model_settings": {**a.model_settings, "top_p": 1}})
    assert model.requests[0].settings == {"temperature": 1, "top_p": 1}


async def test_a_stop_condition_ends_the_loop() -> None:
    agent, model = agent_with([[tool_call("echo", {})], says("never")], tools=[Echo().tool()])
    played = await play(agent, model, stop_when=lambda steps: len(steps) == 1)
    assert (played.result.status, len(model.requests), played.result.finish_reason) == (
        "completed",
        1,
        "tool-calls",
    )


async def test_max_steps_ends_the_loop_and_retries_do_not_use_it_up() -> None:
    agent, model = agent_with([[tool_call("echo", {})]] * 2, tools=[Echo().tool()], max_steps=2)
    played = await play(agent, model)
    assert (len(played.result.steps), played.result.status) == (2, "completed")


async def test_a_different_id_starts_a_new_block() -> None:
    lines = [text_delta("one", block="a"), text_delta("two", block="b"), finish()]
    agent, model = agent_with([lines])
    played = await play(agent, model)
    assert (
        played.types("text-start", "text-delta", "text-end") == ["text-start", "text-delta", "text-end"] * 2
    )


async def test_a_reply_of_an_unknown_chunk_type_fails_the_run_loudly_or_passes_it_on() -> None:
    agent, model = agent_with([[Chunk("source", {"url": "https://example.org"}), *says("Hello.")]])
    played = await play(agent, model)
    assert played.result.steps[0].sources == [{"url": "https://example.org"}]
    assert {"type": "source", "url": "https://example.org"} in played.thread.turns[0].messages[
        -1
    ].content.parts


def test_a_processor_in_a_list_without_its_hook_is_refused_when_the_chain_is_built() -> None:
    from processors.engine.hooks import RequestContext
    from processors.engine.slots import build_slots, entries_of

    lost = one_hook("process_api_error", lambda a: None, id="lost")
    with pytest.raises(ConfigError, match=r"lost.*input"):
        build_slots({"input": entries_of([lost], RequestContext()), "output": [], "error": []})


async def test_a_chain_that_cannot_be_built_fails_the_run_and_calls_no_model() -> None:
    lost = one_hook("process_api_error", lambda a: None, id="lost")
    model = ScriptedModel(script=[says("never")])
    played = await play(Agent("agent", model=model, input_processors=[lost]), model)
    assert (played.result.status, model.requests) == ("failed", [])
    assert isinstance(played.result.error, ConfigError)
    assert played.types("error") == ["error"]


async def test_a_step_names_its_message_from_its_start_to_its_withdrawal() -> None:
    agent, model = agent_with([[text_delta("Hel"), busy()], says("Hello, Alice.")],
                              one_hook("process_api_error", lambda a: {"retry": True}))  # fmt: skip
    played = await play(agent, model)
    named = [(chunk.type, (chunk.payload or {})["messageId"]) for chunk in played.chunks
             if chunk.type in ("step-start", "step-retry")]  # fmt: skip
    first, withdrawn, second = named
    assert (withdrawn[0], withdrawn[1]) == ("step-retry", first[1])
    assert played.thread.turns[0].messages[-1].id == second[1] != first[1]


async def test_the_next_processor_receives_the_client_for_the_name_that_one_returned() -> None:
    other = ScriptedModel("scripted/other", script=[says("Hello, Alice.")])
    seen: list[Any] = []
    agent, model = agent_with(
        [], one_hook("process_input_step", lambda a: {"model": "scripted/other", "tools": list(a.tools.values())}),
        one_hook("process_input_step", lambda a: seen.extend([a.model, a.tools]), id="second"),
        tools=[Echo().tool()], resolver=lambda name: other,
    )  # fmt: skip
    await play(agent, model)
    assert seen[0] is other
    assert list(seen[1]) == ["echo"]


async def test_a_violation_that_is_reported_late_is_recorded_all_the_same() -> None:
    kept: list[Any] = []
    keep = one_hook("process_input", lambda a: kept.append(a.report_violation))
    agent, model = agent_with(
        [says("Hi.")], keep, one_hook("process_output_result", lambda a: kept[0]("late"), id="other")
    )
    played = await play(agent, model)
    assert [(e.violation.processor_id, e.violation.message) for e in played.audit.entries] == [
        ("guard", "late")
    ]
