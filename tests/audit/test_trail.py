"""The trail keeps every verdict, no secret, and shows when somebody has been at it."""

from __future__ import annotations

import io
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from hypothesis import given
from hypothesis import strategies as some

from audit.models import Change, TrailHead, Violation
from audit.storable import storable
from audit.verify import trail_verify
from tests.audit.conftest import record
from tests.living_database import living_database

__all__ = ["living_database"]
pytestmark = pytest.mark.django_db(transaction=True)


def behind_its_back(statement: str, *values: Any) -> None:
    """What somebody with the database's password can do."""
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(statement, values)
        cursor.execute("SET session_replication_role = DEFAULT")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_violation SET message = ''",
        "DELETE FROM audit_violation",
        "UPDATE audit_change SET note = ''",
        "DELETE FROM audit_change",
    ],
)
def test_the_database_refuses_to_change_or_remove_rows(statement) -> None:
    record()
    Change.objects.create(action="made", object_type="agent", object_id="1")
    with (
        pytest.raises(DatabaseError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)


def test_an_untouched_trail_is_whole() -> None:
    assert trail_verify() is None
    for number in range(5):
        record(
            message=f"Number {number}.", detail={"score": 0.1 * number, "more": {"deep": [1.0, 2.5, 1e22]}}
        )
    assert trail_verify() is None
    call_command("audit_verify", stdout=io.StringIO())


@pytest.mark.parametrize(
    "statement",
    ["UPDATE audit_violation SET message = 'Nothing.' WHERE sequence = %s", "UPDATE audit_violation SET user_id = 2 WHERE sequence = %s",
     "UPDATE audit_violation SET detail = '{}' WHERE sequence = %s"],
)  # fmt: skip
def test_a_changed_row_is_named(statement) -> None:
    rows = [record(detail={"x": 1}) for _ in range(3)]
    behind_its_back(statement, rows[1].sequence)
    assert trail_verify().sequence == rows[1].sequence
    with pytest.raises(CommandError, match=f"Row {rows[1].sequence}"):
        call_command("audit_verify")


def test_a_row_taken_out_of_the_middle_shows_at_the_next() -> None:
    rows = [record() for _ in range(3)]
    behind_its_back("DELETE FROM audit_violation WHERE sequence = %s", rows[1].sequence)
    assert trail_verify().sequence == rows[2].sequence


def test_rows_taken_from_the_end_show_too() -> None:
    rows = [record() for _ in range(3)]
    behind_its_back("DELETE FROM audit_violation WHERE sequence = %s", rows[2].sequence)
    assert "rows at its end are missing" in trail_verify().what
    behind_its_back("UPDATE audit_trailhead SET rows = 2, last_digest = %s", rows[1].chain_digest)
    assert "was changed" in trail_verify().what
    behind_its_back("DELETE FROM audit_trailhead")
    assert trail_verify() is not None


def test_eight_writers_at_once_make_one_chain() -> None:
    def write(number: int) -> None:
        try:
            record(message=f"Number {number}.")
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(24)))
    assert trail_verify() is None
    assert TrailHead.objects.get().rows == 24


def test_a_processor_that_forgot_to_mask_is_masked_here() -> None:
    detail = {
        "excerpt": "write to alice@example.org", "matched": "alice@example.org", "note": "card 4111 1111 1111 1111",
        "matches": [{"type": "email", "start": 9, "end": 26, "text": "alice@example.org"}], "nested": {"value": "sk-abcdef1234567890", "why": "sk-abcdef1234567890"},
    }  # fmt: skip
    record(message="Found alice@example.org.", detail=detail)
    row = json.dumps(Violation.objects.values().get(), default=str)
    assert "alice@" not in row
    assert "4111" not in row
    assert "abcdef" not in row
    assert Violation.objects.get().matches == [{"type": "email", "start": 9, "end": 26}]


def test_what_no_column_can_hold_is_cleaned_and_not_lost() -> None:
    row = record(
        message="nul \x00 and \ud83d",
        detail={"rule": "x" * 500, "odd": {1, 2}, "nan": float("nan"), "\x00": object},
    )
    assert row.message.startswith("nul  and ")
    assert len(row.rule) == 200
    assert trail_verify() is None


def test_metadata_that_is_no_dictionary_is_kept() -> None:
    assert record(detail=["a", 1]).detail == {"metadata": ["a", 1]}


def test_a_row_is_written_in_its_own_transaction_or_not_at_all() -> None:
    with pytest.raises(RuntimeError, match="durable"), transaction.atomic():
        record()
    assert Violation.objects.count() == 0


@given(some.recursive(some.none() | some.booleans() | some.floats() | some.integers() | some.text(), lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner), max_leaves=10))  # fmt: skip
def test_any_value_becomes_json_that_is_stable(value) -> None:
    made = storable(value)
    assert json.loads(json.dumps(made)) == made
    assert storable(made) == made
    assert "\x00" not in json.dumps(made, ensure_ascii=False)
