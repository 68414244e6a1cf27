"""The tools for processor authors say what a run would say."""

from __future__ import annotations

from typing import Any

import pytest

from processors.engine.errors import ContractError
from processors.engine.testing import check_answer, check_input, check_tool_result, stream_text
from tests.engine.guards import blocker, redactor
from tests.engine.stage import one_hook


@pytest.mark.parametrize("cut", [1, 3, [2, 1], None])
async def test_a_stream_comes_to_the_same_however_it_is_cut(cut: Any) -> None:
    outcome = await stream_text([redactor("secret")], "my secret is a secret", cut=cut)
    assert (outcome.text, outcome.tripwire, outcome.violations) == ("my # is a #", None, [])


async def test_a_refusal_comes_back_with_its_violation() -> None:
    outcome = await stream_text([blocker("secret")], "my secret", cut=1)
    assert outcome.tripwire is not None
    assert (outcome.text, outcome.tripwire.processor_id) == ("my ", "block-secret")
    assert [violation.message for violation in outcome.violations] == ["refused"]


async def test_input_tool_results_and_answers_have_a_function_each() -> None:
    shout = one_hook("process_input", lambda a: [m.set_text(m.text.upper()) for m in a.messages] and None)
    assert (await check_input([shout], "hello bob")).text == "HELLO BOB"

    def hide(args: Any) -> None:
        args.message_list.update_tool_invocation(tool_call_id=args.tool_call_id, result="hidden")

    assert (await check_tool_result([one_hook("process_tool_result", hide)], {"pin": 1})).result == "hidden"
    stop = one_hook("process_output_result", lambda a: a.abort("no"))
    outcome = await check_answer([stop], "Hello, Alice.")
    assert outcome.tripwire is not None
    assert outcome.text == ""


async def test_data_parts_and_states_are_there_to_look_at() -> None:
    def write(args: Any) -> Any:
        args.state["parts"] = len(args.stream_parts)
        if args.part.type == "finish":
            args.writer.custom({"type": "data-count", "data": args.state["parts"]})
        return args.part

    outcome = await stream_text([one_hook("process_output_stream", write)], ["a", "b"])
    assert ([chunk.data for chunk in outcome.data], outcome.states) == ([7], {"guard": {"parts": 7}})


async def test_a_broken_contract_is_raised_for_its_author() -> None:
    with pytest.raises(ContractError, match="guard"):
        await stream_text([one_hook("process_output_stream", lambda a: "text")], "hello")
