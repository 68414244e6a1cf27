"""The audit's technical words in the words of the people who read it. A word that is not known here stays as it is."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

HOOKS: dict[str, Any] = {
    "process_input": _("on the person's message, before anything else"),
    "process_input_step": _("before a call of the model"),
    "process_llm_request": _("on what was about to be sent to the model"),
    "process_llm_response": _("on what came back from the model"),
    "process_output_stream": _("while the answer was being written"),
    "process_output_step": _("at the end of a step of the answer"),
    "process_tool_result": _("on what a tool returned"),
    "process_output_result": _("on the finished answer"),
    "process_api_error": _("when the model's provider failed"),
}
ACTIONS: dict[str, Any] = {
    "block": _("stopped the message"),
    "retry": _("asked the model to try again"),
    "redact": _("took it out of the text"),
    "rewrite": _("rewrote the text"),
    "filter": _("left the piece out"),
    "warn": _("let it pass and reported it"),
    "allow": _("let it pass"),
}
PLACES: dict[str, Any] = {
    "text": _("in the text"), "input": _("in the message"), "reasoning": _("in the model's reasoning"),
    "tool-args": _("in what a tool was asked"), "tool-result": _("in what a tool returned"), "data": _("in a data part"),
}  # fmt: skip


def hook_words(hook: str) -> str:
    return str(HOOKS.get(hook, hook))


def action_words(action: str) -> str:
    return str(ACTIONS.get(action, action))


def place_words(place: str) -> str:
    return str(PLACES.get(place, place))
