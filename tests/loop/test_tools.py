"""Tools: arguments, order, approval, client side, and what guards do to calls and results."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from agents.loop.tools import ApprovalDecision, Tool
from agents.providers.scripted import says, tool_call
from processors.engine.chunks import Chunk
from tests.engine.stage import Echo, Thread, agent_with, one_hook, play

WHO = {
    "type": "object",
    "properties": {"who": {"type": "string"}},
    "required": ["who"],
    "additionalProperties": False,
}


def invocations(messages: Any) -> list[dict[str, Any]]:
    return [part["toolInvocation"] for message in messages for part in message.content.parts
            if part["type"] == "tool-invocation"]  # fmt: skip


async def test_results_come_in_call_order_though_tools_run_side_by_side() -> None:
    running = 0
    most = 0

    async def execute(args: Any, context: Any) -> Any:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(args["wait"])
        running -= 1
        return args["wait"]

    calls = [tool_call("wait", {"wait": 0.03}, "slow"), tool_call("wait", {"wait": 0.0}, "fast")]
    agent, model = agent_with([calls, says("Done.")], tools=[Tool("wait", execute=execute)])
    played = await play(agent, model)
    assert most == 2
    assert [r.tool_call_id for r in played.result.tool_results] == ["slow", "fast"]
    assert [(c.payload or {})["toolCallId"] for c in played.chunks if c.type == "tool-result"] == [
        "slow",
        "fast",
    ]


async def test_arguments_that_do_not_fit_become_an_error_for_the_model() -> None:
    echo = Echo()
    seen: list[Any] = []
    agent, model = agent_with(
        [[tool_call("echo", {"whom": "charlie"})], says("Sorry.")],
        one_hook("process_tool_result", seen.append), tools=[echo.tool(parameters=WHO)],
    )  # fmt: skip
    played = await play(agent, model)
    assert (played.result.status, echo.runs, seen) == ("completed", [], [])
    assert "who" in repr(model.requests[1].prompt[-1])
    assert invocations(played.thread.turns[0].messages)[0]["state"] == "error"


async def test_arguments_that_are_no_json_become_an_error_for_the_model() -> None:
    broken = Chunk(
        "tool-call", {"toolCallId": "c", "toolName": "echo", "args": {}, "invalidArgs": '{"who": '}
    )
    echo = Echo()
    agent, model = agent_with([[broken], says("Sorry.")], tools=[echo.tool()])
    played = await play(agent, model)
    assert (played.result.status, echo.runs, played.result.text) == ("completed", [], "Sorry.")


async def test_an_edited_call_is_what_runs_and_what_is_stored() -> None:
    def edit(args: Any) -> Any:
        if args.part.type == "tool-call":
            return args.part.replace(payload={**args.part.payload, "args": {"who": "alice"}})
        return args.part

    echo = Echo()
    agent, model = agent_with([[tool_call("echo", {"who": "mallory"})], says("Done.")],
                              one_hook("process_output_stream", edit), tools=[echo.tool(parameters=WHO)])  # fmt: skip
    played = await play(agent, model)
    assert echo.runs == [{"who": "alice"}]
    assert invocations(played.thread.turns[0].messages)[0]["args"] == {"who": "alice"}
    assert "mallory" not in repr(model.requests[1].prompt)


async def test_a_dropped_result_is_neither_stored_nor_sent_to_the_model() -> None:
    agent, model = agent_with(
        [[tool_call("echo", {"who": "secret"})], says("Done.")],
        one_hook("process_output_stream", lambda a: None if a.part.type == "tool-result" else a.part),
        tools=[Tool("echo", execute=lambda args, context: "the secret result")],
    )  # fmt: skip
    played = await play(agent, model)
    assert played.result.status == "completed"
    assert "the secret result" not in repr(model.requests[1].prompt)
    assert "the secret result" not in played.thread.everything


async def test_removing_the_call_after_the_reply_cancels_it() -> None:
    def remove(args: Any) -> Any:
        args.message_list.remove_by_ids([message.id for message in args.message_list.response])
        return args.message_list

    echo = Echo()
    agent, model = agent_with([[tool_call("echo", {"who": "charlie"})], says("Done.")],
                              one_hook("process_output_step", remove), tools=[echo.tool()])  # fmt: skip
    played = await play(agent, model)
    assert (echo.runs, len(model.requests), played.result.tool_calls) == ([], 1, [])


async def test_tools_wait_until_the_reply_is_accepted() -> None:
    echo = Echo()
    agent, model = agent_with(
        [[tool_call("echo", {"who": "charlie"})]],
        one_hook("process_output_step", lambda a: a.abort("no tools today")), tools=[echo.tool()],
    )  # fmt: skip
    played = await play(agent, model)
    assert (played.result.status, echo.runs) == ("blocked", [])


async def test_a_time_limit_makes_a_tool_error() -> None:
    async def execute(args: Any, context: Any) -> Any:
        await asyncio.sleep(30)

    agent, model = agent_with([[tool_call("slow", {})], says("Sorry.")],
                              tools=[Tool("slow", execute=execute, timeout=0.02)])  # fmt: skip
    played = await play(agent, model)
    assert played.result.text == "Sorry."
    assert "isError" in repr(model.requests[1].prompt[-1])


async def test_progress_reaches_the_client_while_the_tool_runs() -> None:
    shown = asyncio.Event()

    async def execute(args: Any, context: Any) -> Any:
        await context.writer.custom({"type": "data-tool-progress", "data": {"pct": 50}, "transient": True})
        await asyncio.wait_for(shown.wait(), 2)
        return "done"

    agent, model = agent_with([[tool_call("slow", {})], says("Done.")], tools=[Tool("slow", execute=execute)])
    thread = Thread()
    stream = agent.stream("Hello from Bob.", memory=thread)
    async for chunk in stream:
        if chunk.type == "data-tool-progress":
            shown.set()
    assert (await stream.result()).text == "Done."
    assert "data-tool-progress" not in thread.everything


async def test_a_client_side_tool_ends_the_run_after_the_others_have_run() -> None:
    echo = Echo()
    agent, model = agent_with([[tool_call("pick", {}, "a"), tool_call("echo", {"who": "x"}, "b")]],
                              tools=[Tool("pick"), echo.tool()])  # fmt: skip
    played = await play(agent, model)
    assert (played.result.status, played.result.finish_reason) == ("completed", "tool-calls")
    assert echo.runs == [{"who": "x"}]
    assert [call["state"] for call in invocations(played.thread.turns[0].messages)] == ["call", "result"]


async def test_a_reply_without_calls_ends_the_run_though_the_provider_says_tool_calls() -> None:
    agent, model = agent_with([[tool_call("echo", {"who": "x"})], says("never")],
                              one_hook("process_output_stream",
                                       lambda a: None if a.part.type == "tool-call" else a.part),
                              tools=[Echo().tool()])  # fmt: skip
    played = await play(agent, model)
    assert (len(model.requests), played.result.status) == (1, "completed")


# ── approval ─────────────────────────────────────────────────────────────────
def waiting_agent(*processors: Any) -> Any:
    echo = Echo()
    tool = echo.tool(parameters=WHO, requires_approval=True)
    agent, model = agent_with([[*says("May I? "), tool_call("echo", {"who": "charlie"})], says("Done.")],
                              *processors, tools=[tool])  # fmt: skip
    return agent, model, echo


async def test_a_run_that_needs_approval_waits_with_a_json_snapshot() -> None:
    agent, model, echo = waiting_agent()
    played = await play(agent, model)
    assert (played.result.status, echo.runs, played.thread.turns[0].status) == ("waiting", [], "waiting")
    assert json.loads(json.dumps(played.result.snapshot)) == played.thread.turns[0].snapshot
    assert "tool-call-approval" in played.types()
    assert played.thread.texts == [("user", "Hello from Bob."), ("assistant", "May I? ")]


async def test_text_that_the_whole_chain_has_not_passed_is_not_stored_while_the_run_waits() -> None:
    agent, model, _ = waiting_agent(one_hook("process_output_result", lambda a: None))
    played = await play(agent, model)
    assert played.thread.texts == [("user", "Hello from Bob.")]
    assert [call["toolCallId"] for call in invocations(played.thread.turns[0].messages)] == ["call-1"]
    await resumed(agent, model, played, ApprovalDecision(True))
    assert [text for _, text in played.thread.texts] == ["Hello from Bob.", "May I? ", "Done."]


async def resumed(agent: Any, model: Any, played: Any, decision: ApprovalDecision) -> Any:
    snapshot = json.loads(json.dumps(played.result.snapshot))
    stream = agent.resume(snapshot, {"call-1": decision}, memory=played.thread, audit=played.audit)
    chunks = [chunk async for chunk in stream]
    return await stream.result(), chunks


async def test_an_approved_call_runs_and_the_run_ends_as_if_it_had_not_waited() -> None:
    agent, model, echo = waiting_agent()
    played = await play(agent, model)
    result, chunks = await resumed(agent, model, played, ApprovalDecision(True))
    assert (result.status, result.text, result.run_id) == ("completed", "May I? Done.", played.result.run_id)
    assert echo.runs == [{"who": "charlie"}]
    assert [step.step_number for step in result.steps] == [0, 1]
    assert played.thread.texts == [
        ("user", "Hello from Bob."),
        ("assistant", "May I? "),
        ("assistant", "Done."),
    ]
    assert result.usage.total_tokens == 30
    assert len(model.requests) == 2
    assert "Be brief." in repr(model.requests[1].prompt)


async def test_a_declined_call_tells_the_model_why() -> None:
    seen: list[Any] = []
    agent, model, echo = waiting_agent(one_hook("process_tool_result", seen.append))
    played = await play(agent, model)
    result, _ = await resumed(agent, model, played, ApprovalDecision(False, reason="charlie is on holiday"))
    assert (result.status, echo.runs, seen) == ("completed", [], [])
    assert "charlie is on holiday" in repr(model.requests[1].prompt)
    assert invocations(played.thread.turns[-1].messages)[0]["state"] == "denied"


async def test_edited_arguments_are_checked_again_and_are_what_is_stored() -> None:
    agent, model, echo = waiting_agent()
    played = await play(agent, model)
    result, _ = await resumed(agent, model, played, ApprovalDecision(True, args={"whom": "alice"}))
    assert (result.status, echo.runs) == ("completed", [])
    agent, model, echo = waiting_agent()
    played = await play(agent, model)
    await resumed(agent, model, played, ApprovalDecision(True, args={"who": "alice"}))
    assert echo.runs == [{"who": "alice"}]
    assert invocations(played.thread.turns[-1].messages)[0]["args"] == {"who": "alice"}


async def test_edited_arguments_pass_the_guards_again() -> None:
    def refuse(args: Any) -> Any:
        if args.part.type == "tool-call" and args.part.payload["args"] == {"who": "mallory"}:
            args.abort("not mallory")
        return args.part

    agent, model, echo = waiting_agent(one_hook("process_output_stream", refuse))
    played = await play(agent, model)
    result, _ = await resumed(agent, model, played, ApprovalDecision(True, args={"who": "mallory"}))
    assert (result.status, echo.runs) == ("blocked", [])


async def test_state_survives_the_wait() -> None:
    def count(args: Any) -> None:
        args.state["steps"] = args.state.get("steps", 0) + 1
        if args.step_number == 1:
            args.report_violation("seen", {"steps": args.state["steps"]})

    agent, model, _ = waiting_agent(one_hook("process_input_step", count))
    played = await play(agent, model)
    await resumed(agent, model, played, ApprovalDecision(True))
    assert played.audit.entries[0].violation.detail == {"steps": 2}


async def test_calls_without_approval_run_before_the_pause() -> None:
    free, asked = Echo("free"), Echo("asked")
    agent, model = agent_with(
        [[tool_call("asked", {}, "call-1"), tool_call("free", {}, "call-2")], says("Done.")],
        tools=[free.tool(), asked.tool(requires_approval=True)],
    )  # fmt: skip
    played = await play(agent, model)
    assert (played.result.status, len(free.runs), len(asked.runs)) == ("waiting", 1, 0)
    result, _ = await resumed(agent, model, played, ApprovalDecision(True))
    assert (result.status, len(free.runs), len(asked.runs)) == ("completed", 1, 1)
