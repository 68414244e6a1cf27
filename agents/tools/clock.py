"""The date and time."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from agents.tools.kinds import Job
from processors.engine.errors import ToolFailed


def tell_time(args: dict[str, Any], options: dict[str, Any], job: Job) -> dict[str, Any]:
    """{"zone"?} → {"time": ISO 8601, "weekday", "zone"}. Raises ToolFailed for an unknown zone."""
    zone = str(args.get("zone") or "UTC")
    try:
        now = datetime.now(ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ToolFailed(f"There is no time zone {zone!r}. Use a name such as Europe/Berlin.") from None
    return {"time": now.isoformat(timespec="seconds"), "weekday": now.strftime("%A"), "zone": zone}
