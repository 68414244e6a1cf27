"""`manage.py audit_verify`: exit code 1 and the first broken row if somebody tampered with the trail."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from audit.verify import trail_verify


class Command(BaseCommand):
    help = "Checks that no row of the audit trail was changed or removed."

    def handle(self, *args: Any, **options: Any) -> None:
        found = trail_verify()
        if found is not None:
            raise CommandError(found.what)
        self.stdout.write("The audit trail is whole.")
