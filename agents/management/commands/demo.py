"""`manage.py demo`: sample people, guardrails, tools and agents. Repeating it makes only what is missing."""

from __future__ import annotations

import os
from typing import Any

from django.core.management.base import BaseCommand

from agents.services.demo import demo_make


class Command(BaseCommand):
    help = "Makes demo data: an admin (password from GATEHOUSE_ADMIN_PASSWORD), a person who chats, guardrails, tools and agents."

    def handle(self, *args: Any, **options: Any) -> None:
        for sentence in demo_make(admin_password=os.environ.get("GATEHOUSE_ADMIN_PASSWORD")):
            self.stdout.write(sentence)
