"""A run as OpenAI-shaped answers.

This wire cannot withdraw what it has sent. So the text of a step is held until the step is accepted (`step-finish`) when the agent's
guardrails may ask for another try, and sent live otherwise. If a live step is withdrawn all the same, because the model's provider
broke off, the stream ends with an error: better no answer than two halves of different ones.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

from agents.bridge import in_database
from agents.models import Run
from agents.run_log import END, RESET, read
from agents.services.runs import run_get, run_stop
from api.errors import Problem

REASONS: Final = {"length": "length", "content-filter": "content_filter"}
"""Our finish reasons → OpenAI's; all others are "stop"."""
WITHDRAWN: Final = {
    "message": "The model's provider broke off and the answer began anew; ask again.", "type": "server_error",
    "code": "answer_withdrawn", "param": None,
}  # fmt: skip


def error_body(problem: Problem) -> dict[str, Any]:
    """An error in OpenAI's shape."""
    kinds = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
    kind = kinds.get(problem.status, "invalid_request_error" if problem.status < 500 else "server_error")
    return {"error": {"message": problem.message, "type": kind, "code": problem.code, "param": None}}


def usage_of(usage: dict[str, Any] | None) -> dict[str, int]:
    """Token counts under OpenAI's names."""
    given = usage or {}
    return {
        "prompt_tokens": int(given.get("inputTokens") or 0), "completion_tokens": int(given.get("outputTokens") or 0),
        "total_tokens": int(given.get("totalTokens") or 0),
    }  # fmt: skip


def facts_of(run: Run) -> dict[str, Any]:
    """What has no place in OpenAI's shape."""
    thread = str(run.thread_id) if run.thread_id else None
    return {"run_id": str(run.pk), "thread_id": thread, "status": run.status}


def completion(run: Run, model: str) -> dict[str, Any]:
    """A run that has ended (or waits for approval) as a chat completion."""
    refusal = (run.tripwire or {}).get("reason") if run.status == Run.Status.BLOCKED else None
    reason = "content_filter" if run.status == Run.Status.BLOCKED else REASONS.get(run.finish_reason, "stop")
    message = {"role": "assistant", "content": None if refusal else run.text, "refusal": refusal}
    return {
        "id": f"chatcmpl-{run.pk}", "object": "chat.completion", "created": int(run.created_at.timestamp()),
        "model": model, "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": None}],
        "usage": usage_of(run.usage), "gatehouse": facts_of(run),
    }  # fmt: skip


def may_be_withdrawn(run: Run) -> bool:
    """Whether a guardrail of this agent may ask for another try."""
    snapshot = run.version.snapshot if run.version is not None else {}
    return bool(snapshot.get("max_processor_retries"))


class Frames:
    """Turns the run's chunks into completion chunks."""

    def __init__(self, run_id: str, model: str, *, hold: bool) -> None:
        self._head = {
            "id": f"chatcmpl-{run_id}", "object": "chat.completion.chunk", "created": int(time.time()), "model": model,
        }  # fmt: skip
        self.hold, self.sent, self.broken = hold, False, False
        self.held: list[str] = []
        self.reason = "stop"

    def frame(self, delta: dict[str, Any], reason: str | None = None) -> str:
        """One event."""
        choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
        return event({**self._head, "choices": [choice]})

    def usage(self, run: Run) -> str:
        """The last event before `[DONE]` when the caller asked for usage."""
        return event({**self._head, "choices": [], "usage": usage_of(run.usage), "gatehouse": facts_of(run)})

    def take(self, chunk: dict[str, Any]) -> str | None:
        """The event for a chunk, if it makes one."""
        kind, payload = chunk.get("type"), chunk.get("payload") or {}
        if kind == "text-delta":
            if self.hold:
                self.held.append(payload["text"])
                return None
            self.sent = True
            return self.frame({"content": payload["text"]})
        if kind == "step-retry" or (kind == RESET and not self.sent):
            self.held.clear()
            self.broken = self.sent
        elif kind == RESET:
            self.broken = True
        elif kind == "step-finish":
            return self.release()
        elif kind == "finish":
            self.reason = REASONS.get(str(payload.get("reason")), "stop")
            return self.release()
        elif kind == "abort":
            return self.release()
        elif kind == "tripwire":
            self.held.clear()
            self.reason = "content_filter"
            return self.frame({"refusal": str(payload.get("reason", ""))})
        elif kind == "error":
            self.broken = True
            error = payload.get("error") or {}
            return event(
                error_body(Problem(500, str(error.get("code", "run_failed")), str(error.get("message", ""))))
            )
        return None

    def release(self) -> str | None:
        """Send the accepted text of the step."""
        self.sent = False  # accepted text is never withdrawn
        if not self.held:
            return None
        text = "".join(self.held)
        self.held.clear()
        return self.frame({"content": text})


def event(body: dict[str, Any]) -> str:
    """One event of this wire."""
    return f"data: {json.dumps(body, ensure_ascii=False, separators=(',', ':'))}\n\n"


async def frames_of(
    user: Any, run_id: str, frames: Frames, *, with_usage: bool, stop_when_left: bool
) -> AsyncGenerator[str, None]:
    """The whole stream, `[DONE]` included. stop_when_left: a client that leaves stops the run, as clients of this wire expect."""
    done = False
    try:
        yield frames.frame({"role": "assistant", "content": ""})
        async with aclosing(read(run_id)) as chunks:
            async for _, chunk in chunks:
                if chunk.get("type") == END:
                    break
                made = frames.take(chunk)
                if frames.broken and made is None:
                    made = event({"error": WITHDRAWN})
                if made is not None:
                    yield made
                if frames.broken:
                    break
        done = True
        if not frames.broken:
            yield frames.frame({}, frames.reason)
            if with_usage:
                yield frames.usage(await in_database(run_get, user=user, run_id=run_id))
        yield "data: [DONE]\n\n"
    finally:
        if not done and stop_when_left:
            await in_database(run_stop, user=user, run_id=run_id)
