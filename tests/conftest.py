"""Every test runs against real services: an embedded Postgres and Valkey of their own, started and stopped here.

The world is locked out: a connection that would leave this machine fails the test. Services end with this process, also
when it is killed.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings as property_settings

from tests.embedded.house import House, open_folder

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "platform")]
CHROMIUM_ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
# Everywhere else the properties look at new examples each time; a verdict must not depend on luck.
property_settings.register_profile("same-examples", derandomize=True, deadline=None)
if os.environ.get("CI"):
    property_settings.load_profile("same-examples")

_running: list[Any] = []


def pytest_configure(config: pytest.Config) -> None:
    """Start the services once, before Django is set up."""
    if hasattr(config, "workerinput"):
        return
    from embedded.children import ServiceFailed
    from embedded.places import places
    from embedded.postgres import Postgres
    from embedded.valkey import Valkey

    where = places()
    try:
        for service in (Valkey(where), Postgres(where, lossy=True)):
            _running.append(service)
            service.start()
    except ServiceFailed as failure:
        pytest_unconfigure(config)
        raise pytest.UsageError(str(failure)) from failure


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop them again, and before them whatever in this process still talks to them."""
    runner = getattr(sys.modules.get("agents.runner.loop"), "_runner", None)
    if runner is not None and runner.is_alive:
        runner.close()
        from django.db import connection

        connection.close_pool()
    while _running:
        _running.pop().stop()


@pytest.fixture(autouse=True, scope="session")
def quick_passwords() -> None:
    """Real password hashing is slow on purpose; tests make many people."""
    from django.conf import settings

    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def stays_here(host: Any) -> bool:
    """Whether an address names this machine."""
    name = host.decode() if isinstance(host, bytes) else host
    return name in {None, "", "localhost", "::1", "::", "0.0.0.0", "testserver"} or str(name).startswith(
        "127."
    )


@pytest.fixture(autouse=True)
def english_again() -> Iterator[None]:
    """A request's language stays with its thread in tests; the next test begins in English."""
    from django.utils import translation

    yield
    translation.deactivate_all()


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only Unix sockets and loopback can be reached, and no foreign name is looked up."""
    connect, connect_ex, look_up = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def refuse(host: Any) -> None:
        if not stays_here(host):
            raise AssertionError(f"A test tried to leave this machine: {host}")

    def guarded(self: socket.socket, address: Any) -> None:
        refuse(address[0] if isinstance(address, tuple) else None)
        connect(self, address)

    def guarded_ex(self: socket.socket, address: Any) -> int:
        refuse(address[0] if isinstance(address, tuple) else None)
        return connect_ex(self, address)

    def guarded_look_up(host: Any, *arguments: Any, **named: Any) -> Any:
        if not stays_here(host) and not str(host)[:1].isdigit():
            raise socket.gaierror(socket.EAI_NONAME, f"Tests look no foreign name up: {host}")
        return look_up(host, *arguments, **named)

    monkeypatch.setattr(socket.socket, "connect", guarded)
    monkeypatch.setattr(socket.socket, "connect_ex", guarded_ex)
    monkeypatch.setattr(socket, "getaddrinfo", guarded_look_up)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short-pathed folder of its own."""
    with tempfile.TemporaryDirectory(prefix="gh") as name:
        yield Path(name)


@pytest.fixture(scope="session")
def house() -> Iterator[House]:
    """A whole Gatehouse as `make run` starts it: services, demo data, web server and worker."""
    with open_folder("house") as var, House.started(var) as running:
        yield running


def chromium() -> str | None:
    """The system's browser, or the one that GATEHOUSE_CHROMIUM names."""
    named = [os.environ.get("GATEHOUSE_CHROMIUM") or "chromium", "chromium-browser", "google-chrome"]
    return next((path for name in named if (path := shutil.which(name))), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium (Playwright's synchronous API). Skips when there is none.

    Once a module: its event loop occupies this thread, so that no async test can run before it is closed.
    """
    path = chromium()
    if path is None:
        pytest.skip(
            "No Chromium on this machine (Debian: apt install chromium), so browser tests cannot run."
        )
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=list(CHROMIUM_ARGUMENTS))
        yield opened
        opened.close()
