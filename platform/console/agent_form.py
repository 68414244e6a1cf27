"""The form of an agent's draft."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.models import Group
from django.utils.translation import gettext_lazy as _
from unfold import widgets

from agents.models import Agent
from console.schema_fields import LinesField


class ModelInput(forms.TextInput):
    """A model's name: the reachable ones are offered, any other may be typed; a button tries it."""

    template_name = "console/widgets/model.html"

    def __init__(self) -> None:
        super().__init__(
            {"class": " ".join(widgets.INPUT_CLASSES), "autocomplete": "off", "spellcheck": "false"}
        )
        self.models: list[str] = []
        self.test_url = self.models_url = ""

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        context["widget"]["attrs"]["list"] = f"{name}-models"
        context.update(
            models=self.models, test_url=self.test_url, models_url=self.models_url, list_id=f"{name}-models"
        )
        return context


class AgentForm(forms.ModelForm):  # type: ignore[type-arg]
    """The draft. `expected_revision` is the revision that the editor saw."""

    fallbacks = LinesField(label=_("Fallback models"), required=False, help_text=_("One model per line. They are asked in this order when the model can't answer."))  # fmt: skip
    expected_revision = forms.IntegerField(required=False, widget=forms.HiddenInput())

    class Meta:
        model = Agent
        fields = (
            "name", "slug", "description", "instructions", "is_active", "model", "credential", "fallbacks", "temperature",
            "max_output_tokens", "access", "allowed_groups", "when_busy", "history_messages", "max_steps", "max_total_tokens",
            "max_seconds", "max_processor_retries",
        )  # fmt: skip
        widgets = {
            "instructions": widgets.UnfoldAdminTextareaWidget({"rows": 10}),
            "model": ModelInput(),
            "allowed_groups": widgets.UnfoldAdminCheckboxSelectMultipleWidget(),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "expected_revision" in self.fields:
            self.fields["expected_revision"].initial = self.instance.revision
        if "access" in self.fields and "allowed_groups" in self.fields:
            self.fields["access"].widget.attrs["data-option"] = "access"
            self.fields["allowed_groups"].widget.attrs.update(
                {"data-show-if": "access=groups", "data-columns": "1"}
            )
            if not Group.objects.exists():
                self.fields["allowed_groups"].help_text = _(
                    "There are no groups yet; make one under “Roles”."
                )
        helps = {
            "instructions": _(
                "What the agent is for, how it speaks and what it must not do, in your own words."
            ),
            "temperature": _("0 is sober, 1 is inventive. Empty: the model's own setting."),
            "max_steps": _("How often it may call the model for one answer, for example after a tool."),
            "max_total_tokens": _("Empty: no limit."),
            "max_output_tokens": _("Empty: the model's own limit."),
            "history_messages": _("More makes it remember further back, and costs more."),
            "description": _("Shown in the chat, where people choose an agent."),
        }
        for name, text in helps.items():
            if name in self.fields and not self.fields[name].help_text:
                self.fields[name].help_text = text

    def clean_expected_revision(self) -> int | None:
        expected: int | None = self.cleaned_data["expected_revision"]
        if self.instance.pk and expected is not None:
            # locked until this request's transaction ends, so a second editor waits here and is then told
            current = (
                Agent.objects.select_for_update().values_list("revision", flat=True).get(pk=self.instance.pk)
            )
            if current != expected:
                raise forms.ValidationError(_("Somebody else saved this agent while you were editing, so nothing was saved. Open it in a second tab, compare, and enter your change again there."))  # fmt: skip
        return expected

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("access") == Agent.Access.GROUPS and not cleaned.get("allowed_groups"):
            self.add_error("allowed_groups", _("Choose at least one group, or let everyone chat."))
        model = cleaned.get("model", "")
        if model and "/" not in model:
            self.add_error(
                "model",
                _("Write the provider and the model with a slash between them, for example local/smollm2."),
            )
        return cleaned

    def add_error(self, field: str | None, error: Any) -> None:
        # a hidden field's error would be shown nowhere
        super().add_error(None if field == "expected_revision" else field, error)
