"""The one bridge from async code to the database: synchronous functions run whole, in a few threads of their own."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from django.db import close_old_connections

P = ParamSpec("P")
T = TypeVar("T")
THREADS = 6

_pool = ThreadPoolExecutor(THREADS, thread_name_prefix="gatehouse-database")


async def in_database(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a synchronous function that uses the ORM, without blocking the event loop. Raises what it raises.

    A cancelled caller does not stop the function: what has begun is finished, so a transaction is never half done.
    """
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(
        _pool, context.run, _whole, function, args, kwargs
    )


def _whole(function: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
    close_old_connections()
    try:
        return function(*args, **kwargs)
    finally:
        close_old_connections()
