"""Settings and entry points. Importing it makes both source roots importable and Celery known to Django."""

from __future__ import annotations

import sys
from pathlib import Path

for _root in (Path(__file__).resolve().parents[2], Path(__file__).resolve().parents[1]):
    if str(_root) not in sys.path:
        sys.path.insert(0, str(_root))

from config.celery import app as celery_app  # noqa: E402 - the roots come first

__all__ = ["celery_app"]
