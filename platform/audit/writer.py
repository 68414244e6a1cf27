"""The one writer of violations. The chain runner calls it; if it raises, the run stops."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol
from uuid import UUID

from django.db import connection, transaction

from accounts.secrets import derived_key
from audit.bridge import in_database
from audit.digest import head_seal, row_digest
from audit.models import TrailHead, Violation
from audit.storable import storable, storable_text

LOCK: Final = 0x6761_7465
"""The advisory lock that writers of the trail take turns on."""
LONGEST_EXCERPT: Final = 500
KNOWN_DETAIL: Final = frozenset({"type", "rule", "strategy", "matches", "excerpt", "hash", "score", "where"})
"""Keys of a violation's detail that have columns of their own."""
NEVER_KEPT: Final = frozenset(
    {
        "match",
        "matched",
        "text",
        "value",
        "original",
        "raw",
        "content",
        "secret",
        "snippet",
        "input",
        "output",
    }
)
"""Keys under which a processor might hand over the matched text; they are masked again here, whoever wrote the processor."""
LOOKS_SECRET: Final = re.compile(
    r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+|\b(?:sk|pk|ghp|gho|xox[bap]|AKIA)[-_A-Za-z0-9]{12,}\b|\b\d(?:[ -]?\d){8,18}\b"
)
"""E-mail addresses, keys and long numbers: what must not stand in a row even if a processor forgot to mask it."""


class Reported(Protocol):
    """What a guardrail reported."""

    processor_id: str
    message: str
    detail: Any


class Entry(Protocol):
    """An audit entry as the chain runner hands it over."""

    outcome: Any
    action: str
    violation: Any
    hook: str
    run_id: str
    step_number: int | None
    retry_count: int
    tool_name: str | None
    tool_call_id: str | None
    delivered_chars: int
    duration_ms: float | None
    origin: Any
    at: datetime


@dataclass(slots=True, frozen=True)
class Scene:
    """What every row of one run has in common."""

    run_id: UUID
    thread_id: UUID | None = None
    agent_slug: str = ""
    agent_version: int | None = None
    user_id: int | None = None
    user_label: str = ""
    channel: str = ""
    extra: dict[str, Any] = field(default_factory=dict)


class AuditWriter:
    """An audit sink that writes to the trail: one transaction per entry, finished before `record` returns."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    async def record(self, entry: Entry) -> None:
        """Write one row. Raises what the database raises; the caller must then stop."""
        await in_database(violation_record, scene=self.scene, entry=entry)


def violation_record(*, scene: Scene, entry: Entry) -> Violation:
    """Write one row at the end of the trail, in its own transaction."""
    row = _row(scene, entry)
    key = derived_key("audit-trail")
    with transaction.atomic(durable=_may_be_durable()):
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
            cursor.execute("SELECT nextval('audit_violation_sequence')")
            row.sequence = cursor.fetchone()[0]
        head, _ = TrailHead.objects.get_or_create(pk=1)
        row.chain_digest = row_digest(key, head.last_digest, row)
        row.save(force_insert=True)
        head.rows, head.last_digest = head.rows + 1, row.chain_digest
        head.seal = head_seal(key, head)
        head.save()
    return row


def _may_be_durable() -> bool:
    """Within somebody else's transaction a row would vanish with it; only tests that wrap everything in one may do that."""
    return not any(getattr(block, "_from_testcase", False) for block in connection.atomic_blocks)


def _row(scene: Scene, entry: Entry) -> Violation:
    violation: Reported = entry.violation
    detail = (
        violation.detail
        if isinstance(violation.detail, dict)
        else {"metadata": violation.detail}
        if violation.detail is not None
        else {}
    )
    origin = entry.origin if isinstance(entry.origin, dict) else {}
    rest = {name: value for name, value in detail.items() if name not in KNOWN_DETAIL}
    if scene.extra:
        rest["scene"] = scene.extra
    return Violation(
        at=entry.at, outcome=entry.outcome, action=_short(entry.action, 16), severity=_short(origin.get("severity", "medium"), 16),
        processor_id=_short(origin.get("slug") or violation.processor_id, 100), processor_name=_short(origin.get("name", ""), 200),
        kind=_short(origin.get("kind", ""), 100), rule=_short(detail.get("rule"), 200), type=_short(detail.get("type"), 100),
        message=masked(storable_text(violation.message))[:2000], hook=_short(entry.hook, 40), where=_short(detail.get("where"), 40),
        step_number=entry.step_number, retry_count=entry.retry_count, tool_name=_short(entry.tool_name, 200),
        tool_call_id=_short(entry.tool_call_id, 200), run_id=scene.run_id, thread_id=scene.thread_id, agent_slug=scene.agent_slug,
        agent_version=scene.agent_version, user_id=scene.user_id, user_label=_short(scene.user_label, 200), channel=_short(scene.channel, 32),
        excerpt=masked(_short(detail.get("excerpt"), LONGEST_EXCERPT)), matches=_matches(detail.get("matches")),
        digest=_short(detail.get("hash"), 64), score=_number(detail.get("score")), delivered_chars=entry.delivered_chars,
        duration_ms=entry.duration_ms, detail=_masked_detail(storable(rest)),
    )  # fmt: skip


def masked(text: str) -> str:
    """The text with addresses, keys and long numbers made unreadable, at their length."""
    return LOOKS_SECRET.sub(lambda found: found[0][0] + "•" * (len(found[0]) - 1), text)


def _masked_detail(value: Any, name: str = "") -> Any:
    if isinstance(value, str):
        return "•••" if name.lower() in NEVER_KEPT else masked(value)[:2000]
    if isinstance(value, dict):
        return {key: _masked_detail(one, key) for key, one in value.items()}
    if isinstance(value, list):
        return [_masked_detail(one, name) for one in value[:200]]
    return value


def _matches(value: Any) -> list[dict[str, Any]]:
    """Offsets only: whatever else a processor put beside them is left out."""
    kept = ("type", "rule", "start", "end", "where", "score")
    found = [one for one in value if isinstance(one, dict)] if isinstance(value, list | tuple) else []
    return [storable({name: one[name] for name in kept if name in one}) for one in found[:500]]


def _short(value: Any, longest: int) -> str:
    return "" if value is None else storable_text(str(value))[:longest]


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
