"""Limits how many messages somebody may send within a time."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field

from processors.builtin.request_scope import Scope, scope_key
from processors.engine.errors import ConfigError
from processors.engine.hooks import ProcessInputArgs
from processors.engine.ports import BudgetStore, BuildContext
from processors.engine.processor import Processor
from processors.engine.registry import Options, ProcessorKind, Registry

SLUG: Final = "rate-limit"


class RateLimitOptions(Options):
    """How many, how long, and per whom."""

    max_messages: int = Field(20, title="Messages", description="So many are let through within the time.", ge=1, le=1_000_000)  # fmt: skip
    seconds: float = Field(
        60.0, title="Within", description="Seconds; the window moves along.", ge=1, le=31 * 86_400
    )
    scope: Scope = Field("user", title="Counted per", description="User, conversation, agent or API key. Requests that don't say whose they are share one account.", json_schema_extra={"x-labels": {"thread": "Conversation", "key": "API key"}})  # fmt: skip
    strategy: Literal["block", "warn"] = Field(
        "block", title="Beyond it", description="Stop the run, or only report."
    )
    message: str = Field("Too many messages in a short time. Please wait a moment and send it again.", title="Message to the person", description="Shown when a message is refused.", min_length=1, max_length=500)  # fmt: skip


class RateLimit(Processor):
    """Counts in the accounts that all processes share. A refused message does not count."""

    def __init__(self, id: str, options: RateLimitOptions, store: BudgetStore) -> None:
        super().__init__(id)
        self.options, self._store = options, store

    async def process_input(self, args: ProcessInputArgs) -> None:
        options = self.options
        key = scope_key(args, options.scope)
        answer = await self._store.reserve(
            scope=f"rate:{self.id}:{options.scope}", key=key, window_seconds=options.seconds, amounts={"calls": 1.0},
            limits={"calls": float(options.max_messages)},
        )  # fmt: skip
        if answer.granted:
            await self._store.settle(answer.id, amounts={"calls": 1.0})
            return
        detail = {
            "type": "rate", "rule": "messages", "strategy": options.strategy, "where": "input", "usage": answer.used.get("calls"),
            "limit": options.max_messages, "seconds": options.seconds, "scope": options.scope, "scopeKey": key,
        }  # fmt: skip
        if options.strategy == "block":
            args.abort(options.message, metadata=detail)
        args.report_violation("More messages than the rate limit allows.", detail)


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> RateLimit:
        if not callable(getattr(context.costs, "reserve", None)):
            raise ConfigError(
                "Nothing here counts requests across processes, so a rate limit can't work; set up Redis."
            )
        store: Any = context.costs
        return RateLimit(id, options, store)

    registry.register(ProcessorKind(
        slug=SLUG, title="Rate limit", description="Lets only so many messages through within a time.",
        options=RateLimitOptions, factory=build, stages=frozenset({"input"}), group="Limits",
    ))  # fmt: skip
