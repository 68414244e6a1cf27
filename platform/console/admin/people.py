"""People and their roles."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from accounts.models import User
from audit.changes import change_record
from console.admin.pages import ConsoleAdmin, without_links
from console.site import site

FACTS = ("username", "first_name", "last_name", "email", "is_active", "is_staff", "is_superuser")


@admin.register(User, site=site)
class PersonAdmin(UserAdmin, ConsoleAdmin):  # type: ignore[type-arg]
    """Rights come from roles; single permissions are left to superusers, so the form stays short."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "full_name", "role_names", "is_staff", "is_active", "last_login")
    list_filter = ("is_active", "is_staff", "groups")
    fieldsets = (
        (None, {"fields": ("username", "first_name", "last_name", "email", "password")}),
        (_("What this person may do"), {"fields": ("is_active", "is_staff", "groups", "is_superuser")}),
        (_("Dates"), {"fields": ("last_login", "date_joined")}),
    )
    add_fieldsets = (
        (None, {"classes": ("wide",), "fields": ("username", "usable_password", "password1", "password2")}),
    )
    readonly_fields = ("last_login", "date_joined")
    filter_horizontal = ()
    actions = None

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        return super().get_queryset(request).prefetch_related("groups")

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        readonly = [*super().get_readonly_fields(request, obj)]
        if not request.user.is_superuser:
            # nobody raises others, or oneself, above one's own rights
            readonly += ["is_superuser", "is_staff", "groups"]
        return readonly

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        allowed = bool(super().has_change_permission(request, obj))
        return allowed and (obj is None or not obj.is_superuser or request.user.is_superuser)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        allowed = bool(super().has_delete_permission(request, obj))
        return allowed and (obj is None or not obj.is_superuser or request.user.is_superuser)

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "groups":
            kwargs["widget"] = UnfoldAdminCheckboxSelectMultipleWidget()
            field: Any = super().formfield_for_manytomany(db_field, request, **kwargs)
            field.help_text = _("Each role brings its rights.")
            field.label = _("Roles")
            return field
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        return without_links(super().formfield_for_dbfield(db_field, request, **kwargs))

    @display(description=_("name"))
    def full_name(self, obj: User) -> str:
        return obj.get_full_name()

    @display(description=_("roles"))
    def role_names(self, obj: User) -> str:
        return ", ".join(group.name.replace("_", " ") for group in obj.groups.all()) or "–"

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        form.before = person_facts(User.objects.get(pk=obj.pk)) if change else None
        super().save_model(request, obj, form, change)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        after = person_facts(User.objects.get(pk=form.instance.pk))
        if form.before != after:
            change_record(
                actor=request.user,
                action="changed" if change else "made",
                obj=form.instance,
                before=form.before,
                after=after,
            )

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        change_record(actor=request.user, action="deleted", obj=obj, before=person_facts(obj), after=None)
        super().delete_model(request, obj)


@admin.register(Group, site=site)
class RoleAdmin(GroupAdmin, ConsoleAdmin):
    """Roles are made by a migration; here one sees what they may do."""

    list_display = ("role",)

    @display(description=_("role"), ordering="name")
    def role(self, obj: Group) -> str:
        return obj.name.replace("_", " ").capitalize()


def person_facts(person: User) -> dict[str, Any]:
    """What the changes say about a person; never the password."""
    facts: dict[str, Any] = {name: getattr(person, name) for name in FACTS}
    facts["roles"] = sorted(person.groups.values_list("name", flat=True))
    return facts
