"""What was spent and what is promised, in Redis: one account per scope, key and window, shared by all processes.

An account is a hash of buckets, sixty to a window; a bucket leaves when all of it lies outside the window. Checking and
reserving is one script, so requests that arrive together are served one after the other. If Redis cannot be reached the
question is an error and the guardrail that asks fails closed.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any, Final

from agents.redis_link import redis_client
from processors.builtin.request_scope import NOBODY
from processors.engine.ports import CostStore, Reservation

PREFIX: Final = "gatehouse:budget:"
MEASURES: Final = ("cost", "tokens", "calls")
BUCKETS: Final = 60
RUN_DAYS: Final = 2 * 86_400.0
"""Seconds that an account without a window (a run's own) is kept after its last use."""

_RESERVE: Final = """
local now, window, size = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local amounts, limits = cjson.decode(ARGV[4]), cjson.decode(ARGV[5])
local used = {cost = 0, tokens = 0, calls = 0}
local held = redis.call('HGETALL', KEYS[1])
for at = 1, #held, 2 do
  local bucket, measure = string.match(held[at], '^(%-?%d+):(%a+)$')
  if window > 0 and (tonumber(bucket) + 1) * size <= now - window then
    redis.call('HDEL', KEYS[1], held[at])
  else
    used[measure] = (used[measure] or 0) + tonumber(held[at + 1])
  end
end
local granted = 1
for measure, limit in pairs(limits) do
  if used[measure] + (amounts[measure] or 0) > limit then granted = 0 end
end
if granted == 1 then
  for measure, amount in pairs(amounts) do
    if amount ~= 0 then redis.call('HINCRBYFLOAT', KEYS[1], ARGV[6] .. ':' .. measure, amount) end
  end
  redis.call('EXPIRE', KEYS[1], ARGV[7])
end
return {granted, tostring(used.cost), tostring(used.tokens), tostring(used.calls)}
"""


class BudgetLedger:
    """A `BudgetStore`. totals: another store of what was spent; the larger figure counts, so that a lost Redis forgives
    nothing that the database knows."""

    def __init__(self, totals: CostStore | None = None) -> None:
        self._totals = totals

    async def spent(self, *, scope: str, key: str, window_seconds: float | None) -> Mapping[str, float]:
        """{"cost", "tokens", "calls"} within the window, promises included. Raises redis.RedisError."""
        answer = await self._ask(scope, key, window_seconds, {}, {})
        used = dict(answer.used)
        if self._totals is not None and key != NOBODY and scope != "key":
            told = await self._totals.spent(scope=scope, key=key, window_seconds=window_seconds)
            for measure in ("cost", "tokens"):  # its calls are runs, ours are model calls
                used[measure] = max(used[measure], float(told.get(measure, 0.0)))
        return used

    async def reserve(
        self, *, scope: str, key: str, window_seconds: float | None, amounts: Mapping[str, float],
        limits: Mapping[str, float],
    ) -> Reservation:  # fmt: skip
        """Check and reserve in one step. Raises redis.RedisError, and ValueError for a measure that does not exist."""
        unknown = (set(amounts) | set(limits)) - set(MEASURES)
        if unknown:
            raise ValueError(
                f"There is no measure called {', '.join(sorted(unknown))}. Use {', '.join(MEASURES)}."
            )
        return await self._ask(scope, key, window_seconds, amounts, limits)

    async def settle(self, reservation_id: str, *, amounts: Mapping[str, float]) -> None:
        """Put what was really spent in the reservation's place. Raises redis.RedisError."""
        booked: dict[str, Any] = json.loads(reservation_id)

        def write() -> None:
            client = redis_client()
            with client.pipeline() as pipe:
                for measure in MEASURES:
                    difference = float(amounts.get(measure, 0.0)) - booked["amounts"].get(measure, 0.0)
                    if difference:
                        pipe.hincrbyfloat(booked["account"], f"{booked['bucket']}:{measure}", difference)
                pipe.expire(booked["account"], booked["kept"])
                pipe.execute()

        await asyncio.to_thread(write)

    async def _ask(
        self,
        scope: str,
        key: str,
        window: float | None,
        amounts: Mapping[str, float],
        limits: Mapping[str, float],
    ) -> Reservation:
        size = max(1.0, (window or RUN_DAYS) / BUCKETS)
        kept = int((window or RUN_DAYS) + size) + 1
        account = f"{PREFIX}{scope}:{window or 0:g}:{key}"
        now = time.time()
        bucket = int(now // size) if window else 0

        def run() -> Any:
            arguments = [
                now, window or 0, size, json.dumps(dict(amounts)), json.dumps(dict(limits)), bucket, kept,
            ]  # fmt: skip
            return redis_client().eval(_RESERVE, 1, account, *arguments)

        granted, *used = await asyncio.to_thread(run)
        id = json.dumps({"account": account, "bucket": bucket, "amounts": dict(amounts), "kept": kept})
        return Reservation(id, bool(granted), dict(zip(MEASURES, map(float, used), strict=True)))
