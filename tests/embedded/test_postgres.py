"""The embedded server keeps what it was given, and leaves other people's folders closed."""

from __future__ import annotations

import os
import signal
import stat
from pathlib import Path

import psycopg
import pytest

from embedded import postgres
from embedded.children import ServiceFailed
from embedded.places import Places
from embedded.postgres import Postgres
from tests.embedded.house import open_folder


def asked(server: Postgres, question: str) -> list[tuple[object, ...]]:
    with psycopg.connect(
        host=str(server.places.sockets), user="postgres", dbname="gatehouse", autocommit=True
    ) as link:
        cursor = link.execute(question.encode())
        return cursor.fetchall() if cursor.description else []


@pytest.mark.faults
def test_a_killed_server_starts_again_with_every_committed_row() -> None:
    with open_folder("killed") as var:
        server = Postgres(Places(var))
        server.start()
        asked(server, "CREATE TABLE words (word text)")
        asked(server, "INSERT INTO words VALUES ('kept')")
        assert server.process is not None
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait()
        again = Postgres(Places(var))
        again.start()
        try:
            assert asked(again, "SELECT word FROM words") == [("kept",)]
        finally:
            again.stop()


@pytest.mark.faults
def test_two_servers_never_share_one_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "LEAVING", 0.2)
    with open_folder("shared") as var:
        first, second = Postgres(Places(var), lossy=True), Postgres(Places(var), lossy=True)
        first.start()
        try:
            with pytest.raises(ServiceFailed, match="still uses"):
                second.start()
            assert asked(first, "SELECT 1") == [(1,)]
        finally:
            first.stop()


def test_it_offers_vectors_and_trigrams() -> None:
    with open_folder("extensions") as var:
        server = Postgres(Places(var), lossy=True)
        server.start()
        try:
            offered = (
                "SELECT name FROM pg_available_extensions WHERE name IN ('vector', 'pg_trgm') ORDER BY name"
            )
            assert asked(server, offered) == [("pg_trgm",), ("vector",)]
        finally:
            server.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason="Only root's Postgres runs as another user.")
def test_a_private_folder_of_root_stays_private(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_folder("shelter") as shelter, open_folder("private") as private:
        monkeypatch.setattr(postgres, "SHELTER", shelter)
        private.chmod(0o700)
        server = Postgres(Places(private / "var"), lossy=True)
        server.start()
        try:
            assert stat.S_IMODE(private.stat().st_mode) == 0o700
            assert (private / "var" / "postgres").resolve().parent == shelter
            assert asked(server, "SELECT 1") == [(1,)]
        finally:
            server.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason="Only root's Postgres runs as another user.")
def test_removing_var_begins_anew_for_root_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_folder("shelter") as shelter, open_folder("private") as private:
        monkeypatch.setattr(postgres, "SHELTER", shelter)
        private.chmod(0o700)
        places = Places(private / "var")
        old = shelter / places.sockets.name
        old.mkdir()
        (old / "PG_VERSION").write_text("18", encoding="ascii")
        assert Postgres(places).data == old
        assert not old.exists()
        assert len(list(shelter.glob(f"{old.name}-*"))) == 1


def test_sockets_are_private_and_short_however_long_the_folder(tmp_path: Path) -> None:
    places = Places(tmp_path / ("long" * 30))
    assert len(str(places.sockets / ".s.PGSQL.5432").encode()) < 103
    assert Places(tmp_path).sockets != places.sockets
