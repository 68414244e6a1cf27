"""How much one key, or one signed-in person, may ask in a minute. Counted in Redis, for all processes together."""

from __future__ import annotations

import logging
import os
import time
from typing import Any, Final

from django.conf import settings
from redis import RedisError
from rest_framework.throttling import BaseThrottle

from agents.redis_link import redis_client

log = logging.getLogger("gatehouse.api")
WINDOW: Final = 60


class RequestRate(BaseThrottle):
    """Requests per minute (GATEHOUSE_API_RATE_PER_MINUTE). A Redis that is away lets requests through: this limit is a
    courtesy between applications, not a guardrail."""

    scope = "api"
    setting = "GATEHOUSE_API_RATE_PER_MINUTE"
    default = 600

    def allow_request(self, request: Any, view: Any) -> bool:
        """Count the request. False when it is one too many."""
        who = request.auth or getattr(request.user, "pk", None) or self.get_ident(request)
        key = f"gatehouse:rate:{self.scope}:{who}:{int(time.time()) // WINDOW}"
        try:
            with redis_client().pipeline(transaction=False) as pipe:
                pipe.incr(key)
                pipe.expire(key, WINDOW + 5)
                count = pipe.execute()[0]
        except RedisError:
            log.warning("Redis cannot be reached; requests are not counted.")
            return True
        return int(count) <= self.limit()

    def limit(self) -> int:
        """Requests that are allowed in a minute."""
        return int(getattr(settings, self.setting, os.environ.get(self.setting) or self.default))

    def wait(self) -> float:
        """Seconds until the next window."""
        return WINDOW - time.time() % WINDOW


class RunRate(RequestRate):
    """Runs begun per minute (GATEHOUSE_RUN_RATE_PER_MINUTE)."""

    scope = "runs"
    setting = "GATEHOUSE_RUN_RATE_PER_MINUTE"
    default = 120

    def allow_request(self, request: Any, view: Any) -> bool:
        return request.method != "POST" or super().allow_request(request, view)
