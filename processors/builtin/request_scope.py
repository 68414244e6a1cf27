"""Whose a request is: the key under which spending, rates and cached answers are counted."""

from __future__ import annotations

import uuid
from typing import Final, Literal, TypeAlias

from processors.engine.hooks import HookArgs

Scope: TypeAlias = Literal["run", "thread", "user", "agent", "key"]

NAMES: Final[dict[str, tuple[str, ...]]] = {
    "run": ("run_id",),
    "thread": ("thread_id",),
    "user": ("user_id", "resource_id"),
    "agent": ("agent", "agent_id"),
    "key": ("api_key", "api_key_id"),
}
"""Names in the request context, the first that has a value counts."""
NOBODY: Final = "unknown"
"""The key of all requests that do not say whose they are: they share one account and are never let off."""


def scope_key(args: HookArgs, scope: Scope) -> str:
    """The request's key for a scope. A run without an id gets one that lasts as long as its state."""
    for name in NAMES[scope]:
        value = args.request_context.get(name)
        if value not in (None, ""):
            return str(value)
    if scope == "run":
        return str(args.state.setdefault("run_key", uuid.uuid4().hex))
    return NOBODY
