"""Why a run does not begin."""

from __future__ import annotations

from typing import Final

from processors.engine.errors import GatehouseError

STATUS: Final = {
    "unknown_agent": 404, "not_published": 409, "forbidden": 403, "unknown_thread": 404, "unknown_run": 404, "unknown_tool_call": 404,
    "thread_busy": 409, "too_long": 413, "empty": 400, "bad_request": 400, "rate_limited": 429, "already_decided": 409, "not_waiting": 409,
}  # fmt: skip
"""Code → HTTP status."""
RETRYABLE: Final = frozenset({"thread_busy", "rate_limited"})


class RunRefused(GatehouseError):
    """The caller asked for something that cannot be done; `code`, `message` and `status` (HTTP) say what and why."""

    def __init__(self, code: str, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.code, self.message = code, message
        self.status = status if status is not None else STATUS.get(code, 400)
        self.retryable = code in RETRYABLE
