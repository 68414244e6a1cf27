"""What tests of judged guardrails and limits play with: judges that follow a script, accounts and a cache in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agents.loop.agent import Agent
from agents.providers.scripted import Call, ScriptedModel, says
from processors.builtin import register_all
from processors.engine.chunks import Chunk, text_delta
from processors.engine.errors import ModelAPIError
from processors.engine.hooks import RequestContext
from processors.engine.ports import BuildContext, ModelRequest, Reservation
from processors.engine.registry import Registry
from tests.engine.stage import Played, play

KINDS = Registry()
register_all(KINDS)
DOWN = ModelAPIError("The judge is down.", status=503, retryable=True)


def built(slug: str, id: str = "guard", *, context: BuildContext | None = None, **options: Any) -> Any:
    """A processor of a kind, built as the platform builds it."""
    return KINDS.build(slug, id, options, context or BuildContext())


def asked_text(request: ModelRequest) -> str:
    """The material that a judge was asked about."""
    said: str = request.prompt[-1]["content"][0]["text"]
    start = said.index("<text-")
    mark = said[start + 1 : said.index(">", start)]
    return said[said.index(f"<{mark}>") + len(mark) + 3 : said.index(f"\n</{mark}>")]


def judge(opinion: Callable[[str], Any]) -> ScriptedModel:
    """A judge that answers with the JSON of `opinion(text)`, with the text as it is if that is a string, or raises it."""

    def answer(request: ModelRequest) -> Any:
        value = opinion(asked_text(request))
        if isinstance(value, BaseException):
            return [value]
        return says(value if isinstance(value, str) else json.dumps(value))

    return ScriptedModel("scripted/judge", answer)


def hate_judge(word: str = "vermin", category: str = "hate") -> ScriptedModel:
    """A moderation judge that finds one word."""
    return judge(
        lambda text: {
            "category_scores": [{"category": category, "score": 0.9 if word in text else 0.1}],
            "reason": "x",
        }
    )


def texts_asked(model: ScriptedModel) -> list[str]:
    return [asked_text(request) for request in model.requests]


def deltas(text: str, size: int) -> list[Chunk]:
    return [text_delta(text[at : at + size]) for at in range(0, len(text), size)]


async def talk(
    script: Sequence[Call], *, input: Sequence[Any] = (), output: Sequence[Any] = (), error: Sequence[Any] = (),
    says: Any = "Hello from Bob.", user: str | None = "bob", mode: Any = "stream", agent: Mapping[str, Any] | None = None, **call: Any,
) -> Played:  # fmt: skip
    """One run of an agent whose model follows the script."""
    model = ScriptedModel(script=script)
    made = Agent("helper", model=model, instructions="Be brief.", input_processors=list(input), output_processors=list(output),
                 error_processors=list(error) or None, **(agent or {}))  # fmt: skip
    call.setdefault("request_context", RequestContext(user_id=user) if user else RequestContext())
    return await play(made, model, mode, says=says, **call)


class Accounts:
    """A `BudgetStore` in memory. lag: `spent` never learns of what was settled."""

    def __init__(self, spent: Mapping[str, float] | None = None, *, broken: bool = False) -> None:
        self.told = dict(spent or {})
        self.broken = broken
        self.booked: dict[tuple[str, str], dict[str, dict[str, float]]] = {}

    async def spent(self, *, scope: str, key: str, window_seconds: float | None) -> Mapping[str, float]:
        if self.broken:
            raise OSError("the accounts are closed")
        return self.told

    async def reserve(self, *, scope: str, key: str, window_seconds: float | None, amounts: Mapping[str, float], limits: Mapping[str, float]) -> Reservation:  # fmt: skip
        book = self.booked.setdefault((scope, key), {})
        used = {
            name: self.told.get(name, 0.0) + sum(one.get(name, 0.0) for one in book.values())
            for name in limits
        }
        id = f"{scope}|{key}|{len(book)}"
        granted = all(used[name] + amounts.get(name, 0.0) <= limit for name, limit in limits.items())
        if granted:
            book[id] = dict(amounts)
        return Reservation(id, granted, used)

    async def settle(self, reservation_id: str, *, amounts: Mapping[str, float]) -> None:
        scope, key, _ = reservation_id.split("|")
        self.booked[(scope, key)][reservation_id] = dict(amounts)


class SpendingOnly:
    """A cost store that can only say what was spent."""

    def __init__(self, **spent: float) -> None:
        self.told = spent

    async def spent(self, *, scope: str, key: str, window_seconds: float | None) -> Mapping[str, float]:
        return self.told


class Shelf:
    """A cache in memory."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    async def get(self, key: str) -> Any:
        return self.values.get(key)

    async def set(self, key: str, value: Any, *, ttl: float) -> None:
        self.values[key] = value
