"""What the engine's tests play with: a thread in memory, an audit that remembers, and processors of one hook."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agents.loop.agent import Agent
from agents.loop.result import RunResult
from agents.loop.tools import Tool
from agents.providers.scripted import Call, ScriptedModel
from processors.engine.chunks import Chunk
from processors.engine.messages import Message
from processors.engine.ports import AuditEntry, Turn
from processors.engine.processor import Processor

Mode = Literal["stream", "generate"]
MODES: tuple[Mode, ...] = ("stream", "generate")


class Thread:
    """A conversation kept in memory: what `load` gives and what every `save` was given."""

    def __init__(self, messages: Sequence[Message] = ()) -> None:
        self.messages: dict[str, Message] = {message.id: message for message in messages}
        self.turns: list[Turn] = []

    async def load(self) -> list[Message]:
        return [message.copy() for message in self.messages.values()]

    async def save(self, turn: Turn) -> None:
        self.turns.append(turn)
        self.messages.update({message.id: message.copy() for message in turn.messages})

    @property
    def texts(self) -> list[tuple[str, str]]:
        """Who said what, without messages that have no text."""
        return [(message.role, message.text) for message in self.messages.values() if message.text]

    @property
    def everything(self) -> str:
        """All that is stored, notices excepted, as one string to search."""
        return repr([[part for part in message.content.parts if part["type"] != "notice"]
                     for message in self.messages.values()])  # fmt: skip


class Audit:
    """Remembers its entries; with `broken` it can write none."""

    def __init__(self, *, broken: bool = False) -> None:
        self.entries: list[AuditEntry] = []
        self.broken = broken

    async def record(self, entry: AuditEntry) -> None:
        if self.broken:
            raise OSError("the disk is full")
        self.entries.append(entry)

    def outcomes(self) -> list[tuple[str, str, str]]:
        """Outcome, action and processor of every entry."""
        return [(entry.outcome, entry.action, entry.violation.processor_id) for entry in self.entries]


@dataclass(slots=True)
class Played:
    """One run as seen from all sides."""

    result: RunResult
    chunks: list[Chunk]
    thread: Thread
    audit: Audit
    model: ScriptedModel

    def types(self, *wanted: str) -> list[str]:
        """The types of the client's chunks, only the wanted ones if some are named."""
        return [chunk.type for chunk in self.chunks if not wanted or chunk.type in wanted]

    @property
    def delivered(self) -> str:
        """The text the client has in the end: a step-retry takes back the text of its step."""
        steps: dict[int, str] = {}
        number = 0
        for chunk in self.chunks:
            if chunk.type == "step-start":
                number = (chunk.payload or {})["stepNumber"]
            elif chunk.type == "step-retry":
                steps.pop((chunk.payload or {})["stepNumber"], None)
            elif chunk.type == "text-delta":
                steps[number] = steps.get(number, "") + chunk.text
        return "".join(steps.values())


async def play(
    agent: Agent, model: ScriptedModel, mode: Mode = "stream", *, says: Any = "Hello from Bob.",
    thread: Thread | None = None, audit: Audit | None = None, **call: Any,
) -> Played:  # fmt: skip
    """Run an agent in a mode and look at everything it leaves behind."""
    thread, audit = thread or Thread(), audit or Audit()
    if mode == "generate":
        result = await agent.generate(says, memory=thread, audit=audit, **call)
        return Played(result, [], thread, audit, model)
    stream = agent.stream(says, memory=thread, audit=audit, **call)
    chunks = [chunk async for chunk in stream]
    return Played(await stream.result(), chunks, thread, audit, model)


def one_hook(hook: str, act: Callable[[Any], Any], id: str = "guard", **attributes: Any) -> Processor:
    """A processor that has exactly one hook."""
    if inspect.iscoroutinefunction(act):

        async def awaited(self: Processor, args: Any) -> Any:
            return await act(args)

        method: Callable[..., Any] = awaited
    else:

        def method(self: Processor, args: Any) -> Any:
            return act(args)

    made: Processor = type("OneHook", (Processor,), {hook: method, **attributes})(id)
    return made


@dataclass(slots=True)
class Echo:
    """A tool that returns its arguments and remembers them."""

    name: str = "echo"
    runs: list[Any] = field(default_factory=list)

    def tool(self, **values: Any) -> Tool:
        async def execute(args: Any, context: Any) -> Any:
            self.runs.append(args)
            return {"echo": args}

        return Tool(self.name, "Returns its arguments.", execute=execute, **values)


def agent_with(script: Sequence[Call], *processors: Processor, **values: Any) -> tuple[Agent, ScriptedModel]:
    """An agent with the processors in every list for which they have a hook."""
    from processors.engine.hooks import HOOKS_OF_STAGE

    model = ScriptedModel(script=script, **values.pop("model_values", {}))
    for stage, hooks in HOOKS_OF_STAGE.items():
        fitting = [one for one in processors if any(hasattr(one, hook) for hook in hooks)]
        values.setdefault(f"{stage}_processors", fitting)
    return Agent("agent", model=model, instructions="Be brief.", **values), model
