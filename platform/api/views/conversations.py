"""Conversations and their messages."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import generics, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.models import Run
from agents.selectors import agents_for
from agents.services.runs import RunRefused
from api.pages import ThreadPages
from api.serializers import (
    MessageSerializer,
    MessagesQuerySerializer,
    MessagesSerializer,
    NewThreadSerializer,
    ThreadSerializer,
    TitleSerializer,
)
from memory.models import Thread
from memory.selectors import messages_of, thread_get, threads_of
from memory.services import thread_create, thread_delete, thread_rename


def thread_or_404(user: Any, id: Any) -> Thread:
    """A conversation that the person may read; a stranger's does not exist."""
    try:
        return thread_get(user, id)
    except Thread.DoesNotExist:
        raise Http404 from None


class Threads(generics.ListAPIView[Thread]):
    """Your conversations, the latest first; those that the OpenAI road made for single calls are left out."""

    serializer_class = ThreadSerializer
    pagination_class = ThreadPages
    filter_backends = ()
    queryset = Thread.objects.none()

    def get_queryset(self) -> Any:
        return threads_of(self.request.user).exclude(metadata__contains={"channel": "openai"})

    @extend_schema(request=NewThreadSerializer, responses={201: ThreadSerializer})
    def post(self, request: Request) -> Response:
        """Begin a conversation with an agent."""
        asked = NewThreadSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        slug = asked.validated_data["agent"]
        if slug not in {agent.slug for agent in agents_for(request.user)}:
            raise RunRefused("unknown_agent", f"There is no agent called “{slug}” that you may chat with.")
        made = thread_create(owner=request.user, agent_slug=slug, title=asked.validated_data["title"])
        return Response(ThreadSerializer(made).data, status=status.HTTP_201_CREATED)


class ThreadDetail(APIView):
    """One of your conversations."""

    @extend_schema(responses=ThreadSerializer)
    def get(self, request: Request, id: str) -> Response:
        return Response(ThreadSerializer(thread_or_404(request.user, id)).data)

    @extend_schema(request=TitleSerializer, responses=ThreadSerializer)
    def patch(self, request: Request, id: str) -> Response:
        """Rename it."""
        thread = thread_or_404(request.user, id)
        asked = TitleSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        try:
            renamed = thread_rename(actor=request.user, thread=thread, title=asked.validated_data["title"])
        except ValueError as error:
            raise ValidationError({"title": [str(error)]}) from error
        return Response(ThreadSerializer(renamed).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, id: str) -> Response:
        """Delete it with its messages. The audit keeps its rows."""
        thread_delete(actor=request.user, thread=thread_or_404(request.user, id))
        return Response(status=status.HTTP_204_NO_CONTENT)


class Messages(APIView):
    """The messages of a conversation, oldest first. `activeRun`: the run that is going on, if there is one."""

    @extend_schema(parameters=[MessagesQuerySerializer], responses=MessagesSerializer)
    def get(self, request: Request, id: str) -> Response:
        thread = thread_or_404(request.user, id)
        asked = MessagesQuerySerializer(data=request.query_params)
        asked.is_valid(raise_exception=True)
        after, limit = asked.validated_data.get("after"), asked.validated_data["limit"]
        # the run first: one that ends in between is then followed to an end that the messages already show
        active = Run.objects.filter(thread=thread, status__in=Run.ACTIVE).order_by("created_at").first()
        rows = messages_of(thread, after=after, limit=limit, reader=request.user)
        return Response(
            {"results": MessageSerializer(rows, many=True).data, "activeRun": active and str(active.pk)}
        )
