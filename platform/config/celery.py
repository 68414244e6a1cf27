"""The Celery application: long tool calls and housekeeping."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from celery.signals import beat_embedded_init, worker_process_init

from embedded.children import end_with_parent

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("gatehouse")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_process_init.connect(weak=False)
@beat_embedded_init.connect(weak=False)
def _never_outlive_the_worker(**_: Any) -> None:
    """A worker that is killed cannot stop its children; they see it themselves."""
    end_with_parent()
