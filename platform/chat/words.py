"""The words that the page's scripts show. They ask for them in English (`t("…")` in static/chat/) and get the person's language."""

from __future__ import annotations

from typing import Any, Final

from django.utils.translation import gettext_lazy as _

WORDS: Final[tuple[Any, ...]] = (
    _("A guardrail could not do its work, so nothing was let through."),
    _("A guardrail of this agent is faulty. Tell the agent's owner."),
    _("A guardrail put this in place of something"),
    _("A guardrail stopped this message. Its text was not kept."),
    _("An editor can publish one in the console. Then it stands here."),
    _("Answer"),
    _("Approve"),
    _("Ask something."),
    _("Changed by a guardrail before the agent saw it"),
    _("Connecting again …"),
    _("Copied"),
    _("Copy"),
    _("Copy code"),
    _("Decline"),
    _("Delete"),
    _("Delete “%s”"),
    _("Edit"),
    _("Guardrail"),
    _("New conversation"),
    _("No agent is published yet"),
    _("No answer"),
    _("Not sent"),
    _("Progress"),
    _("Reason"),
    _("Rename"),
    _("Rename “%s”"),
    _("Result"),
    _("See the audit"),
    _("Send again"),
    _("Somebody who may approve tools has to decide. You can leave; the answer goes on afterwards."),
    _("Something went wrong."),
    _("Stopped by a guardrail"),
    _("Stopped."),
    _("The agent is writing"),
    _("The answer reached its limit of time, steps or tokens."),
    _("The answer was interrupted."),
    _("The model's provider did not answer properly."),
    _("The server cannot be reached. Check your connection and try again."),
    _("The tool %s waits for approval."),
    _("Thoughts"),
    _("Title of the conversation"),
    _("Tool"),
    _("Try again"),
    _("Waits for the connection …"),
    _("What guardrails found could not be recorded, so the answer was stopped."),
    _("What stood here was withdrawn; the answer is written anew."),
    _("You"),
    _("You are offline"),
    _("Your conversations will stand here."),
    _("approved"),
    _("declined"),
    _("done"),
    _("failed"),
    _("image not shown"),
    _("not finished"),
    _("optional"),
    _("running …"),
    _("stopped"),
    _("waits for approval"),
)
ENGLISH: Final[tuple[str, ...]] = tuple(str(word._args[0]) for word in WORDS)


def words() -> dict[str, str]:
    """English → the language of this request. Only what differs is sent."""
    return {english: str(word) for english, word in zip(ENGLISH, WORDS, strict=True) if english != str(word)}
