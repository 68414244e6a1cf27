"""The roles of a new installation."""

from __future__ import annotations

from typing import Any

from django.db import migrations

from accounts.roles import ROLES, roles_make


def make(apps: Any, schema_editor: Any) -> None:
    roles_make(apps)


def take_away(apps: Any, schema_editor: Any) -> None:
    apps.get_model("auth", "Group").objects.filter(name__in=ROLES).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]
    operations = [migrations.RunPython(make, take_away)]
