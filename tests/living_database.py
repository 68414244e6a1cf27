"""A database for tests in which several threads really commit, emptied quickly afterwards.

Django's own way (`transactional_db`) truncates every table and makes all permissions anew, which takes half a second a test.
This one deletes rows, leaves permissions and roles alone, and waits first until no run goes on.

A folder uses it by importing `living_database` in its conftest.py; its tests are marked `django_db(transaction=True)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.db import connection

_ends: set[str] = set()
"""What ends with the test session already."""
KEPT = frozenset(
    {"auth_permission", "auth_group", "auth_group_permissions", "django_content_type", "django_migrations"}
)


@pytest.fixture(name="_django_db_helper")  # what pytest-django asks for when a test is marked `django_db`
def living_database(
    request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: Any
) -> Iterator[None]:
    """Everything is committed and seen by every thread; at the end the tables are empty again."""
    from agents.live_log import live_logs
    from agents.runner import runner, runner_close

    if "runner" not in _ends:
        _ends.add("runner")
        request.session.addfinalizer(runner_close)
    with django_db_blocker.unblock():
        try:
            yield
        finally:
            runner().wait_idle(5)
            live_logs.clear()
            empty_tables()


def empty_tables() -> None:
    """Delete all rows but those that migrations made. Triggers and foreign keys look away (superuser only)."""
    tables = {model._meta.db_table for model in apps.get_models(include_auto_created=True)} - KEPT
    statements = "".join(f'DELETE FROM "{table}";' for table in sorted(tables))
    with connection.cursor() as cursor:
        cursor.execute(
            f"SET session_replication_role = replica; {statements} SET session_replication_role = DEFAULT;"
        )
    connection.close()
