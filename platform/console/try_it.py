"""The "Try it" panel: the real guardrail, with the settings that stand on the screen, on a text that is not stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from console.examples import MOST_EXAMPLES, run_examples
from console.guardrail_form import PREFIX, GuardrailForm, guardrail_form
from console.trial import LONGEST_TEXT, run_trial, text_as
from processors.build import build_context
from processors.builtin.detectors.pattern_rules import compile_pattern
from processors.builtin.detectors.pattern_shape import PatternError
from processors.engine.errors import GatehouseError
from processors.engine.processor import ChainEntry
from processors.engine.registry import registry
from processors.models import Processor

if TYPE_CHECKING:
    from console.admin.guardrails import GuardrailAdmin

MOST_MATCHES = 200


def try_it_view(request: HttpRequest, area: GuardrailAdmin) -> HttpResponse:
    """A piece of HTML: what the guardrail does to the text, or what is wrong with its settings."""
    if request.method != "POST":
        return HttpResponse(status=405, headers={"Allow": "POST"})
    if not area.has_view_permission(request):
        raise PermissionDenied
    if "try-pattern" in request.POST:
        return pattern_matches(request.POST["try-pattern"], request.POST.get("try-text", "")[:LONGEST_TEXT])
    number = request.POST.get("try-object", "")
    stored = Processor.objects.filter(pk=number).first() if number.isdigit() else None
    kind_slug = stored.kind if stored is not None else request.POST.get("try-kind", "")
    if kind_slug not in registry:
        return _answer(request, problems=[_("This kind is not installed.")])
    options, problems = options_on_screen(request, area, kind_slug, stored)
    if problems:
        return _answer(request, problems=problems)
    if "try-examples" in request.POST and stored is not None:
        return _answer(request, outcomes=run_examples(stored, options, stored.examples.all()[:MOST_EXAMPLES]))
    as_ = request.POST.get("try-as", "input")
    text = request.POST.get("try-text", "")
    try:
        guardrail = registry.build(
            kind_slug, stored.slug if stored else "on-this-page", options, build_context()
        )
        return _answer(request, trial=run_trial([ChainEntry(guardrail)], text, text_as(as_)))
    except TimeoutError:
        return _answer(
            request, problems=[_("The guardrail took longer than 15 seconds. Try a shorter text.")]
        )
    except (GatehouseError, ValueError) as problem:
        return _answer(request, problems=[str(problem)])


def _answer(request: HttpRequest, **context: Any) -> HttpResponse:
    return TemplateResponse(request, "admin/console/try_result.html", context)


def options_on_screen(request: HttpRequest, area: GuardrailAdmin, kind_slug: str, stored: Processor | None) -> tuple[dict[str, Any], list[str]]:  # fmt: skip
    """The settings of the unsaved form, and what is wrong with them in words. For a reader the stored ones hold."""
    may_edit = (
        area.has_change_permission(request, stored)
        if stored is not None
        else area.has_add_permission(request)
    )
    if stored is not None and not may_edit:
        return dict(stored.options), []
    if not may_edit:
        raise PermissionDenied
    form_class: type[GuardrailForm] = guardrail_form(kind_slug)
    form = form_class(request.POST, instance=stored if stored is not None else Processor(kind=kind_slug))
    form.fields.pop("expected_revision")  # trying saves nothing, so nobody else can have been faster
    form.is_valid()
    problems = []
    for name, errors in form.errors.items():
        if name.startswith(PREFIX):
            problems += [f"{form.fields[name].label}: {error}" for error in errors]
        elif name == "__all__":
            problems += [str(error) for error in errors]
    return getattr(form, "option_values", {}), problems


def pattern_matches(pattern: str, text: str) -> HttpResponse:
    """The sample with everything marked that the pattern matches, or why the pattern is refused."""
    try:
        compiled = compile_pattern(pattern).compiled
    except PatternError as problem:
        return HttpResponse(format_html('<span class="gh-error">{}</span>', str(problem)))
    spans = [
        match.span() for _number, match in zip(range(MOST_MATCHES), compiled.finditer(text), strict=False)
    ]
    pieces: list[tuple[str, str]] = []
    end = 0
    for start, stop in spans:
        pieces.append((text[end:start], text[start:stop]))
        end = stop
    count = ngettext("%(count)d match", "%(count)d matches", len(spans)) % {"count": len(spans)}
    marked = format_html_join("", "{}<mark>{}</mark>", pieces)
    return HttpResponse(format_html('<span class="gh-note">{}</span>\n{}{}', count, marked, text[end:]))
