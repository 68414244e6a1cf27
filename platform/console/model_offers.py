"""Which models an agent could use, and whether a chosen one answers. Asking providers takes time, so pages never wait for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.cache import cache
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext as _

from agents.credentials import credential_reachable_models, credential_test
from agents.models import Agent, ProviderCredential
from processors.engine.errors import GatehouseError

if TYPE_CHECKING:
    from console.admin.agents import AgentAdmin

OWN_MODELS = ("local/smollm2", "scripted/practice")
"""Models that need no credential: the embedded one and the practice script."""
REMEMBERED = 600
"""Seconds for which a provider's list is remembered."""
MOST_CREDENTIALS = 20


def known_models() -> list[str]:
    """Models to offer without asking anybody: our own and those that agents use. One query."""
    used = Agent.objects.order_by("model").values_list("model", flat=True).distinct()[:50]
    return list(dict.fromkeys([*OWN_MODELS, *used]))


def models_of(credential: ProviderCredential) -> list[str]:
    """The provider's list, from the cache if it was asked lately. Raises GatehouseError."""
    key = f"console-models-{credential.pk}-{credential.updated_at.timestamp()}"
    found = cache.get(key)
    if found is None:
        found = [str(name) for name in credential_reachable_models(credential)]
        cache.set(key, found, REMEMBERED)
    return list(found)


def offered_models(area: AgentAdmin, request: HttpRequest) -> HttpResponse:
    """{"models": […]}: what the credentials can reach. A provider that does not answer is left out."""
    if not (area.has_change_permission(request) or area.has_add_permission(request)):
        raise PermissionDenied
    models = known_models()
    for credential in ProviderCredential.objects.order_by("name")[:MOST_CREDENTIALS]:
        try:
            models += models_of(credential)
        except (GatehouseError, ValueError):
            continue
    return JsonResponse({"models": list(dict.fromkeys(models))})


def test_model(area: AgentAdmin, request: HttpRequest) -> HttpResponse:
    """Does the chosen model answer with the chosen credential? {"ok": bool, "message": a sentence}."""
    if request.method != "POST" or not (
        area.has_change_permission(request) or area.has_add_permission(request)
    ):
        raise PermissionDenied
    number = request.POST.get("credential", "")
    credential = ProviderCredential.objects.filter(pk=number).first() if number.isdigit() else None
    ok, message = model_answers(request.POST.get("model", "").strip(), credential)
    return JsonResponse({"ok": ok, "message": message})


def model_answers(name: str, credential: ProviderCredential | None) -> tuple[bool, str]:
    """Whether the model can be reached, and a sentence that says so or what to do."""
    if not name:
        return False, _("Choose or write a model first.")
    if name in OWN_MODELS:
        return True, _("“%(model)s” is part of this installation and needs no credential.") % {"model": name}
    if credential is None:
        return False, _("Choose the credential that this model is reached with, then test again.")
    try:
        ok, sentence = credential_test(credential)
        if not ok:
            return False, sentence
        listed = models_of(credential)
    except (GatehouseError, ValueError) as problem:
        return False, str(problem)
    if listed and name not in listed and name.partition("/")[2] not in listed:
        return False, _("The provider answers, but does not list “%(model)s”. Check the name.") % {
            "model": name
        }
    return True, sentence
