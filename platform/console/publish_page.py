"""The page that makes a draft live: what changes for people, a note, and the saved examples that must hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextareaWidget

from agents.actions import agent_publish
from agents.models import Agent, AgentVersion
from console.agent_draft import draft_of
from console.effective_chain import effective_chains
from console.examples import Outcome, failing_examples
from processors.engine.errors import GatehouseError

if TYPE_CHECKING:
    from console.admin.agents import AgentAdmin


class PublishForm(forms.Form):
    """override: why failing examples do not matter this time; kept in the version's note."""

    note = forms.CharField(
        label=gettext_lazy("What is new?"), widget=UnfoldAdminTextareaWidget({"rows": 3}), max_length=2000
    )
    override = forms.CharField(
        label=gettext_lazy("Publish although examples fail, because"), max_length=1000, required=False,
        widget=UnfoldAdminTextareaWidget({"rows": 2}), help_text=gettext_lazy("Kept with the version, with your name."),
    )  # fmt: skip
    expected_revision = forms.IntegerField(widget=forms.HiddenInput())

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "override" not in self.data:
            self.hide_override()

    def hide_override(self) -> None:
        self.fields["override"].widget = forms.HiddenInput()

    def show_override(self) -> None:
        self.fields["override"].widget = UnfoldAdminTextareaWidget({"rows": 2})

    def whole_note(self, failing: list[Outcome]) -> str:
        note = str(self.cleaned_data["note"])
        if not failing:
            return note
        reason = self.cleaned_data["override"]
        return note + "\n\n" + _("%(count)d saved examples failed; published because: %(reason)s") % {"count": len(failing), "reason": reason}  # fmt: skip


def publish_page(area: AgentAdmin, request: HttpRequest, object_id: str) -> HttpResponse:
    """GET shows what would change; POST runs the saved examples and publishes."""
    agent = area.object_for_view(request, object_id)
    if not request.user.has_perm("agents.publish_agent"):
        raise PermissionDenied
    draft = draft_of(agent)
    form = PublishForm(request.POST or None, initial={"expected_revision": agent.revision})
    failing: list[Outcome] = []
    if request.method == "POST" and form.is_valid():
        if draft.broken:
            form.add_error(None, _("Guardrails are broken: %(names)s. Install their packages or take them out, then publish.") % {"names": ", ".join(draft.broken)})  # fmt: skip
        else:
            failing = failing_examples(agent)
            version = _publish(request, agent, form, failing)
            if version is not None:
                text = _("Version %(number)s of “%(agent)s” is live.")
                messages.success(request, text % {"number": version.number, "agent": agent})
                return HttpResponseRedirect(reverse("admin:agents_agent_change", args=[agent.pk]))
    warnings = [sentence for chain in effective_chains(agent) for sentence in chain.warnings]
    context = area.page_context(
        request, agent, title=_("Publish “%(agent)s”") % {"agent": agent}, form=form, draft=draft, warnings=warnings,
        failing=failing,
    )  # fmt: skip
    return TemplateResponse(request, "admin/console/agent_publish.html", context)


def _publish(
    request: HttpRequest, agent: Agent, form: PublishForm, failing: list[Outcome]
) -> AgentVersion | None:
    """The new version, or None with the reason in the form."""
    if failing and not form.cleaned_data["override"].strip():
        form.show_override()
        form.add_error(
            None,
            _("Saved examples fail. Put the guardrails right, or write below why you publish nevertheless."),
        )
        return None
    try:
        version: AgentVersion = agent_publish(
            actor=request.user, agent=agent, note=form.whole_note(failing), expected_revision=form.cleaned_data["expected_revision"],
        )  # fmt: skip
    except (GatehouseError, ValueError) as problem:
        form.add_error(None, str(problem))
        return None
    return version
