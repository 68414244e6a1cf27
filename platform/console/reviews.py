"""What an auditor thinks of a violation. It stands beside the violation, which never changes."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from audit.changes import change_record
from audit.models import Review, Violation


@transaction.atomic
def review_save(*, actor: Any, violation: Violation, verdict: str, note: str = "") -> Review:
    """Keep one review per violation; the one before it stands in the changes."""
    old = Review.objects.select_for_update().filter(violation_id=violation.pk).first()
    before = {"verdict": old.verdict, "note": old.note} if old is not None else None
    review, _made = Review.objects.update_or_create(
        violation_id=violation.pk, defaults={"verdict": verdict, "note": note, "reviewer": actor}
    )
    change_record(
        actor=actor, action="reviewed", obj=violation, before=before, after={"verdict": verdict, "note": note}
    )
    return review
