"""Every test runs against real services: an embedded Postgres and Valkey of their own, started and stopped here.

The world is locked out: a connection that would leave this machine fails the test.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "platform")]
VAR = Path(os.environ.get("GATEHOUSE_TEST_VAR") or ROOT / "var" / "test")
os.environ["GATEHOUSE_VAR"] = str(VAR)
for name in ("DATABASE_URL", "REDIS_URL", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
    os.environ.pop(name, None)

_running: list[Any] = []


def pytest_configure(config: pytest.Config) -> None:
    """Start the services once, before Django is set up."""
    from embedded.places import places
    from embedded.postgres import Postgres
    from embedded.valkey import Valkey

    where = places()
    where.var.mkdir(parents=True, exist_ok=True)
    for service in (Valkey(where), Postgres(where, lossy=True)):
        _running.append(service)
        service.start()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop them again."""
    while _running:
        _running.pop().stop()


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only Unix sockets and loopback can be reached."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        host = str(address[0]) if isinstance(address, tuple) else ""
        if host and not (host.startswith("127.") or host in {"localhost", "::1"}):
            raise AssertionError(f"A test tried to leave this machine: {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short-pathed folder of its own."""
    with tempfile.TemporaryDirectory(prefix="gh") as name:
        yield Path(name)
