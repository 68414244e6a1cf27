"""Every hook × stream and generate × pass, change, abort, abort with retry, exception and wrong return."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from processors.engine.errors import ContractError, ProcessorFailed
from processors.engine.hooks import HOOKS
from processors.engine.processor import ChainEntry
from processors.engine.tripwire import Tripwire
from tests.engine.scenes import SCENES, Scene
from tests.engine.stage import MODES, Echo, Mode, Played, Thread, agent_with, one_hook, play

pytestmark = [pytest.mark.parametrize("mode", MODES), pytest.mark.parametrize("hook", HOOKS)]


async def run(
    scene: Scene, mode: Mode, act: Any, *, retried: bool = False, on_error: Any = None, **values: Any
) -> Played:
    """The scene with a processor that acts in its hook."""
    script = scene.script
    if retried and scene.hook not in ("process_input_step", "process_llm_request"):
        script = (scene.script[0], *scene.again)
    elif retried:
        script = scene.again
    guard = one_hook(scene.hook, act)
    if on_error is not None:
        stage = next(s for s in ("input", "output", "error") if scene.hook in _hooks_of(s))
        values[f"{stage}_processors"] = [ChainEntry(guard, on_error=on_error)]
    agent, model = agent_with(copy.deepcopy(script), guard, tools=[Echo().tool()], **values)
    return await play(agent, model, mode)


def _hooks_of(stage: str) -> tuple[str, ...]:
    from processors.engine.hooks import HOOKS_OF_STAGE

    return HOOKS_OF_STAGE[stage]  # type: ignore[index]


def first_time(then: Any, neutral: Any) -> Any:
    """Act at the first call only, neutrally afterwards. In a stream only text counts."""

    def act(args: Any) -> Any:
        part = getattr(args, "part", None)
        if args.state.get("done") or (part is not None and part.type != "text-delta"):
            return neutral(args)
        args.state["done"] = True
        return then(args)

    return act


def shows_nothing_refused(played: Played, scene: Scene) -> None:
    """What was refused is neither in the result nor in the thread."""
    if scene.hook != "process_tool_result":
        assert scene.text.strip() not in played.result.text or not scene.text
        assert "Hello, Alice" not in played.thread.everything
    assert "Done." not in played.thread.everything


async def test_it_lets_pass(hook: str, mode: Mode) -> None:
    scene = SCENES[hook]
    played = await run(scene, mode, scene.neutral)
    if hook == "process_api_error":
        assert (played.result.status, str(played.result.error)) == ("failed", "busy")
        return
    assert (played.result.status, played.result.text) == ("completed", scene.text)
    assert played.thread.turns[-1].status == "completed"
    assert played.audit.entries == []
    assert len(played.thread.turns) == 1


async def test_it_changes(hook: str, mode: Mode) -> None:
    scene = SCENES[hook]
    played = await run(scene, mode, scene.change)
    assert played.result.status == "completed"
    assert scene.shows(played)


async def test_an_abort_ends_the_run_and_is_recorded(hook: str, mode: Mode) -> None:
    scene = SCENES[hook]
    played = await run(
        scene, mode, first_time(lambda a: a.abort("not here", metadata={"rule": 3}), scene.neutral)
    )
    assert played.result.status == "blocked"
    assert played.result.tripwire == Tripwire("not here", False, {"rule": 3}, "guard")
    assert played.result.finish_reason == "other"
    assert played.audit.outcomes() == [("violation", "block", "guard")]
    entry = played.audit.entries[0]
    assert (entry.hook, entry.violation.message, entry.violation.detail) == (hook, "not here", {"rule": 3})
    shows_nothing_refused(played, scene)
    assert played.model.open_streams == 0
    if mode == "stream":
        assert played.types("tripwire", "error", "abort", "finish") == ["tripwire"]
        tripwire = next(chunk for chunk in played.chunks if chunk.type == "tripwire").to_wire()
        assert (tripwire["from"], bool(tripwire["runId"])) == ("AGENT", True)
        assert tripwire["payload"]["processorId"] == "guard"


async def test_a_blocked_run_leaves_a_trace(hook: str, mode: Mode) -> None:
    scene = SCENES[hook]
    played = await run(scene, mode, first_time(lambda a: a.abort("not here"), scene.neutral))
    messages = list(played.thread.messages.values())
    assert all(message.blocked for message in messages)
    before_the_reply = hook in ("process_input", "process_input_step", "process_llm_request")
    assert messages[0].withheld is before_the_reply
    assert messages[0].text == ("" if before_the_reply else "Hello from Bob.")
    assert messages[-1].content.parts == [{"type": "notice", "reason": "not here", "processorId": "guard"}]


async def test_an_abort_with_retry_repeats_the_step(hook: str, mode: Mode) -> None:
    scene = SCENES[hook]
    act = first_time(lambda a: a.abort("say it nicer", retry=True), scene.neutral)
    played = await run(scene, mode, act, retried=True, max_processor_retries=2)
    if hook == "process_input":
        assert (played.result.status, played.audit.outcomes()) == (
            "blocked",
            [("violation", "block", "guard")],
        )
        return
    assert (played.result.status, played.result.text) == ("completed", scene.retried_text)
    assert [step.step_number for step in played.result.steps] == [0]
    assert played.audit.outcomes() == [("violation", "retry", "guard")]
    assert "say it nicer" in repr(played.model.requests[-1].prompt)
    assert played.thread.texts == [("user", "Hello from Bob."), ("assistant", scene.retried_text)]
    if mode == "stream":
        retry = next(chunk for chunk in played.chunks if chunk.type == "step-retry")
        assert (retry.payload or {})["reason"] == "say it nicer"
        assert played.delivered == scene.retried_text
        assert played.types("step-retry", "tripwire", "error") == ["step-retry"]


async def test_an_abort_is_final_when_no_retry_is_left(hook: str, mode: Mode) -> None:
    scene = SCENES[hook]

    def act(args: Any) -> Any:
        part = getattr(args, "part", None)
        if part is not None and part.type != "text-delta":
            return part
        args.abort("again", retry=True)

    played = await run(scene, mode, act, max_processor_retries=0)
    assert (played.result.status, len(played.audit.entries)) == ("blocked", 1)
    assert played.result.tripwire is not None
    assert played.result.tripwire.retry


async def test_an_exception_is_an_error_and_delivers_nothing_unscanned(hook: str, mode: Mode) -> None:
    scene = SCENES[hook]

    def act(args: Any) -> Any:
        part = getattr(args, "part", None)
        if part is not None and part.type != "text-delta":
            return part
        raise LookupError("no such table")

    played = await run(scene, mode, act)
    assert played.result.status == "failed"
    assert played.thread.turns[-1].status == "failed"
    if hook == "process_api_error":
        assert str(played.result.error) == "busy"
        return
    assert isinstance(played.result.error, ProcessorFailed)
    assert (played.result.error.processor_id, played.result.error.hook) == ("guard", hook)
    assert isinstance(played.result.error.__cause__, LookupError)
    assert played.audit.outcomes() == [("error", "block", "guard")]
    shows_nothing_refused(played, scene)
    if mode == "stream":
        assert played.types("tripwire", "error", "abort", "finish") == ["error"]
        assert "no such table" not in repr([chunk.to_wire() for chunk in played.chunks])
    assert "no such table" not in played.thread.everything


async def test_an_exception_passes_only_where_the_admin_allows_it(hook: str, mode: Mode) -> None:
    scene = SCENES[hook]

    def act(args: Any) -> Any:
        for message in getattr(args, "messages", None) or []:
            message.content.parts.append({"type": "text", "text": "half done"})
        part = getattr(args, "part", None)
        if part is not None and part.type == "text-delta":
            part.payload["text"] = "half done"
        raise LookupError("no such table")

    played = await run(scene, mode, act, on_error="allow")
    if hook == "process_api_error":
        assert str(played.result.error) == "busy"
        return
    assert (played.result.status, played.result.text) == ("completed", scene.text)
    assert {outcome for outcome, _, _ in played.audit.outcomes()} == {"not_scanned"}
    assert "half done" not in played.thread.everything


async def test_a_wrong_return_names_who_where_what_and_what_is_allowed(hook: str, mode: Mode) -> None:
    scene = SCENES[hook]
    for wrong in scene.wrong:
        played = await run(scene, mode, lambda args, wrong=wrong: wrong)
        error = played.result.error
        assert isinstance(error, ContractError), f"{wrong!r} gave {played.result.status}: {error!r}"
        assert (error.processor_id, error.hook) == ("guard", hook)
        assert error.returned
        assert error.allowed
        assert all(word in str(error) for word in ("guard", hook, error.returned, error.allowed))
        assert played.audit.outcomes() == [("error", "block", "guard")]


async def test_async_hooks_do_the_same(hook: str, mode: Mode) -> None:
    scene = SCENES[hook]

    async def act(args: Any) -> Any:
        return scene.change(args)

    played = await run(scene, mode, act)
    assert played.result.status == "completed"
    assert scene.shows(played)


async def test_an_abort_that_a_processor_swallows_counts(hook: str, mode: Mode) -> None:
    scene = SCENES[hook]

    def act(args: Any) -> Any:
        part = getattr(args, "part", None)
        if part is not None and part.type != "text-delta":
            return part
        try:
            args.abort("not here")
        except Exception:
            return scene.neutral(args)

    played = await run(scene, mode, act)
    assert (played.result.status, played.audit.outcomes()) == ("blocked", [("violation", "block", "guard")])


async def test_a_violation_is_reported_before_the_result_is_used(hook: str, mode: Mode) -> None:
    scene = SCENES[hook]

    def act(args: Any) -> Any:
        if not args.state.get("done"):
            args.state["done"] = True
            args.report_violation("seen", {"strategy": "redact", "type": "pii"})
        return scene.neutral(args)

    played = await run(scene, mode, act)
    assert played.audit.outcomes() == [("violation", "redact", "guard")]
    assert played.audit.entries[0].hook == hook


async def test_the_run_stops_when_the_audit_cannot_be_written(hook: str, mode: Mode) -> None:
    from processors.engine.errors import AuditUnavailable
    from tests.engine.stage import Audit

    scene = SCENES[hook]

    def act(args: Any) -> Any:
        args.report_violation("seen")
        return scene.neutral(args)

    guard = one_hook(hook, act)
    agent, model = agent_with(copy.deepcopy(scene.script), guard, tools=[Echo().tool()])
    played = await play(agent, model, mode, audit=Audit(broken=True), thread=Thread())
    assert played.result.status == "failed"
    assert isinstance(played.result.error, AuditUnavailable)
