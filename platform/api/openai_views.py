"""The OpenAI-compatible road: `model` is an agent's short name. The same run service answers as everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.models import Run
from agents.selectors import agents_for
from agents.services.runs import RunRefused, run_launch, run_start
from api.authentication import ApiKeyAuthentication
from api.errors import Problem, exception_handler, problem_of_run
from api.event_streams import EventRenderer, event_stream
from api.openai_reply import Frames, completion, error_body, frames_of, may_be_withdrawn
from api.openai_request import asked_of
from api.throttling import RequestRate, RunRate
from api.waiting import run_wait


def openai_errors(error: Exception, context: dict[str, Any]) -> Response | None:
    """The API's errors in OpenAI's shape."""
    response = exception_handler(error, context)
    if response is not None and isinstance(response.data, dict) and "code" in response.data.get("error", {}):
        given = response.data["error"]
        code = "invalid_api_key" if response.status_code == 401 else given["code"]
        response.data = error_body(Problem(response.status_code, code, given["message"]))
    return response


class OpenAIView(APIView):
    """Only API keys are taken here, so no forged form can ask."""

    authentication_classes = (ApiKeyAuthentication,)
    renderer_classes = (JSONRenderer, EventRenderer)

    def get_exception_handler(self) -> Callable[..., Any]:
        return openai_errors


class Models(OpenAIView):
    """The agents that the key's owner may chat with."""

    @extend_schema(exclude=True)
    def get(self, request: Request) -> Response:
        listed = [
            {
                "id": agent.slug,
                "object": "model",
                "created": int(agent.created_at.timestamp()),
                "owned_by": "gatehouse",
            }
            for agent in agents_for(request.user)
        ]
        return Response({"object": "list", "data": listed})


class Model(OpenAIView):
    """One of them."""

    @extend_schema(exclude=True)
    def get(self, request: Request, slug: str) -> Response:
        for agent in agents_for(request.user):
            if agent.slug == slug:
                created = int(agent.created_at.timestamp())
                return Response({"id": slug, "object": "model", "created": created, "owned_by": "gatehouse"})
        raise RunRefused("unknown_agent", f"There is no agent called “{slug}” that you may chat with.")


class ChatCompletions(OpenAIView):
    """POST /v1/chat/completions, streamed or not."""

    throttle_classes = (RequestRate, RunRate)

    @extend_schema(exclude=True)
    def post(self, request: Request) -> HttpResponseBase:
        asked = asked_of(request.data)
        key = request.headers.get("Idempotency-Key", "")
        run = run_start(user=request.user, channel="openai", idempotency_key=key, **asked.start)
        run_launch(run)
        response = (
            self._streamed(request, run, asked, key)
            if asked.stream
            else self._whole(request, run, asked.model)
        )
        response["X-Gatehouse-Run-Id"] = str(run.pk)
        return response

    def _streamed(self, request: Request, run: Run, asked: Any, key: str) -> HttpResponseBase:
        frames = Frames(str(run.pk), asked.model, hold=may_be_withdrawn(run))
        # without a key nobody could find the answer again, so a client that leaves stops the run
        return event_stream(
            frames_of(request.user, str(run.pk), frames, with_usage=asked.with_usage, stop_when_left=not key)
        )

    def _whole(self, request: Request, run: Run, model: str) -> Response:
        run = run_wait(user=request.user, run=run)
        if run.status in (Run.Status.FAILED, Run.Status.INTERRUPTED):
            problem = problem_of_run(run.error)
            return Response(error_body(problem), status=problem.status)
        if run.status not in Run.FINAL and run.status != Run.Status.WAITING:
            late = Problem(
                504, "still_running", "The answer takes longer than a request may wait; stream it instead."
            )
            return Response(error_body(late), status=late.status)
        return Response(completion(run, model))
