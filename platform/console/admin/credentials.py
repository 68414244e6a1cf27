"""Credentials for models' providers. A secret goes in and never comes out."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display
from unfold.widgets import UnfoldAdminURLInputWidget

from agents.credentials import credential_save, credential_test
from agents.models import ProviderCredential
from audit.changes import change_record
from console.admin.pages import ConsoleAdmin
from console.schema_fields import SecretField
from console.site import site
from processors.engine.errors import GatehouseError


class CredentialForm(forms.ModelForm):  # type: ignore[type-arg]
    base_url = forms.URLField(label=_("address"), required=False, assume_scheme="https", widget=UnfoldAdminURLInputWidget(), help_text=_("Only for OpenAI-compatible services."))  # fmt: skip
    secret_input = SecretField(label=_("secret key"), required=False, help_text=_("Stored encrypted. Nobody can read it again, you neither."))  # fmt: skip

    class Meta:
        model = ProviderCredential
        fields = ("slug", "name", "provider", "base_url")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "secret_input" in self.fields:
            self.fields["secret_input"].widget.is_set = bool(self.instance.secret)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("provider") == ProviderCredential.Provider.OPENAI_COMPATIBLE and not cleaned.get(
            "base_url"
        ):
            self.add_error(
                "base_url", _("Write the address of the service, for example https://models.example.com/v1.")
            )
        if (
            not self.instance.pk
            and not cleaned.get("secret_input")
            and cleaned.get("provider") != ProviderCredential.Provider.OPENAI_COMPATIBLE
        ):
            self.add_error("secret_input", _("Paste the key that the provider gave you."))
        return cleaned


@admin.register(ProviderCredential, site=site)
class CredentialAdmin(ConsoleAdmin):
    form = CredentialForm
    fields = ("name", "slug", "provider", "base_url", "secret_input")
    list_display = ("name", "provider", "base_url", "has_secret", "updated_at")
    search_fields = ("name", "slug")
    change_form_template = "admin/console/credential_form.html"
    actions = None

    @display(description=_("secret"), boolean=True)
    def has_secret(self, obj: ProviderCredential) -> bool:
        return bool(obj.secret)

    def get_readonly_fields(self, request: HttpRequest, obj: ProviderCredential | None = None) -> list[str]:
        return ["slug"] if obj is not None else []

    def get_prepopulated_fields(
        self, request: HttpRequest, obj: ProviderCredential | None = None
    ) -> dict[str, Any]:
        return {} if obj is not None or not self.has_add_permission(request) else {"slug": ("name",)}

    def save_model(self, request: HttpRequest, obj: ProviderCredential, form: Any, change: bool) -> None:
        credential_save(
            actor=request.user, credential=obj, secret=form.cleaned_data.get("secret_input") or None
        )

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        obj = self.object_for_view(request, object_id)
        agents = sorted(str(agent) for agent in obj.agent_set.all()[:20])
        if agents:
            messages.error(request, _("“%(credential)s” can't be deleted: these agents use it: %(agents)s. Choose another credential there first.") % {"credential": obj, "agents": ", ".join(agents)})  # fmt: skip
            return HttpResponseRedirect(reverse("admin:agents_providercredential_change", args=[obj.pk]))
        return super().delete_view(request, object_id, extra_context)

    def delete_model(self, request: HttpRequest, obj: ProviderCredential) -> None:
        facts = {"name": obj.name, "provider": obj.provider, "base_url": obj.base_url}
        change_record(actor=request.user, action="deleted", obj=obj, before=facts, after=None)
        super().delete_model(request, obj)

    def get_urls(self) -> list[URLPattern]:
        test = self.admin_site.admin_view(self.test)
        return [
            path("<path:object_id>/test/", test, name="agents_providercredential_test"),
            *super().get_urls(),
        ]

    def test(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask the provider whether the stored key works: {"ok", "message"}."""
        credential = self.object_for_change(request, object_id)
        if request.method != "POST":
            return JsonResponse({"ok": False, "message": str(_("Use the button."))}, status=405)
        try:
            ok, message = credential_test(credential)
        except GatehouseError as problem:
            ok, message = False, str(problem)
        return JsonResponse({"ok": ok, "message": message})
