"""API keys. A key is shown once, on the page after it was made."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from accounts.models import ApiKey, User
from accounts.services import api_key_create, api_key_revoke
from console.admin.pages import ConsoleAdmin
from console.site import site

LIFETIMES = [
    ("30", _("30 days")),
    ("90", _("90 days")),
    ("365", _("one year")),
    ("", _("until it is revoked")),
]


class KeyForm(forms.Form):
    name = forms.CharField(label=_("What uses this key?"), max_length=100, widget=UnfoldAdminTextInputWidget(), help_text=_("For example “help centre”."))  # fmt: skip
    owner = forms.CharField(label=_("Whose rights has it?"), max_length=150, widget=UnfoldAdminTextInputWidget(), help_text=_("A user name. The key may do what this person may do."))  # fmt: skip
    lifetime = forms.ChoiceField(label=_("How long is it valid?"), choices=LIFETIMES, initial="90", required=False, widget=UnfoldAdminSelectWidget())  # fmt: skip

    def __init__(self, *args: Any, actor: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.actor = actor
        self.fields["owner"].initial = actor.get_username()
        self.fields["owner"].disabled = not actor.is_superuser

    def clean_owner(self) -> User:
        """The person; only the owner of the house makes keys for others."""
        if not self.actor.is_superuser:
            return User.objects.get(pk=self.actor.pk)
        owner = User.objects.filter(username=self.cleaned_data["owner"], is_active=True).first()
        if owner is None:
            raise forms.ValidationError(
                _("Nobody with this user name may sign in. Write the name as it stands under “People”.")
            )
        return owner


@admin.register(ApiKey, site=site)
class KeyAdmin(ConsoleAdmin):
    list_display = ("name", "prefix", "owner", "state", "last_used_at", "expires_at")
    list_select_related = ("owner",)
    search_fields = ("name", "prefix")
    list_filter = (("revoked_at", admin.EmptyFieldListFilter),)
    actions = None

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiKey]:
        keys = super().get_queryset(request).select_related("owner")
        return keys if request.user.is_superuser else keys.filter(owner=request.user)

    def has_delete_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        return False  # a key is revoked and stays in the list

    @display(description=_("state"), label={"valid": "success", "expired": "warning", "revoked": "danger"})
    def state(self, obj: ApiKey) -> tuple[str, str]:
        if obj.revoked_at is not None:
            return "revoked", str(_("revoked"))
        if obj.expires_at is not None and obj.expires_at <= timezone.now():
            return "expired", str(_("expired"))
        return "valid", str(_("valid"))

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = KeyForm(request.POST or None, actor=request.user)
        context = self.page_context(request, title=_("Make an API key"), form=form, button=_("Make the key"))
        if request.method == "POST" and form.is_valid():
            days = form.cleaned_data["lifetime"]
            expires = timezone.now() + timedelta(days=int(days)) if days else None
            key, secret = api_key_create(
                owner=form.cleaned_data["owner"], name=form.cleaned_data["name"], expires_at=expires
            )
            context.update(title=_("Your new key"), key=key, secret=secret)
            response = TemplateResponse(request, "admin/console/key_made.html", context)
            response.headers["Cache-Control"] = "no-store"
            return response
        return TemplateResponse(request, "admin/console/simple_form.html", context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        key = self.object_for_view(request, object_id)
        context = self.page_context(request, key, title=key.name, key=key, state=self.state(key),
                                    can_revoke=key.revoked_at is None and self.has_change_permission(request, key))  # fmt: skip
        return TemplateResponse(request, "admin/console/key.html", context)

    def get_urls(self) -> list[URLPattern]:
        revoke = self.admin_site.admin_view(self.revoke)
        return [path("<path:object_id>/revoke/", revoke, name="accounts_apikey_revoke"), *super().get_urls()]

    def revoke(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """From now on the key opens nothing."""
        key = self.object_for_change(request, object_id)
        if request.method == "POST":
            actor: Any = request.user
            api_key_revoke(actor=actor, key=key)
            messages.success(
                request,
                _("“%(key)s” is revoked. Whatever used it is refused from now on.") % {"key": key.name},
            )
        return HttpResponseRedirect(reverse("admin:accounts_apikey_changelist"))
