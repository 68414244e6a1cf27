"""Connections to Redis."""

from __future__ import annotations

import os
from functools import lru_cache

import redis
import redis.asyncio
from django.conf import settings

TIMEOUT = 5.0


def redis_client() -> redis.Redis:
    """The client of this process, for synchronous code. Safe between threads."""
    return _client(settings.REDIS_URL, os.getpid())


@lru_cache(maxsize=4)
def _client(url: str, process: int) -> redis.Redis:
    return redis.Redis.from_url(url, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT)


def redis_for_loop() -> redis.asyncio.Redis:
    """A client of its own for the running event loop. The caller closes it with `aclose()`."""
    return redis.asyncio.Redis.from_url(settings.REDIS_URL, socket_connect_timeout=TIMEOUT)
