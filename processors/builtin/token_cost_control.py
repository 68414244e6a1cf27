"""Budgets: cost, tokens and model calls per run, conversation, user, agent or key, within a window of time.

Before each model call the expected amount is reserved and after it the real amount is settled, so that requests that arrive
together cannot all slip under the same limit. What this run has used counts at once, even if the store's totals lag behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import Field, field_validator, model_validator

from processors.builtin.request_scope import Scope, scope_key
from processors.engine.errors import ConfigError
from processors.engine.hooks import HookArgs, ProcessInputStepArgs, ProcessLLMResponseArgs, StepResult
from processors.engine.ports import BudgetStore, BuildContext, CostStore
from processors.engine.processor import Processor
from processors.engine.registry import Options, ProcessorKind, Registry

SLUG: Final = "token-cost-control"
Measure = Literal["cost", "tokens", "calls"]
MEASURES: Final[tuple[Measure, ...]] = ("cost", "tokens", "calls")
WINDOWS: Final = {
    "1h": 3600.0,
    "6h": 21_600.0,
    "24h": 86_400.0,
    "7d": 604_800.0,
    "30d": 2_592_000.0,
    "365d": 31_536_000.0,
}
MILLION: Final = 1_000_000
_STATE: Final = "budget"


class TokenCostControlOptions(Options):
    """The limits. One that is empty is no limit."""

    max_cost: float | None = Field(None, title="Cost", description="In the currency of the prices, usually US dollars. Empty: no limit.", gt=0)  # fmt: skip
    max_tokens: int | None = Field(None, title="Tokens", description="Of prompts and answers together. Empty: no limit.", gt=0)  # fmt: skip
    max_calls: int | None = Field(None, title="Model calls", description="Empty: no limit.", gt=0)
    scope: Scope = Field("user", title="Counted per", description="Run, conversation, user, agent or API key. Requests that don't say whose they are share one account.", json_schema_extra={"x-labels": {"thread": "Conversation", "key": "API key"}})  # fmt: skip
    window: Literal["1h", "6h", "24h", "7d", "30d", "365d"] = Field("7d", title="Within", description="The window of time that moves along. A run's own budget has no window.", json_schema_extra={"x-labels": {"1h": "1 hour", "6h": "6 hours", "24h": "24 hours", "7d": "7 days", "30d": "30 days", "365d": "365 days"}})  # fmt: skip
    strategy: Literal["block", "warn"] = Field(
        "block", title="At the limit", description="Stop the run, or only report."
    )
    message: str = Field("Cost control: estimated cost limit exceeded ({usage}/{limit})", title="Message to the person", description="{usage} and {limit} are replaced.", min_length=1, max_length=500)  # fmt: skip
    warn_at_percent: int | None = Field(None, title="Report early at", description="Percent of a limit from which each run reports once. Empty: never.", ge=1, le=99)  # fmt: skip
    input_price: float = Field(0.0, title="Price of prompts", description="Per million tokens, for what this run has used before the accounts know it.", ge=0, json_schema_extra={"x-group": "Expected per call", "x-advanced": True})  # fmt: skip
    output_price: float = Field(0.0, title="Price of answers", description="Per million tokens.", ge=0, json_schema_extra={"x-group": "Expected per call", "x-advanced": True})  # fmt: skip
    expected_tokens: int = Field(1, title="Tokens per call", description="Reserved before a call and settled after it. A higher figure keeps requests that arrive together further from the limit.", ge=0, le=1_000_000, json_schema_extra={"x-group": "Expected per call", "x-advanced": True})  # fmt: skip
    expected_cost: float = Field(0.0, title="Cost per call", description="Reserved like the tokens.", ge=0, json_schema_extra={"x-group": "Expected per call", "x-advanced": True})  # fmt: skip

    @field_validator("scope", mode="before")
    @classmethod
    def _name_of_the_reference(cls, value: Any) -> Any:
        return "user" if value == "resource" else value

    @field_validator("message")
    @classmethod
    def _message_has_known_places(cls, value: str) -> str:
        try:
            value.format(usage="1", limit="2")
        except (KeyError, IndexError, ValueError, AttributeError) as error:
            raise ValueError("Only {usage} and {limit} may stand in braces; write {{ for a brace.") from error
        return value

    @model_validator(mode="after")
    def _something_is_limited(self) -> TokenCostControlOptions:
        if not self.limits:
            raise ValueError("Nothing is limited; give a cost, a number of tokens or a number of calls.")
        return self

    @property
    def limits(self) -> dict[Measure, float]:
        """The limits that are set."""
        given = {"cost": self.max_cost, "tokens": self.max_tokens, "calls": self.max_calls}
        return {name: float(limit) for name in MEASURES if (limit := given[name]) is not None}


class _Account:
    """What one run knows of its budget."""

    __slots__ = ("base", "reservation", "warned")

    def __init__(self) -> None:
        self.base: dict[str, float] | None = None  # totals when the run began
        self.reservation: str | None = None
        self.warned: set[str] = set()


class TokenCostControl(Processor):
    """Reserves before a call, settles after it. A store that cannot answer is an error, never a pass."""

    def __init__(self, id: str, options: TokenCostControlOptions, costs: CostStore | None) -> None:
        super().__init__(id)
        self.options, self._costs = options, costs
        self._limits = options.limits
        self._window = None if options.scope == "run" else WINDOWS[options.window]
        self._store: BudgetStore | None = costs if callable(getattr(costs, "reserve", None)) else None  # type: ignore[assignment]

    async def process_input_step(self, args: ProcessInputStepArgs) -> None:
        account = _account(args)
        await self._settle(account, {})  # of a call that failed: it cost nothing that we know of
        own = self._own(args.steps)
        used = await self._used(args, account, own)
        over = next((name for name, limit in self._limits.items() if used[name] >= limit), None)
        if over is None and self._store is not None:
            over, used = await self._reserve(args, account, own, used)
        if over is not None:
            self._limit_reached(args, account, over, used[over])
            return
        self._warn_early(args, account, used)

    async def process_llm_response(self, args: ProcessLLMResponseArgs) -> None:
        account = _account(args)
        real = dict.fromkeys(MEASURES, 0.0) if args.from_cache else self._own(args.steps[-1:])
        await self._settle(account, real)

    async def _used(self, args: HookArgs, account: _Account, own: Mapping[str, float]) -> dict[str, float]:
        """The most of what the store says now and what it said at the start plus this run's own."""
        if self._costs is None:
            return dict(own)
        told = await self._costs.spent(
            scope=self.options.scope, key=scope_key(args, self.options.scope), window_seconds=self._window
        )
        now = {name: float(told.get(name, 0.0)) for name in MEASURES}
        if account.base is None:
            account.base = now
        return {name: max(now[name], account.base[name] + own[name]) for name in MEASURES}

    async def _reserve(
        self, args: HookArgs, account: _Account, own: Mapping[str, float], used: dict[str, float]
    ) -> tuple[Measure | None, dict[str, float]]:
        assert self._store is not None
        expected = {
            "cost": self.options.expected_cost,
            "tokens": float(self.options.expected_tokens),
            "calls": 1.0,
        }
        answer = await self._store.reserve(
            scope=self.options.scope, key=scope_key(args, self.options.scope), window_seconds=self._window,
            amounts=expected, limits=dict(self._limits),
        )  # fmt: skip
        if answer.granted:
            account.reservation = answer.id
            return None, used
        told = {name: max(used[name], float(answer.used.get(name, 0.0))) for name in MEASURES}
        over = next(
            (name for name, limit in self._limits.items() if told[name] + expected[name] > limit),
            next(iter(self._limits)),
        )
        return over, told

    async def _settle(self, account: _Account, amounts: Mapping[str, float]) -> None:
        if account.reservation is not None and self._store is not None:
            reservation, account.reservation = account.reservation, None
            await self._store.settle(reservation, amounts=amounts)

    def _own(self, steps: list[StepResult]) -> dict[str, float]:
        """What steps of this run used. Cost only if prices are given."""
        ins = sum(step.usage.input_tokens for step in steps)
        outs = sum(step.usage.output_tokens for step in steps)
        cost = (ins * self.options.input_price + outs * self.options.output_price) / MILLION
        return {
            "cost": cost,
            "tokens": float(sum(step.usage.total_tokens for step in steps)),
            "calls": float(len(steps)),
        }

    def _limit_reached(self, args: HookArgs, account: _Account, measure: Measure, usage: float) -> None:
        reason, detail = self._report(args, measure, usage, "hard")
        if self.options.strategy == "block":
            args.abort(reason, metadata=detail)
        self._once(args, account, f"hard {measure}", reason, detail)

    def _warn_early(self, args: HookArgs, account: _Account, used: Mapping[str, float]) -> None:
        percent = self.options.warn_at_percent
        for measure, limit in self._limits.items() if percent is not None else ():
            if used[measure] >= limit * percent / 100:  # type: ignore[operator]
                reason, detail = self._report(args, measure, used[measure], "soft")
                self._once(args, account, f"soft {measure}", reason, {**detail, "strategy": "warn"})

    def _once(
        self, args: HookArgs, account: _Account, what: str, reason: str, detail: dict[str, Any]
    ) -> None:
        if what not in account.warned:
            account.warned.add(what)
            args.report_violation(reason, detail)

    def _report(
        self, args: HookArgs, measure: Measure, usage: float, threshold: str
    ) -> tuple[str, dict[str, Any]]:
        """The same shape whether the run is stopped or goes on."""
        limit, scope = self._limits[measure], self.options.scope
        detail = {
            "type": "budget", "rule": measure, "strategy": self.options.strategy, "where": "input", "usage": usage, "limit": limit,
            "scope": scope, "scopeKey": scope_key(args, scope), "window": None if self._window is None else self.options.window,
            "threshold": threshold,
        }  # fmt: skip
        if threshold == "soft":
            return f"{measure.capitalize()} budget: {usage:g} of {limit:g} used.", detail
        return self.options.message.format(usage=f"{usage:g}", limit=f"{limit:g}"), detail


def _account(args: HookArgs) -> _Account:
    account = args.state.get(_STATE)
    if account is None:
        account = args.state[_STATE] = _Account()
    return account  # type: ignore[no-any-return]


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> TokenCostControl:
        if context.costs is None and options.scope != "run":
            raise ConfigError(
                "Nothing here keeps accounts of what was spent, so only the budget of a run works; choose “Run”."
            )
        return TokenCostControl(id, options, context.costs)

    registry.register(ProcessorKind(
        slug=SLUG, title="Budget", description="Limits cost, tokens and model calls per run, conversation, user, agent or key.",
        options=TokenCostControlOptions, factory=build, stages=frozenset({"input"}), group="Limits",
    ))  # fmt: skip
