"""Has anybody changed or removed a row of the trail behind the application's back?"""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from django.db import transaction

from accounts.secrets import derived_key
from audit.digest import head_seal, row_digest
from audit.models import TrailHead, Violation


@dataclass(slots=True, frozen=True)
class Break:
    """The first thing that is wrong. sequence: the row where it shows, None if it is the end of the trail."""

    sequence: int | None
    what: str


@transaction.atomic
def trail_verify() -> Break | None:
    """Recompute every digest from the first row on. None: the trail is whole."""
    key = derived_key("audit-trail")
    before, count = "", 0
    for row in Violation.objects.order_by("sequence").iterator(chunk_size=2000):
        if not hmac.compare_digest(row.chain_digest, row_digest(key, before, row)):
            return Break(
                row.sequence, f"Row {row.sequence} was changed, or a row before it was removed or added."
            )
        before, count = row.chain_digest, count + 1
    head = TrailHead.objects.filter(pk=1).first()
    if head is None:
        return Break(None, "The end of the trail is missing.") if count else None
    if not hmac.compare_digest(head.seal, head_seal(key, head)) and head.rows:
        return Break(None, "The end of the trail was changed.")
    if (head.rows, head.last_digest) != (count, before):
        return Break(
            None, f"The trail has {count} rows, but {head.rows} were written: rows at its end are missing."
        )
    return None
