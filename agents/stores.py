"""What guardrails may ask the platform for: a cache that all processes share, and what was spent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import Count, F, IntegerField, Sum
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast
from django.utils import timezone
from redis import RedisError

from agents.models import Run
from agents.redis_link import redis_client
from audit.bridge import in_database

PREFIX: Final = "gatehouse:cache:"
SCOPES: Final = {
    "run": "pk",
    "thread": "thread_id",
    "user": "owner_id",
    "agent": "agent__slug",
    "key": "idempotency_key",
}


class SharedCache:
    """Values as JSON in Redis. A cache that cannot be reached has nothing and keeps nothing."""

    async def get(self, key: str) -> Any:
        def read() -> Any:
            found = redis_client().get(PREFIX + key)
            return None if found is None else json.loads(found)  # type: ignore[arg-type]

        try:
            return await asyncio.to_thread(read)
        except RedisError:
            return None

    async def set(self, key: str, value: Any, *, ttl: float) -> None:
        def write() -> None:
            redis_client().set(PREFIX + key, json.dumps(value), px=max(1, int(ttl * 1000)))

        try:
            await asyncio.to_thread(write)
        except RedisError:
            return


class RunCosts:
    """Totals of runs, from the database."""

    async def spent(self, *, scope: str, key: str, window_seconds: float | None) -> Mapping[str, float]:
        """{"cost", "tokens", "calls"} of a scope's runs in the last `window_seconds`. Raises ValueError for an unknown scope."""
        if scope not in SCOPES:
            raise ValueError(f"There is no scope called {scope!r}. Use one of: {', '.join(SCOPES)}.")
        return await in_database(_spent, SCOPES[scope], key, window_seconds)


def _spent(field: str, key: str, window_seconds: float | None) -> dict[str, float]:
    if field in ("pk", "thread_id"):
        try:
            UUID(key)
        except ValueError:
            return {"cost": 0.0, "tokens": 0.0, "calls": 0.0}
    runs = Run.objects.filter(**{field: key})
    if window_seconds is not None:
        runs = runs.filter(created_at__gte=timezone.now() - timedelta(seconds=window_seconds))
    totals = runs.aggregate(
        cost=Sum("cost"),
        calls=Count("pk"),
        tokens=Sum(Cast(KeyTextTransform("totalTokens", F("usage")), IntegerField())),
    )
    return {name: float(value or 0) for name, value in totals.items()}
