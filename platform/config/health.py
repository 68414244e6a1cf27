"""Liveness and readiness for operators and load balancers.

They are asked from inside, under whatever name or number the asker knows, so they answer before the host is checked and
before a redirect to HTTPS.
"""

from __future__ import annotations

from collections.abc import Callable

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponseBase, JsonResponse


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


class HealthMiddleware:
    """The first in the list; everything else does not concern it."""

    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        view = {"/healthz": healthz, "/readyz": readyz}.get(request.path)
        return self.get_response(request) if view is None else view(request)
