"""Auditors read the trail with filters and take it with them."""

from __future__ import annotations

import csv
import io
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.utils import timezone

from accounts.models import User
from audit.counters import Count, counters_add
from audit.models import ProcessorHour, Violation
from audit.selectors import rates, violations_csv, violations_list
from tests.audit.conftest import record

pytestmark = pytest.mark.django_db


@pytest.fixture
def auditor() -> User:
    user = User.objects.create_user("charlie")
    user.groups.add(Group.objects.get(name="auditor"))
    return user


def test_filters_choose_rows(auditor) -> None:
    record(action="block")
    record(action="redact", tool_name="search")
    assert [row.action for row in violations_list(auditor)] == ["redact", "block"]
    assert violations_list(auditor, action="block", agent="helper", channel="").count() == 1
    with pytest.raises(ValueError, match="no filter called 'colour'"):
        violations_list(auditor, colour="red")


def test_others_read_nothing(auditor) -> None:
    with pytest.raises(PermissionDenied):
        violations_list(User.objects.create_user("bob"))


def test_a_cell_that_a_spreadsheet_would_run_is_quoted(auditor) -> None:
    record(message="=HYPERLINK(1)", tool_name="@tool, with a comma")
    rows = list(csv.DictReader(io.StringIO(violations_csv(violations_list(auditor)))))
    assert (rows[0]["message"], rows[0]["tool_name"]) == ("'=HYPERLINK(1)", "'@tool, with a comma")
    assert list(csv.DictReader(io.StringIO(violations_csv(list(Violation.objects.all()))))) == rows


def test_counts_add_up_within_an_hour_and_give_rates() -> None:
    now = timezone.now().replace(minute=30)
    counters_add(agent_slug="helper", counts=[Count("pii", 8, 7, 1, 0, 0.004), Count("words", 8, 8)], at=now)
    counters_add(agent_slug="helper", counts=[Count("pii", 2, 1, 1, 0, 0.001)], at=now + timedelta(minutes=5))
    assert ProcessorHour.objects.count() == 2
    found = {row["processor_id"]: row for row in rates(since=now - timedelta(hours=1), agent="helper")}
    assert found["pii"]["rate"] == 0.2
    assert found["pii"]["milliseconds"] == pytest.approx(0.5)
    assert rates(since=now + timedelta(hours=2)) == []
