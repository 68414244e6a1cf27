"""`make install`: once, whole, and told in a sentence when it cannot be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from embedded import bootstrap
from tests.embedded.house import ROOT


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two tiny locks, into which nothing is really installed."""
    for name in ("requirements.lock", "requirements-dev.lock", "requirements-model.lock"):
        (tmp_path / name).write_text(f"{name}\n", encoding="ascii")
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path)
    monkeypatch.setattr(bootstrap, "ENVIRONMENT", tmp_path / ".venv")
    return tmp_path


def test_it_needs_nothing_but_the_standard_library() -> None:
    code = "import sys, runpy; runpy.run_path(sys.argv[1], run_name='loaded'); print(len(sys.path))"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(ROOT / "platform" / "embedded" / "bootstrap.py")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_a_held_environment_is_not_touched_again(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled: list[Path] = []
    monkeypatch.setattr(bootstrap, "fill", lambda main, model: filled.append(main))
    python = bootstrap.python_of(checkout / ".venv")
    python.parent.mkdir(parents=True)
    python.touch()
    bootstrap.install(dev=True)
    bootstrap.install(dev=True)
    bootstrap.install(dev=False)
    assert [lock.name for lock in filled] == ["requirements-dev.lock"]


def test_a_changed_lock_is_installed(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled: list[Path] = []
    monkeypatch.setattr(bootstrap, "fill", lambda main, model: filled.append(main))
    python = bootstrap.python_of(checkout / ".venv")
    python.parent.mkdir(parents=True)
    python.touch()
    bootstrap.install(dev=False)
    (checkout / "requirements.lock").write_text("more\n", encoding="ascii")
    bootstrap.install(dev=False)
    assert len(filled) == 2


def test_a_place_that_cannot_be_written_is_named(checkout: Path) -> None:
    (checkout / ".venv").write_text("in the way", encoding="ascii")
    with pytest.raises(SystemExit, match="Make the folder writable, or free some space"):
        bootstrap.install(dev=False)


def test_an_old_python_is_told_which_one_to_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "LOWEST", (4, 0))
    with pytest.raises(SystemExit, match="make run PYTHON="):
        bootstrap.main()
