"""The playground: walk a text through the draft's chain, guardrail by guardrail, and chat with the draft."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from agents.models import Agent
from agents.run_log import read
from agents.services.runs import RunRefused, draft_run_start, run_launch
from agents.snapshot import agent_snapshot
from console.effective_chain import Link, effective_chains
from console.trial import LONGEST_TEXT, TextAs, Trial, run_trial, text_as
from processors.build import build_context, opened_options
from processors.engine.errors import GatehouseError
from processors.engine.messages import assistant_message, user_message
from processors.engine.processor import ChainEntry
from processors.engine.registry import registry

if TYPE_CHECKING:
    from console.admin.agents import AgentAdmin

MOST_TURNS = 40


def playground_page(area: AgentAdmin, request: HttpRequest, object_id: str) -> HttpResponse:
    agent = area.object_for_view(request, object_id)
    context = area.page_context(request, agent, title=_("Playground of “%(agent)s”") % {"agent": agent},
                                may_chat=area.has_change_permission(request, agent))  # fmt: skip
    return TemplateResponse(request, "admin/console/playground.html", context)


def walk(area: AgentAdmin, request: HttpRequest, object_id: str) -> HttpResponse:
    """A piece of HTML: each guardrail's verdict on the text in order, and what would come out at the end."""
    agent = area.object_for_view(request, object_id)
    if request.method != "POST":
        return HttpResponse(status=405, headers={"Allow": "POST"})
    text, as_ = request.POST.get("text", "")[:LONGEST_TEXT], text_as(request.POST.get("as", ""))
    steps, outcome = walk_chain(agent, text, as_)
    context = {"steps": steps, "outcome": outcome, "as_": as_, "text": text}
    if (
        as_ == "input"
        and outcome is not None
        and not any(step["trial"] and step["trial"].verdict == "error" for step in steps)
    ):
        context["prompt"] = sent_prompt(agent, text)
    return TemplateResponse(request, "admin/console/walk.html", context)


def walk_chain(agent: Agent, text: str, as_: TextAs) -> tuple[list[dict[str, Any]], str | None]:
    """Each guardrail alone, in chain order, on what the one before let through. Ends at the first that stops it."""
    stage = "input" if as_ == "input" else "output"
    links = next(chain.links for chain in effective_chains(agent) if chain.stage == stage)
    steps: list[dict[str, Any]] = []
    current: str | None = text
    for link in links:
        if current is None:
            steps.append({"link": link, "trial": None, "problem": ""})
            continue
        trial, problem = _try(link, current, as_)
        steps.append({"link": link, "trial": trial, "problem": problem})
        current = trial.after_text if trial is not None else None
    return steps, current


def _try(link: Link, text: str, as_: TextAs) -> tuple[Trial | None, str]:
    try:
        return run_trial([_entry(link)], text, as_), ""
    except TimeoutError:
        return None, _("It took longer than 15 seconds.")
    except (GatehouseError, ValueError) as problem:
        return None, str(problem)


def _entry(link: Link) -> ChainEntry:
    one = link.processor
    options = opened_options(one.slug, one.kind, one.options)
    return ChainEntry(registry.build(one.kind, one.slug, options, build_context()), on_error=one.on_error)  # type: ignore[arg-type]


def sent_prompt(agent: Agent, text: str) -> list[dict[str, str]]:
    """What the model would be sent: [{"role", "text"}], with the draft's instructions and its whole input chain."""
    links = next(chain.links for chain in effective_chains(agent) if chain.stage == "input")
    trial = run_trial(
        [_entry(link) for link in links if not link.broken], text, "input", instructions=agent.instructions
    )
    return [
        {"role": str(message["role"]), "text": _prompt_text(message["content"])} for message in trial.prompt
    ]


def _prompt_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text") or part.get("result") or part.get("type", "")) for part in content)


def chat(area: AgentAdmin, request: HttpRequest, object_id: str) -> HttpResponseBase:
    """Run the saved draft and stream its chunks as server-sent events. The run is recorded as one of the playground."""
    agent = area.object_for_change(request, object_id)
    if request.method != "POST":
        return HttpResponse(status=405, headers={"Allow": "POST"})
    text = request.POST.get("text", "").strip()
    if not text:
        return JsonResponse({"message": _("Write a message first.")}, status=400)
    try:
        run = draft_run_start(
            user=request.user, snapshot=agent_snapshot(agent), text=text, history=_history(request)
        )
        run_launch(run)
    except RunRefused as refusal:
        return JsonResponse({"message": str(refusal)}, status=getattr(refusal, "status", 400))
    response = StreamingHttpResponse(_events(str(run.pk)), content_type="text/event-stream; charset=utf-8")
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Accel-Buffering"] = "no"
    return response


def _history(request: HttpRequest) -> list[Any]:
    """Earlier turns of this page: what the person saw, sent back by the page."""
    try:
        turns = json.loads(request.POST.get("history", "[]"))
    except ValueError:
        return []
    made = {"user": user_message, "assistant": assistant_message}
    return [
        made[turn["role"]](str(turn.get("text", "")))
        for turn in turns[-MOST_TURNS:]
        if isinstance(turn, dict) and turn.get("role") in made
    ]


async def _events(run_id: str) -> AsyncIterator[str]:
    async for _number, chunk in read(run_id):
        yield f"data: {json.dumps(chunk, ensure_ascii=False, default=str)}\n\n"
