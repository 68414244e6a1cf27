"""Runs: ask, wait or follow, stop, decide."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.exceptions import ValidationError
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.models import Run
from agents.services.runs import run_decide, run_get, run_launch, run_start, run_stop
from api.errors import problem_of_run
from api.event_streams import EventRenderer, event_stream, events_of
from api.serializers import DecisionSerializer, RunRequestSerializer, RunSerializer
from api.throttling import RequestRate, RunRate
from api.waiting import run_wait

EVENTS = {(200, "text/event-stream"): OpenApiTypes.STR}
KEY = OpenApiParameter(
    "Idempotency-Key", str, OpenApiParameter.HEADER, description="Repeating it finds the first run."
)


class Runs(APIView):
    """Ask an agent.

    The answer comes with the response (`"wait": true`), as events (`Accept: text/event-stream`), or is followed later at
    `/runs/{id}/stream`. The run belongs to the server: closing the connection does not stop it.
    """

    renderer_classes = (JSONRenderer, EventRenderer)
    throttle_classes = (RequestRate, RunRate)

    @extend_schema(
        request=RunRequestSerializer,
        parameters=[KEY],
        responses={200: RunSerializer, 202: RunSerializer, **EVENTS},
    )
    def post(self, request: Request) -> HttpResponseBase:
        asked = RunRequestSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        data = asked.validated_data
        as_events = isinstance(request.accepted_renderer, EventRenderer)
        run = run_start(
            user=request.user, agent_slug=data["agent"], text=data["input"], thread_id=data.get("threadId"),
            client_message_id=data.get("clientMessageId"), channel="sse" if as_events else "rest",
            idempotency_key=request.headers.get("Idempotency-Key", ""),
        )  # fmt: skip
        run_launch(run)
        if as_events:
            return event_stream(events_of(str(run.pk), 0, first=RunSerializer(run).data))
        return answer_of(run_wait(user=request.user, run=run) if data["wait"] else run)


def answer_of(run: Run) -> Response:
    """A run as a response: 200 when it has ended, 202 while it has not, and why when it failed."""
    body: dict[str, Any] = RunSerializer(run).data
    if run.status in (Run.Status.FAILED, Run.Status.INTERRUPTED):
        problem = problem_of_run(run.error)
        return Response({**problem.body(), "run": body}, status=problem.status)
    return Response(body, status=status.HTTP_200_OK if run.status in Run.FINAL else status.HTTP_202_ACCEPTED)


class RunDetail(APIView):
    """One run."""

    @extend_schema(responses=RunSerializer)
    def get(self, request: Request, id: str) -> Response:
        return Response(RunSerializer(run_get(user=request.user, run_id=id)).data)


class RunStream(APIView):
    """The run's numbered chunks as events, from `Last-Event-ID` (or `?after=`) on, to its end."""

    renderer_classes = (EventRenderer, JSONRenderer)

    @extend_schema(
        parameters=[OpenApiParameter("after", int, description="The last number seen; 0 for all.")],
        responses=EVENTS,
    )
    def get(self, request: Request, id: str) -> HttpResponseBase:
        run = run_get(user=request.user, run_id=id)
        last = request.headers.get("Last-Event-ID") or request.query_params.get("after") or "0"
        if not (last.isascii() and last.isdigit() and len(last) < 12):
            raise ValidationError({"after": ["Give the number of the last event seen, or 0."]})
        return event_stream(events_of(str(run.pk), int(last)))


class RunCancel(APIView):
    """Stop a run. What was shown is kept."""

    @extend_schema(request=None, responses=RunSerializer)
    def post(self, request: Request, id: str) -> Response:
        return Response(RunSerializer(run_stop(user=request.user, run_id=id)).data)


class RunDecide(APIView):
    """Approve or decline a tool call that waits. When the last one is decided, the run goes on."""

    @extend_schema(request=DecisionSerializer, responses=RunSerializer)
    def post(self, request: Request, id: str) -> Response:
        asked = DecisionSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        data = asked.validated_data
        run_decide(
            user=request.user, run_id=id, tool_call_id=data["toolCallId"], approved=data["approved"],
            reason=data["reason"], args=data["args"],
        )  # fmt: skip
        return Response(RunSerializer(run_get(user=request.user, run_id=id)).data)
