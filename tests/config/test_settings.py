"""What the environment says, and what a log line never says."""

from __future__ import annotations

import json
import logging

import pytest

from config.log_format import logging_settings
from config.settings import database_of


def test_a_database_address_is_taken_apart() -> None:
    found = database_of("postgresql://alice:p%40ss@db.example:5433/house?sslmode=require")
    assert (found["USER"], found["PASSWORD"], found["HOST"], found["PORT"], found["NAME"]) == (
        "alice", "p@ss", "db.example", "5433", "house",
    )  # fmt: skip
    assert found["OPTIONS"]["sslmode"] == "require"


@pytest.mark.parametrize("url", ["", "house", "mysql://a@b/c", "postgresql://a@b", "postgresql://a@b:x/c"])
def test_what_is_no_address_ends_with_a_sentence(url: str) -> None:
    with pytest.raises(SystemExit, match="DATABASE_URL is not a Postgres address"):
        database_of(url)


def logged(error: Exception | None, *, readable: bool = False) -> str:
    """One line as the house writes it."""
    formatter = logging_settings(readable=readable)["formatters"]["line"]
    made = formatter["()"](
        processors=formatter["processors"], foreign_pre_chain=formatter["foreign_pre_chain"]
    )
    info = (type(error), error, error.__traceback__) if error else None
    record = logging.LogRecord(
        "gatehouse.runs", logging.ERROR, __file__, 1, "The run %s failed.", ("r1",), info
    )
    return str(made.format(record))


def test_a_log_line_is_one_json_object() -> None:
    line = json.loads(logged(None))
    assert (line["event"], line["level"], line["logger"]) == ("The run r1 failed.", "error", "gatehouse.runs")


@pytest.mark.parametrize("readable", [False, True])
def test_an_exceptions_own_words_are_not_logged_but_its_places_are(readable: bool) -> None:
    try:
        raise ValueError("alice@example.org is not a number")
    except ValueError as error:
        line = logged(error, readable=readable)
    assert "alice@example.org" not in line
    assert "ValueError" in line
    assert "tests/config/test_settings.py:" in line
