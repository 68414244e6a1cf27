"""Errors → HTTP: one table, one shape, {"error": {"code", "message", "retryable"}}."""

from __future__ import annotations

import logging
import traceback
from dataclasses import dataclass
from typing import Any, Final

from django.core.exceptions import PermissionDenied
from django.db import OperationalError
from django.http import Http404
from psycopg_pool import PoolTimeout
from rest_framework.response import Response
from rest_framework.views import exception_handler as drf_handler

from agents.services.refusals import RunRefused
from processors.engine.errors import GatehouseError

log = logging.getLogger("gatehouse.api")

STATUS_OF_CODE: Final = {
    "configuration": 409, "audit_unavailable": 503, "model_api": 502, "budget_exceeded": 429, "processor_failed": 503,
    "interrupted": 503, "cancelled": 409,
}  # fmt: skip
"""Our errors that carry no status of their own; everything else is 500."""
CODE_OF_STATUS: Final = {
    400: "bad_request", 401: "not_authenticated", 403: "forbidden", 404: "not_found", 405: "method_not_allowed",
    406: "not_acceptable", 413: "too_long", 415: "unsupported_media_type", 429: "rate_limited",
}  # fmt: skip
CODE_OF_NAME: Final = {
    "ModelAPIError": "model_api", "ProcessorFailed": "processor_failed", "AuditUnavailable": "audit_unavailable",
    "BudgetExceeded": "budget_exceeded", "ConfigError": "configuration", "ContractError": "processor_contract",
    "Interrupted": "interrupted", "RunCancelled": "cancelled",
}  # fmt: skip
"""Name of a stored run's error → its code."""
RETRYABLE: Final = frozenset({"rate_limited", "audit_unavailable", "model_api", "interrupted", "unavailable"})


@dataclass(slots=True, frozen=True)
class Problem:
    """What went wrong, ready for any wire."""

    status: int
    code: str
    message: str
    retryable: bool = False

    def body(self) -> dict[str, Any]:
        """The API's shape."""
        return {"error": {"code": self.code, "message": self.message, "retryable": self.retryable}}


def problem_of(error: Exception) -> Problem | None:
    """One of our own errors, or a part of the house that is away, as a problem; None for everything else."""
    if isinstance(error, RunRefused):
        return Problem(error.status, error.code, error.message, error.retryable)
    if isinstance(error, GatehouseError):
        return Problem(STATUS_OF_CODE.get(error.code, 500), error.code, str(error), error.retryable)
    if isinstance(error, OperationalError | PoolTimeout):
        return Problem(503, "unavailable", "The database does not answer. Try again in a moment.", True)
    return None


def problem_of_run(error: dict[str, Any] | None) -> Problem:
    """Why a run failed, from what is stored with it."""
    stored = error or {}
    message, code = str(stored.get("message", "")), stored.get("code")
    if not isinstance(code, str):
        code = CODE_OF_NAME.get(str(stored.get("name", "")), "run_failed")
    return Problem(
        STATUS_OF_CODE.get(code, 502),
        code,
        message or "The answer failed. Send the message again.",
        bool(stored.get("retryable", code in RETRYABLE)),
    )


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """Called by REST framework for every exception of a view. Nothing that a bug says reaches a client."""
    problem = problem_of(error)
    if problem is not None:
        return Response(problem.body(), status=problem.status)
    response = drf_handler(error, context)
    if response is None:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        log.error("A view failed: %s at %s:%s.", type(error).__name__, frame.filename, frame.lineno)
        problem = Problem(
            500, "internal_error", "Something went wrong on our side. Try again, or tell the operator."
        )
        return Response(problem.body(), status=500)
    detail = response.data.get("detail") if isinstance(response.data, dict) else None
    message = str(detail) if detail is not None else sentence_of(response.data)
    if isinstance(error, PermissionDenied) and str(error):
        message = str(error)
    if isinstance(error, Http404):
        message = "There is no such thing here."
    code = CODE_OF_STATUS.get(response.status_code, "error")
    response.data = Problem(response.status_code, code, message, response.status_code in (429, 503)).body()
    return response


def sentence_of(data: Any) -> str:
    """Field errors as one sentence that names the fields."""
    if isinstance(data, dict):
        return " ".join(
            f"{field}: {' '.join(map(str, words)) if isinstance(words, list) else words}"
            for field, words in data.items()
        )
    return " ".join(map(str, data)) if isinstance(data, list) else str(data)
