"""REST under /api/v1/: skins over the services."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import generics, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.policies import can
from agents.models import Agent, Run
from agents.services.runs import run_decide, run_get, run_launch, run_start, run_stop
from api.pages import Pages
from api.serializers import (
    AgentSerializer, DecisionSerializer, MessageSerializer, RunRequestSerializer, RunSerializer, ThreadSerializer,
    ViolationSerializer,
)  # fmt: skip
from api.waiting import run_wait
from audit.selectors import violations_csv, violations_list
from memory.models import Thread
from memory.selectors import messages_of, thread_get, threads_of
from memory.services import thread_create, thread_delete, thread_rename



def thread_or_404(user: Any, id: Any) -> Thread:
    """A thread that the person may read; a stranger's does not exist."""
    try:
        return thread_get(user, id)
    except Thread.DoesNotExist:
        raise Http404 from None


class Agents(generics.ListAPIView[Agent]):
    """The agents you may chat with."""

    serializer_class = AgentSerializer
    pagination_class = None
    queryset = Agent.objects.none()

    def get_queryset(self) -> Any:
        agents = Agent.objects.filter(is_active=True).exclude(published=None).select_related("published")
        return [agent for agent in agents.prefetch_related("allowed_groups") if can(self.request.user, "agent.chat", agent)]

    def filter_queryset(self, queryset: Any) -> Any:
        return queryset


class Threads(generics.ListCreateAPIView[Thread]):
    """Your conversations."""

    serializer_class = ThreadSerializer
    pagination_class = Pages
    queryset = Thread.objects.none()

    def get_queryset(self) -> Any:
        return threads_of(self.request.user)

    def perform_create(self, serializer: Any) -> None:
        data = serializer.validated_data
        serializer.instance = thread_create(
            owner=self.request.user, agent_slug=data["agent_slug"], title=data.get("title", "")
        )


class ThreadDetail(APIView):
    """One of your conversations."""

    @extend_schema(responses=ThreadSerializer)
    def get(self, request: Request, id: str) -> Response:
        return Response(ThreadSerializer(thread_or_404(request.user, id)).data)

    @extend_schema(request=ThreadSerializer, responses=ThreadSerializer)
    def patch(self, request: Request, id: str) -> Response:
        thread = thread_or_404(request.user, id)
        renamed = thread_rename(actor=request.user, thread=thread, title=str(request.data.get("title", "")))
        return Response(ThreadSerializer(renamed).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, id: str) -> Response:
        thread_delete(actor=request.user, thread=thread_or_404(request.user, id))
        return Response(status=status.HTTP_204_NO_CONTENT)


class Messages(APIView):
    """The messages of a conversation, oldest first. `after`: a position. `activeRun`: the run that is going on."""

    @extend_schema(responses=MessageSerializer(many=True))
    def get(self, request: Request, id: str) -> Response:
        thread = thread_or_404(request.user, id)
        after = request.query_params.get("after")
        rows = messages_of(thread, after=int(after) if after else None, reader=request.user)
        active = Run.objects.filter(thread=thread, status__in=Run.ACTIVE).order_by("created_at").first()
        return Response({"results": MessageSerializer(rows, many=True).data, "activeRun": active and str(active.pk)})


class Runs(APIView):
    """Ask an agent. With `wait` the answer comes with the response; otherwise follow it at `/stream`."""

    @extend_schema(request=RunRequestSerializer, responses=RunSerializer)
    def post(self, request: Request) -> Response:
        asked = RunRequestSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        data = asked.validated_data
        run = run_start(
            user=request.user, agent_slug=data["agent"], text=data["input"], thread_id=data.get("threadId"),
            client_message_id=data.get("clientMessageId"), channel="rest",
            idempotency_key=request.headers.get("Idempotency-Key", ""),
        )  # fmt: skip
        run_launch(run)
        if data["wait"]:
            run = run_wait(user=request.user, run=run)
        return Response(RunSerializer(run).data, status=status.HTTP_200_OK if data["wait"] else status.HTTP_202_ACCEPTED)


class RunDetail(APIView):
    """One run."""

    @extend_schema(responses=RunSerializer)
    def get(self, request: Request, id: str) -> Response:
        return Response(RunSerializer(run_get(user=request.user, run_id=id)).data)


class RunCancel(APIView):
    """Stop a run. What was shown is kept."""

    @extend_schema(request=None, responses=RunSerializer)
    def post(self, request: Request, id: str) -> Response:
        return Response(RunSerializer(run_stop(user=request.user, run_id=id)).data)


class RunDecide(APIView):
    """Approve or decline a tool call that waits."""

    @extend_schema(request=DecisionSerializer, responses=RunSerializer)
    def post(self, request: Request, id: str) -> Response:
        asked = DecisionSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        data = asked.validated_data
        run_decide(
            user=request.user, run_id=id, tool_call_id=data["toolCallId"], approved=data["approved"],
            reason=data.get("reason", ""), args=data.get("args"),
        )  # fmt: skip
        return Response(RunSerializer(run_get(user=request.user, run_id=id)).data)


class Violations(APIView):
    """What guardrails did, newest first. Filters: agent, processor, outcome, run, thread, channel, since, until."""

    @extend_schema(responses=ViolationSerializer(many=True))
    def get(self, request: Request) -> Response:
        rows = violations_list(request.user, **{k: v for k, v in request.query_params.items() if k not in ("page", "size")})
        pages = Pages()
        found = pages.paginate_queryset(rows, request, view=self)
        return pages.get_paginated_response(ViolationSerializer(found, many=True).data)


class ViolationsCsv(APIView):
    """The same as CSV."""

    @extend_schema(responses={(200, "text/csv"): str})
    def get(self, request: Request) -> HttpResponse:
        rows = violations_list(request.user, **dict(request.query_params.items()))
        answer = HttpResponse(violations_csv(rows), content_type="text/csv; charset=utf-8")
        answer["Content-Disposition"] = 'attachment; filename="violations.csv"'
        return answer
