"""What models are told about tools and instructions: old calls left out, many tools found by search, blocks read on demand."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from agents.loop.tools import Tool
from agents.providers.scripted import says, tool_call
from processors.engine.messages import Message, MessageContent, user_message
from tests.builtin.judged import built, talk
from tests.engine.stage import Echo, Thread


def earlier_call(id: str, name: str, result: Any, text: str) -> Message:
    call = {"state": "result", "toolCallId": id, "toolName": name, "args": {}, "result": result}
    return Message(
        "assistant",
        MessageContent([{"type": "tool-invocation", "toolInvocation": call}, {"type": "text", "text": text}]),
    )


def history() -> Thread:
    return Thread(
        [
            user_message("Weather?"),
            earlier_call("old-1", "weather", {"celsius": 1}, "Cold."),
            user_message("Time?"),
            earlier_call("old-2", "clock", "12:00", "Noon."),
        ]
    )


def calls_in(prompt: Any) -> list[str]:
    return [
        part["toolName"]
        for message in prompt
        if message["role"] == "assistant"
        for part in message["content"]
        if part["type"] == "tool-call"
    ]


async def test_calls_of_earlier_answers_are_left_out_and_those_of_this_one_stay() -> None:
    echo, thread = Echo(), history()
    played = await talk(
        [[tool_call("echo", {"a": 1})], says("Done.")],
        input=[built("tool-call-filter")],
        thread=thread,
        agent={"tools": [echo.tool()]},
    )
    assert [calls_in(request.prompt) for request in played.model.requests] == [[], ["echo"]]
    assert "Cold." in repr(played.model.requests[0].prompt)
    assert "celsius" in thread.everything


async def test_only_the_named_tools_are_left_out() -> None:
    played = await talk([says("Hi.")], input=[built("tool-call-filter", exclude=["clock"])], thread=history())
    assert calls_in(played.model.requests[0].prompt) == ["weather"]


async def test_an_empty_list_of_tools_leaves_nothing_out() -> None:
    played = await talk([says("Hi.")], input=[built("tool-call-filter", exclude=[])], thread=history())
    assert calls_in(played.model.requests[0].prompt) == ["weather", "clock"]


async def test_a_note_may_stand_in_place_of_a_call() -> None:
    played = await talk(
        [says("Hi.")], input=[built("tool-call-filter", preserve_model_output=True)], thread=history()
    )
    assert '[weather({}) gave {"celsius": 1}]' in played.model.requests[0].prompt[2]["content"][0]["text"]


async def test_only_the_last_steps_of_a_long_answer_stay() -> None:
    echo = Echo()
    script = [[tool_call("echo", {"n": n}, f"call-{n}")] for n in range(3)]
    played = await talk(
        [*script, says("Done.")],
        input=[built("tool-call-filter", filter_after_tool_steps=1)],
        agent={"tools": [echo.tool()]},
    )
    assert [len(calls_in(request.prompt)) for request in played.model.requests] == [0, 1, 1, 1]


# Tool search


def many_tools() -> tuple[list[Tool], list[Any]]:
    runs: list[Any] = []

    async def execute(args: Any, context: Any) -> Any:
        runs.append(args)
        return "sent"

    names = {f"tool_{n}": "Does something else." for n in range(20)} | {
        "send_mail": "Sends a letter by e-mail to an address."
    }
    return [Tool(name, words, execute=execute) for name, words in names.items()], runs


def shown(played: Any) -> list[list[str]]:
    return [[tool.name for tool in request.tools] for request in played.model.requests]


async def test_many_tools_hide_behind_a_search_until_one_is_loaded() -> None:
    tools, runs = many_tools()
    script = [
        [tool_call("search_tools", {"query": "mail a letter"}, "c1")],
        [tool_call("load_tool", {"name": "send_mail"}, "c2")],
        [tool_call("send_mail", {"to": "alice"}, "c3")],
        says("Sent."),
    ]
    played = await talk(script, input=[built("tool-search", always=["tool_3"])], agent={"tools": tools})
    assert shown(played)[0] == ["tool_3", "search_tools", "load_tool"]
    assert "send_mail" in shown(played)[2]
    assert "send_mail" in repr(played.model.requests[1].prompt[-1])
    assert (played.result.text, runs) == ("Sent.", [{"to": "alice"}])


async def test_what_was_loaded_stays_loaded_in_the_conversation() -> None:
    tools, _ = many_tools()
    thread = Thread()
    guard = built("tool-search", auto_load=True)
    await talk(
        [[tool_call("search_tools", {"query": "mail"}, "c1")], says("Found.")],
        input=[guard],
        agent={"tools": tools},
        thread=thread,
    )
    later = await talk([says("Hi.")], input=[guard], agent={"tools": tools}, thread=thread)
    assert shown(later) == [["send_mail", "search_tools"]]


async def test_a_hidden_tool_cannot_be_called_nor_one_that_the_call_took_away() -> None:
    tools, runs = many_tools()
    script = [
        [tool_call("send_mail", {}, "c1")],
        [tool_call("load_tool", {"name": "send_mail"}, "c2")],
        [tool_call("send_mail", {}, "c3")],
        says("No."),
    ]
    allowed = [f"tool_{n}" for n in range(20)]
    played = await talk(script, input=[built("tool-search")], agent={"tools": tools}, active_tools=allowed)
    assert (runs, played.result.status) == ([], "completed")


async def test_few_tools_are_all_shown() -> None:
    played = await talk([says("Hi.")], input=[built("tool-search")], agent={"tools": many_tools()[0][:5]})
    assert shown(played) == [[f"tool_{n}" for n in range(5)]]


# Instruction blocks

BLOCKS = [
    {
        "name": "refunds",
        "description": "Money back",
        "text": "Refunds take 14 days.",
        "keywords": ["refund", "money back"],
    },
    {"name": "delivery", "description": "Parcels", "text": "Parcels take <3 days.", "keywords": ["parcel"]},
]


async def test_blocks_are_added_to_the_prompt_and_stored_nowhere() -> None:
    played = await talk([says("Hi.")], input=[built("instruction-block", blocks=BLOCKS)])
    system = repr([one["content"] for one in played.model.requests[0].prompt if one["role"] == "system"])
    assert "Refunds take 14 days." in system and "Parcels take &lt;3 days." in system
    assert "14 days" not in played.thread.everything


async def test_blocks_come_by_the_key_words_of_the_last_message() -> None:
    played = await talk(
        [says("Hi.")],
        input=[built("instruction-block", blocks=BLOCKS, mode="keywords", format="markdown")],
        says="Where is my Parcel?",
    )
    prompt = repr(played.model.requests[0].prompt)
    assert "## delivery" in prompt and "Refunds" not in prompt


async def test_the_model_reads_a_block_when_it_needs_it() -> None:
    script = [[tool_call("read_instructions", {"name": "refunds"})], says("14 days.")]
    played = await talk(
        script, input=[built("instruction-block", blocks=BLOCKS, mode="on-demand", format="json")]
    )
    assert "14 days" not in repr(played.model.requests[0].prompt)
    assert "Refunds take 14 days." in repr(played.model.requests[1].prompt)


def test_two_blocks_of_one_name_are_a_form_error() -> None:
    with pytest.raises(ValidationError, match="its own name"):
        built("instruction-block", blocks=[BLOCKS[0], BLOCKS[0]])
