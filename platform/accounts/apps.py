from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class AccountsConfig(AppConfig):
    name = "accounts"
    label = "accounts"
    verbose_name = "People and keys"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        post_migrate.connect(make_missing_roles, sender=self, dispatch_uid="accounts.roles")


def make_missing_roles(apps: Any = None, **_: Any) -> None:
    """A role that is gone (a flushed database) comes back with the next migrate."""
    from django.apps import apps as installed

    from accounts.roles import roles_make

    try:
        roles_make(apps or installed)
    except LookupError:
        return  # migrated to a point where the tables are not there yet
