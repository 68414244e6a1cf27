"""Errors → HTTP: one table, one shape, {"error": {"code", "message", "retryable"}}."""

from __future__ import annotations

from typing import Any, Final

from django.core.exceptions import PermissionDenied
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import exception_handler as drf_handler

from agents.services.refusals import RunRefused
from processors.engine.errors import GatehouseError

STATUS_OF_CODE: Final = {"configuration": 409, "audit_unavailable": 503, "model_api": 502, "budget_exceeded": 429}
"""Our errors that carry no status of their own; everything else is 500."""
CODE_OF_STATUS: Final = {400: "bad_request", 401: "not_authenticated", 403: "forbidden", 404: "not_found",
                         405: "method_not_allowed", 406: "not_acceptable", 415: "unsupported_media_type", 429: "rate_limited"}  # fmt: skip


def error_of(error: Exception) -> tuple[int, dict[str, Any]] | None:
    """The status and body of one of our errors; None if it is none."""
    if isinstance(error, RunRefused):
        return error.status, {"code": error.code, "message": error.message, "retryable": error.retryable}
    if isinstance(error, GatehouseError):
        status = STATUS_OF_CODE.get(error.code, 500)
        return status, {"code": error.code, "message": str(error), "retryable": error.retryable}
    return None


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """Called by REST framework for every exception of a view."""
    ours = error_of(error)
    if ours is not None:
        return Response({"error": ours[1]}, status=ours[0])
    if isinstance(error, ValueError) and not isinstance(error, exceptions.APIException):
        return Response({"error": {"code": "bad_request", "message": str(error), "retryable": False}}, status=400)
    response = drf_handler(error, context)
    if response is None:
        return None
    detail = response.data.get("detail") if isinstance(response.data, dict) else None
    message = str(detail) if detail is not None else sentence_of(response.data)
    if isinstance(error, PermissionDenied) and str(error):
        message = str(error)
    if isinstance(error, Http404):
        message = "There is no such thing here."
    code = CODE_OF_STATUS.get(response.status_code, "error")
    response.data = {"error": {"code": code, "message": message, "retryable": response.status_code in (429, 503)}}
    return response


def sentence_of(data: Any) -> str:
    """Field errors as one sentence that names the fields."""
    if isinstance(data, dict):
        return " ".join(f"{field}: {' '.join(map(str, words)) if isinstance(words, list) else words}" for field, words in data.items())
    return " ".join(map(str, data)) if isinstance(data, list) else str(data)
