"""Liveness and readiness for operators and load balancers."""

from __future__ import annotations

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse


def healthz(request: HttpRequest) -> JsonResponse:
    """The process answers."""
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> JsonResponse:
    """Postgres and Redis answer; 503 and the part's name otherwise."""
    parts = {"database": _database_answers(), "redis": _redis_answers()}
    ready = all(parts.values())
    return JsonResponse(
        {"status": "ok" if ready else "unavailable", "parts": parts}, status=200 if ready else 503
    )


def _database_answers() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return False
    return True


def _redis_answers() -> bool:
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=2) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False
