"""`manage.py prepare`: migrations and demo data in one process, for `make run`."""

from __future__ import annotations

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Brings the database up to date and makes the demo data that is missing."

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", verbosity=0, interactive=False)
        call_command("demo", stdout=self.stdout)
