"""The OpenAI-compatible road: `model` is an agent's slug. The same run service answers as everywhere.

A step that a guardrail asks to repeat cannot be withdrawn on this wire, so text is sent when its step is accepted
(`step-finish`) if the agent allows second chances, and live otherwise.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from accounts.policies import can
from agents.bridge import in_database
from agents.models import Agent, Run
from agents.run_log import END, read
from agents.services.runs import RunRefused, run_begin, run_get
from api.streams import authenticated, event_stream

REASONS: Final = {"length": "length", "content-filter": "content_filter", "tool-calls": "stop", "other": "content_filter"}


def openai_error(status: int, message: str, code: str) -> JsonResponse:
    """An error in OpenAI's shape."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return JsonResponse({"error": {"message": message, "type": kind, "code": code, "param": None}}, status=status)


def text_of(content: Any) -> str:
    """A message's text: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict) and part.get("type") == "text")
    return ""


def asked_of(body: dict[str, Any]) -> dict[str, Any]:
    """`run_start`'s arguments from a request's body. Raises RunRefused."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(m, dict) for m in messages):
        raise RunRefused("bad_request", "“messages” must be a list with at least one message.")
    if messages[-1].get("role") != "user":
        raise RunRefused("bad_request", "The last message must be the user's.")
    system = "\n".join(text_of(m.get("content")) for m in messages if m.get("role") in ("system", "developer"))
    history = [{"role": m["role"], "text": text_of(m.get("content"))} for m in messages[:-1] if m.get("role") in ("user", "assistant")]
    settings = {name: body[name] for name in ("temperature", "top_p", "seed") if body.get(name) is not None}
    limit = body.get("max_completion_tokens") or body.get("max_tokens")
    if limit is not None:
        settings["max_output_tokens"] = limit
    overrides = {"system": system or None, "history": history or None, "model_settings": settings or None}
    return {"agent_slug": str(body.get("model", "")), "text": text_of(messages[-1].get("content")), "overrides": overrides}


def usage_of(run: Run) -> dict[str, int]:
    usage = run.usage or {}
    return {"prompt_tokens": usage.get("inputTokens", 0), "completion_tokens": usage.get("outputTokens", 0),
            "total_tokens": usage.get("totalTokens", 0)}  # fmt: skip


def completion(run: Run, model: str) -> dict[str, Any]:
    """A finished run as a chat completion."""
    refusal = (run.tripwire or {}).get("reason")
    message = {"role": "assistant", "content": run.text or (None if refusal else ""), "refusal": refusal}
    reason = "content_filter" if refusal else REASONS.get(run.finish_reason, "stop")
    return {
        "id": f"chatcmpl-{run.pk}", "object": "chat.completion", "created": int(run.created_at.timestamp()), "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": None}], "usage": usage_of(run),
    }  # fmt: skip


class Frames:
    """The run's chunks as completion chunks."""

    def __init__(self, run: Run, model: str, *, hold: bool) -> None:
        self.run, self.model, self.hold = run, model, hold
        self.held: list[str] = []
        self.created = int(time.time())
        self.reason = "stop"
        self.refusal: str | None = None

    def frame(self, delta: dict[str, Any], reason: str | None = None, **extra: Any) -> str:
        body = {"id": f"chatcmpl-{self.run.pk}", "object": "chat.completion.chunk", "created": self.created, "model": self.model,
                "choices": [{"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}], **extra}  # fmt: skip
        return f"data: {json.dumps(body, ensure_ascii=False)}\n\n"

    def take(self, chunk: dict[str, Any]) -> str | None:
        """The frame for a chunk, if it makes one."""
        kind, payload = chunk.get("type"), chunk.get("payload") or {}
        if kind == "text-delta":
            if not self.hold:
                return self.frame({"content": payload["text"]})
            self.held.append(payload["text"])
        elif kind == "step-retry":
            self.held.clear()
        elif kind == "step-finish" and self.held:
            text, self.held = "".join(self.held), []
            return self.frame({"content": text})
        elif kind == "tripwire":
            self.reason, self.refusal = "content_filter", str(payload.get("reason", ""))
            return self.frame({"refusal": self.refusal})
        elif kind == "finish":
            self.reason = REASONS.get(str(payload.get("reason")), "stop")
        elif kind == "error":
            return f"data: {json.dumps({'error': payload.get('error')}, ensure_ascii=False)}\n\n"
        return None


async def frames_of(user: Any, run: Run, model: str, *, hold: bool, with_usage: bool) -> AsyncIterator[str]:
    """The whole stream, `[DONE]` included."""
    frames = Frames(run, model, hold=hold)
    yield frames.frame({"role": "assistant", "content": ""})
    async for _, chunk in read(str(run.pk)):
        if chunk.get("type") == END:
            break
        made = frames.take(chunk)
        if made is not None:
            yield made
    yield frames.frame({}, frames.reason)
    if with_usage:
        ended = await in_database(lambda: run_get(user=user, run_id=run.pk))
        body = {"id": f"chatcmpl-{run.pk}", "object": "chat.completion.chunk", "created": frames.created, "model": model,
                "choices": [], "usage": usage_of(ended)}  # fmt: skip
        yield f"data: {json.dumps(body)}\n\n"
    yield "data: [DONE]\n\n"


@csrf_exempt
async def chat_completions(request: HttpRequest) -> HttpResponseBase:
    """POST /v1/chat/completions. Only API keys are taken here, so no forged form can ask."""
    if request.method != "POST":
        return openai_error(405, "Use POST.", "method_not_allowed")
    if not request.headers.get("Authorization", "").lower().startswith("bearer "):
        return openai_error(401, "Send an API key: Authorization: Bearer gh_…", "invalid_api_key")
    user, refused = await authenticated(request)
    if refused is not None:
        return openai_error(401, "This API key is not valid.", "invalid_api_key")
    try:
        body = json.loads(request.body)
        if not isinstance(body, dict):
            raise ValueError
    except ValueError:
        return openai_error(400, "The body is no JSON object.", "bad_request")
    try:
        run = await run_begin(
            user=user, channel="openai", idempotency_key=request.headers.get("Idempotency-Key", ""), **asked_of(body)
        )
    except RunRefused as error:
        return openai_error(error.status, error.message, error.code)
    model = str(body["model"])
    if body.get("stream"):
        usage = bool((body.get("stream_options") or {}).get("include_usage"))
        hold = bool((run.version.snapshot if run.version else {}).get("max_processor_retries"))
        return event_stream(frames_of(user, run, model, hold=hold, with_usage=usage))
    async for _ in read(str(run.pk)):
        pass
    run = await in_database(lambda: run_get(user=user, run_id=run.pk))
    if run.status in (Run.Status.FAILED, Run.Status.INTERRUPTED):
        return openai_error(502, str((run.error or {}).get("message", "The run failed.")), "run_failed")
    return JsonResponse(completion(run, model))


async def models(request: HttpRequest) -> HttpResponseBase:
    """GET /v1/models"""
    user, refused = await authenticated(request)
    if refused is not None:
        return openai_error(401, "Send an API key: Authorization: Bearer gh_…", "invalid_api_key")

    def listed() -> list[dict[str, Any]]:
        agents = Agent.objects.filter(is_active=True).exclude(published=None).prefetch_related("allowed_groups")
        return [{"id": agent.slug, "object": "model", "created": int(agent.created_at.timestamp()), "owned_by": "gatehouse"}
                for agent in agents if can(user, "agent.chat", agent)]  # fmt: skip

    return JsonResponse({"object": "list", "data": await in_database(listed)})
