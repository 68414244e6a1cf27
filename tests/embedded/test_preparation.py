"""A warm start prepares nothing twice, and never skips what changed."""

from __future__ import annotations

from pathlib import Path

from embedded.preparation import fingerprint, is_prepared, remember


def test_a_fresh_folder_has_to_be_prepared(tmp_path: Path) -> None:
    assert not is_prepared(tmp_path, {})


def test_what_was_prepared_is_remembered_until_a_provider_is_added(tmp_path: Path) -> None:
    remember(tmp_path, {"PATH": "/bin"})
    assert is_prepared(tmp_path, {"PATH": "/usr/bin"})
    assert not is_prepared(tmp_path, {"OPENAI_API_KEY": "sk-x"})


def test_a_key_itself_is_not_in_the_stamp(tmp_path: Path) -> None:
    assert fingerprint({"OPENAI_API_KEY": "one"}) == fingerprint({"OPENAI_API_KEY": "two"})


def test_a_folder_that_cannot_be_written_is_prepared_again(tmp_path: Path) -> None:
    remember(tmp_path / "gone", {})
    assert not is_prepared(tmp_path / "gone", {})
