"""Laws of the stream: any cut, any chain, either mode gives the same text, stored, delivered and returned."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agents.providers.scripted import says
from processors.engine.processor import Processor
from tests.engine.guards import Holder, awaited, blocker, dropper, redactor
from tests.engine.stage import Mode, Played, agent_with, play

SECRETS = ("secret", "\r\n", "👩‍👩‍👧", "aab", "é")
"""Words to find: plain, CRLF, a family of joined emoji, one that overlaps itself, one of two code points."""
PIECES = (
    *SECRETS,
    "sec",
    "ret",
    "a",
    "b",
    "\r",
    "\n",
    "👩",
    "‍",
    "👧",
    "e",
    "́",
    " ",
    "Alice ",
    "🇩🇪",
    "\u200b",
    "#",
)
FAST = settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))

texts = st.lists(st.sampled_from(PIECES), min_size=1, max_size=12).map("".join)
cuts = st.lists(st.integers(1, 5), min_size=1, max_size=4)
makers = st.one_of(
    st.sampled_from(SECRETS).map(lambda word: ("redact", word)),
    st.sampled_from(SECRETS).map(lambda word: ("drop", word)),
    st.sampled_from(SECRETS).map(lambda word: ("block", word)),
    st.just(("hold", "")),
)
chains = st.lists(makers, max_size=4)
MAKE: dict[str, Any] = {"redact": redactor, "drop": dropper, "block": blocker}


def built(chain: list[tuple[str, str]]) -> list[Processor]:
    return [Holder() if kind == "hold" else MAKE[kind](word) for kind, word in chain]


async def answer(text: str, chain: list[tuple[str, str]], mode: Mode, cut: list[int] | None) -> Played:
    """The model says `text`, cut as wanted, through a chain."""
    agent, model = agent_with(
        [says(text)], output_processors=built(chain), model_values={"cut": cut} if cut else {}
    )
    return await play(agent, model, mode)


def stored_text(played: Played) -> str:
    return "".join(text for role, text in played.thread.texts if role == "assistant")


def blocks_are_ended(played: Played) -> None:
    """Every block that was started is ended, and deltas come inside blocks only."""
    open_block: Any = None
    for chunk in played.chunks:
        if chunk.type.endswith("-start") and chunk.type.split("-")[0] in ("text", "reasoning"):
            assert open_block is None
            open_block = chunk.type.split("-")[0]
        elif chunk.type in ("text-delta", "reasoning-delta"):
            assert open_block == chunk.type.split("-")[0]
        elif chunk.type in ("text-end", "reasoning-end"):
            assert open_block == chunk.type.split("-")[0]
            open_block = None
    assert open_block is None or played.result.status != "completed"


@FAST
@given(text=texts, cut=cuts, chain=chains)
@example(text="secret", cut=[1], chain=[("redact", "secret")])
@example(text="a\r\nb", cut=[2], chain=[("drop", "\r\n"), ("hold", "")])
async def test_any_cut_and_either_mode_give_the_same_text_delivered_stored_and_returned(
    text: str, cut: list[int], chain: list[tuple[str, str]]
) -> None:
    whole = await answer(text, chain, "generate", None)
    streamed = await answer(text, chain, "stream", cut)
    generated = await answer(text, chain, "generate", cut)
    assert streamed.result.status == generated.result.status == whole.result.status
    assert streamed.result.text == generated.result.text == whole.result.text
    assert stored_text(streamed) == stored_text(generated) == stored_text(whole) == whole.result.text
    if whole.result.status == "completed":
        assert streamed.delivered == whole.result.text
    assert streamed.audit.outcomes() == generated.audit.outcomes()
    # Of two blockers the one whose word comes first refuses a stream, the one that stands first a whole text.
    assert [one[:2] for one in streamed.audit.outcomes()] == [one[:2] for one in whole.audit.outcomes()]
    blocks_are_ended(streamed)
    assert streamed.model.open_streams == generated.model.open_streams == 0


@FAST
@given(text=texts, cut=cuts, word=st.sampled_from(SECRETS), kind=st.sampled_from(["redact", "drop", "block"]))
async def test_no_character_of_a_refused_word_leaves_in_any_frame(
    text: str, cut: list[int], word: str, kind: str
) -> None:
    played = await answer(text, [(kind, word)], "stream", cut)
    shown = "".join(chunk.text for chunk in played.chunks)
    if kind == "redact":
        assert shown == text.replace(word, "#")
    elif kind == "drop":
        assert shown == text.replace(word, "")
    else:
        assert text.partition(word)[0].startswith(shown)
        assert shown == text or word in text
    if word in text and kind == "block":
        assert (played.result.status, played.result.text, stored_text(played)) == ("blocked", "", "")


@FAST
@given(text=texts, cut=cuts, reasoning=texts)
async def test_text_and_thoughts_keep_to_their_blocks(text: str, cut: list[int], reasoning: str) -> None:
    agent, model = agent_with([says(text, thinks=reasoning)], Holder(), model_values={"cut": cut})
    played = await play(agent, model)
    assert (played.result.text, played.result.reasoning_text) == (text, reasoning)
    blocks_are_ended(played)


@FAST
@given(text=texts, cut=cuts, after=st.integers(0, 12))
async def test_leaving_early_closes_the_provider_and_stores_what_was_shown(
    text: str, cut: list[int], after: int
) -> None:
    from tests.engine.stage import Thread

    agent, model = agent_with([says(text)], redactor("secret"), model_values={"cut": cut})
    thread, shown = Thread(), ""
    stream = agent.stream("Hello from Bob.", memory=thread)
    async for chunk in stream:
        shown += chunk.text
        after -= 1
        if after < 0 or chunk.type == "finish":
            break
    await stream.aclose()
    assert model.open_streams == 0
    assert "".join(text for role, text in thread.texts if role == "assistant") == shown
    assert len(thread.turns) == 1
    assert thread.turns[0].status in ("cancelled", "completed")


@FAST
@given(text=texts, cut=cuts, chain=chains, slow=st.lists(st.booleans(), min_size=4, max_size=4))
async def test_async_guards_do_what_plain_ones_do(
    text: str, cut: list[int], chain: list[tuple[str, str]], slow: list[bool]
) -> None:
    plain = await answer(text, chain, "stream", cut)
    mixed = [awaited(guard) if late else guard for guard, late in zip(built(chain), slow, strict=False)]
    agent, model = agent_with([says(text)], output_processors=mixed, model_values={"cut": cut})
    other = await play(agent, model)
    assert [(c.type, c.text) for c in other.chunks] == [(c.type, c.text) for c in plain.chunks]
    assert (other.result.status, stored_text(other)) == (plain.result.status, stored_text(plain))
    assert other.audit.outcomes() == plain.audit.outcomes()


@FAST
@given(tries=st.lists(texts, min_size=1, max_size=4), cut=cuts, chain=chains, retries=st.integers(0, 3))
async def test_what_a_refused_attempt_said_is_gone_everywhere(
    tries: list[str], cut: list[int], chain: list[tuple[str, str]], retries: int
) -> None:
    def refuse(args: Any) -> Any:
        if args.part.type == "text-delta" and "secret" in args.state.setdefault("all", "") + args.part.text:
            args.abort("again", retry=True)
        args.state["all"] = (
            "" if args.part.type == "step-start" else args.state.get("all", "") + args.part.text
        )
        return args.part

    from tests.engine.stage import one_hook

    holding = [guard for guard in built(chain) if not guard.id.startswith("block")]
    agent, model = agent_with(
        [says(text) for text in tries],
        output_processors=[*holding, one_hook("process_output_stream", refuse)],
        max_processor_retries=retries, model_values={"cut": cut, "repeat_last": True},
    )  # fmt: skip
    played = await play(agent, model)
    if played.result.status == "blocked":
        assert (played.result.text, stored_text(played)) == ("", "")
        assert len(model.requests) == retries + 1
    else:
        alone = await answer(
            tries[min(len(model.requests), len(tries)) - 1], chain_of(holding), "generate", None
        )
        assert played.delivered == played.result.text == stored_text(played) == alone.result.text
    assert model.open_streams == 0


def chain_of(guards: list[Processor]) -> list[tuple[str, str]]:
    return [("hold", "") if guard.id == "holder" else tuple(guard.id.split("-", 1)) for guard in guards]  # type: ignore[misc]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


@FAST
@given(
    args=st.dictionaries(st.sampled_from("abc"), json_values, max_size=3),
    result=json_values,
    edit=json_values,
)
async def test_what_a_guard_makes_of_calls_and_results_is_what_runs_is_stored_and_is_sent(
    args: dict[str, Any], result: Any, edit: Any
) -> None:
    from agents.loop.tools import Tool
    from agents.providers.scripted import tool_call
    from tests.engine.stage import one_hook

    ran: list[Any] = []

    def rewrite(hook: Any) -> Any:
        part = hook.part
        if part.type == "tool-call":
            return part.replace(payload={**part.payload, "args": {"new": edit}})
        if part.type == "tool-result":
            return part.replace(payload={**part.payload, "result": [edit]})
        return part

    def run(given: Any, context: Any) -> Any:
        ran.append(copy.deepcopy(given))
        return result

    agent, model = agent_with([[tool_call("do", args)], says("Done.")], one_hook("process_output_stream", rewrite),
                              tools=[Tool("do", execute=run)])  # fmt: skip
    played = await play(agent, model)
    invocation = next(part["toolInvocation"] for message in played.thread.turns[0].messages
                      for part in message.content.parts if part["type"] == "tool-invocation")  # fmt: skip
    assert ran == [{"new": edit}]
    assert (invocation["args"], invocation["result"]) == ({"new": edit}, [edit])
    assert model.requests[1].prompt[-2]["content"][0]["args"] == {"new": edit}
    assert model.requests[1].prompt[-1]["content"][0]["result"] == [edit]
    assert (played.result.tool_results[0].args, played.result.tool_results[0].result) == (
        {"new": edit},
        [edit],
    )
