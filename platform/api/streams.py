"""Server-sent events: the same numbered log that the WebSocket reads."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase, JsonResponse, StreamingHttpResponse
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.settings import api_settings

from agents.bridge import in_database
from agents.run_log import END, read
from agents.services.runs import run_get
from api.errors import error_of

HEARTBEAT: Final = 15.0


def user_of(request: HttpRequest) -> Any:
    """Who asks, by the same rules as every other API view. Raises APIException."""
    classes = api_settings.DEFAULT_AUTHENTICATION_CLASSES
    user = Request(request, authenticators=[each() for each in classes]).user
    return user if user is not None and user.is_authenticated else None


def refusal(status: int, code: str, message: str) -> JsonResponse:
    """An error in the API's shape."""
    return JsonResponse({"error": {"code": code, "message": message, "retryable": False}}, status=status)


async def authenticated(request: HttpRequest) -> tuple[Any, JsonResponse | None]:
    """The person, or the refusal to send."""
    try:
        user = await in_database(user_of, request)
    except APIException as error:
        return None, refusal(error.status_code, "not_authenticated", str(error.detail))
    if user is None:
        return None, refusal(401, "not_authenticated", "Send an API key: Authorization: Bearer gh_…")
    return user, None


async def with_heartbeats(source: AsyncIterator[str]) -> AsyncIterator[str]:
    """The events, and a comment when nothing came for a while, so that proxies keep the connection."""
    pending: asyncio.Future[str] | None = None
    try:
        while True:
            pending = pending or asyncio.ensure_future(anext(source))  # type: ignore[arg-type]
            done, _ = await asyncio.wait({pending}, timeout=HEARTBEAT)
            if not done:
                yield ": still here\n\n"
                continue
            finished, pending = pending, None
            try:
                yield finished.result()
            except StopAsyncIteration:
                return
    finally:
        if pending is not None:
            pending.cancel()
        await source.aclose()  # type: ignore[attr-defined]


def event_stream(source: AsyncIterator[str]) -> StreamingHttpResponse:
    """A response of server-sent events."""
    answer = StreamingHttpResponse(with_heartbeats(source), content_type="text/event-stream")
    answer["Cache-Control"] = "no-cache"
    answer["X-Accel-Buffering"] = "no"
    return answer


async def events_of(run_id: str, after: int) -> AsyncIterator[str]:
    """The run's chunks as events; the number is the event's id, so `Last-Event-ID` resumes."""
    async for number, chunk in read(run_id, after=after):
        name = "end" if chunk.get("type") == END else "chunk"
        yield f"id: {number}\nevent: {name}\ndata: {json.dumps(chunk, ensure_ascii=False)}\n\n"


async def run_stream(request: HttpRequest, id: str) -> HttpResponseBase:
    """GET /api/v1/runs/{id}/stream"""
    user, refused = await authenticated(request)
    if refused is not None:
        return refused
    try:
        run = await in_database(lambda: run_get(user=user, run_id=id))
    except Exception as error:
        ours = error_of(error)
        if ours is None:
            raise
        return JsonResponse({"error": ours[1]}, status=ours[0])
    last = request.headers.get("Last-Event-ID") or request.GET.get("after") or "0"
    return event_stream(events_of(str(run.pk), int(last) if last.isdigit() else 0))


