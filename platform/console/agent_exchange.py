"""Agents in and out: clone, export as a file, import with the difference shown first, and templates for a start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.validators import validate_slug
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from agents.actions import agent_clone, agent_export, agent_import, agent_import_preview
from agents.models import Agent
from console.agent_templates import TEMPLATES, template_agent
from processors.engine.errors import GatehouseError

if TYPE_CHECKING:
    from console.admin.agents import AgentAdmin

LARGEST_FILE = 1_000_000


class CloneForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Name of the copy"), max_length=200, widget=UnfoldAdminTextInputWidget()
    )
    slug = forms.CharField(label=gettext_lazy("Short name"), max_length=100, validators=[validate_slug], widget=UnfoldAdminTextInputWidget(),
                           help_text=gettext_lazy("Letters, numbers and hyphens. Used in addresses; it can't be changed later."))  # fmt: skip

    def clean_slug(self) -> str:
        slug = str(self.cleaned_data["slug"])
        if Agent.objects.filter(slug=slug).exists():
            raise forms.ValidationError(_("There is an agent with this short name already; choose another."))
        return slug


class ImportForm(forms.Form):
    """A file or its text; the text is what goes on to the second step."""

    file = forms.FileField(label=gettext_lazy("File"), required=False)
    text = forms.CharField(label=gettext_lazy("or its text"), required=False, strip=False, widget=UnfoldAdminTextareaWidget({"rows": 12, "spellcheck": "false"}))  # fmt: skip

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        upload = cleaned.get("file")
        if upload is not None:
            if upload.size > LARGEST_FILE:
                raise forms.ValidationError(_("The file is larger than 1 MB, so it is no exported agent."))
            try:
                cleaned["text"] = upload.read().decode("utf-8")
            except UnicodeDecodeError:
                raise forms.ValidationError(
                    _("This is no text file. Choose a file that “Export” made.")
                ) from None
        if not cleaned.get("text", "").strip():
            raise forms.ValidationError(_("Choose a file or paste its text."))
        return cleaned


def clone_page(area: AgentAdmin, request: HttpRequest, object_id: str) -> HttpResponse:
    """A new draft like this one; it is published on its own."""
    agent = area.object_for_view(request, object_id)
    if not area.has_add_permission(request):
        raise PermissionDenied
    start = {"name": _("Copy of %(name)s") % {"name": agent.name}, "slug": f"{agent.slug}-copy"[:100]}
    form = CloneForm(request.POST or None, initial=start)
    if request.method == "POST" and form.is_valid():
        copy = agent_clone(
            actor=request.user, agent=agent, slug=form.cleaned_data["slug"], name=form.cleaned_data["name"]
        )
        messages.success(request, _("“%(copy)s” is a copy of “%(agent)s”. Nobody can use it until you publish it.") % {"copy": copy, "agent": agent})  # fmt: skip
        return HttpResponseRedirect(reverse("admin:agents_agent_change", args=[copy.pk]))
    context = area.page_context(
        request, agent, title=_("Copy “%(agent)s”") % {"agent": agent}, form=form, button=_("Make the copy")
    )
    return TemplateResponse(request, "admin/console/simple_form.html", context)


def export_file(area: AgentAdmin, request: HttpRequest, object_id: str) -> HttpResponse:
    """The draft with its chains as YAML; secrets are not in it."""
    agent = area.object_for_view(request, object_id)
    return HttpResponse(
        agent_export(actor=request.user, agent=agent), content_type="application/yaml; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{agent.slug}.agent.yaml"'},
    )  # fmt: skip


def import_page(area: AgentAdmin, request: HttpRequest) -> HttpResponse:
    """First the difference, then, at the second click, the import."""
    if not (area.has_add_permission(request) and area.has_change_permission(request)):
        raise PermissionDenied
    form = ImportForm(request.POST or None, request.FILES or None)
    preview: Any = None
    if request.method == "POST" and form.is_valid():
        text = form.cleaned_data["text"]
        try:
            preview = agent_import_preview(actor=request.user, text=text)
            if "confirm" in request.POST:
                agent = agent_import(actor=request.user, text=text)
                messages.success(
                    request,
                    _("“%(agent)s” is imported as a draft. Publish it when it is right.") % {"agent": agent},
                )
                return HttpResponseRedirect(reverse("admin:agents_agent_change", args=[agent.pk]))
        except (GatehouseError, ValueError) as problem:
            preview = None
            form.add_error(None, str(problem))
    context = area.page_context(
        request, title=_("Import an agent"), form=form, preview=preview, text=form.cleaned_data.get("text", "") if form.is_bound and form.is_valid() else "",
    )  # fmt: skip
    return TemplateResponse(request, "admin/console/agent_import.html", context)


def templates_page(area: AgentAdmin, request: HttpRequest) -> HttpResponse:
    """Ready-made beginnings; choosing one makes a draft."""
    if not area.has_add_permission(request):
        raise PermissionDenied
    if request.method == "POST":
        agent = template_agent(actor=request.user, key=request.POST.get("template", ""))
        if agent is None:
            messages.error(request, _("There is no such template. Choose one from the page."))
            return HttpResponseRedirect(reverse("admin:agents_agent_start"))
        messages.success(request, _("“%(agent)s” is a draft now. Look through it, choose a model, try it, publish it.") % {"agent": agent})  # fmt: skip
        return HttpResponseRedirect(reverse("admin:agents_agent_change", args=[agent.pk]))
    context = area.page_context(request, title=_("Start with a template"), templates=TEMPLATES)
    return TemplateResponse(request, "admin/console/agent_templates.html", context)
