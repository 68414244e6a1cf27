"""`make run`: it starts as one, it ends as one, and a second start is quick."""

from __future__ import annotations

import http.client
import os
import signal
import stat
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.embedded.house import (
    House,
    free_port,
    open_folder,
    processes_of,
    shown_password,
    start,
    until_gone,
    until_ready,
)

pytestmark = [pytest.mark.slow, pytest.mark.faults]


def page(address: str) -> tuple[int, str]:
    with urllib.request.urlopen(address, timeout=10) as answer:
        return answer.status, answer.read().decode()


def test_a_whole_house_serves_its_first_page(house: House) -> None:
    status, text = page(f"{house.address}/")
    assert status == 200
    assert 'name="password"' in text
    assert page(f"{house.address}/readyz")[0] == 200


def test_the_password_is_shown_once_and_kept_closed(house: House) -> None:
    assert shown_password(house.said) == house.password
    assert stat.S_IMODE((house.var / "admin-password").stat().st_mode) == 0o600
    assert {stat.S_IMODE(file.stat().st_mode) for file in house.var.glob("*.key")} == {0o600}


def test_no_page_loads_without_its_policy(house: House) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", house.port, timeout=10)
    connection.request("GET", "/accounts/login/")
    policy = connection.getresponse().headers["Content-Security-Policy"]
    connection.close()
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy


def test_a_second_house_in_the_same_folder_is_told_and_the_first_goes_on(house: House) -> None:
    second = start(house.var, house.port + 1)
    said, _ = second.communicate(timeout=30)
    assert second.returncode == 1
    assert "Gatehouse already runs with" in said
    assert page(f"{house.address}/healthz")[0] == 200


def test_a_port_in_use_is_named_before_anything_starts(house: House, tmp_path: Path) -> None:
    other = start(tmp_path, house.port)
    said, _ = other.communicate(timeout=30)
    assert other.returncode == 1
    assert f"Port {house.port} on 127.0.0.1 cannot be used" in said
    assert f"GATEHOUSE_PORT={house.port + 1}" in said
    assert not (tmp_path / "postgres").exists()
    assert processes_of(tmp_path) == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_however_it_ends_no_process_is_left_and_the_next_start_is_warm(
    how: signal.Signals, warm: Path
) -> None:
    with House.started(warm) as running:
        assert len(processes_of(warm)) >= 5
        os.kill(running.process.pid, how)
        running.process.wait(timeout=30)
        assert until_gone(warm) == []
        assert running.process.returncode == (-how if how == signal.SIGKILL else 0)


def test_stopping_while_it_starts_leaves_nothing(warm: Path) -> None:
    process = start(warm, free_port())
    time.sleep(0.7)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert until_gone(warm) == []


@pytest.fixture(scope="module")
def warm() -> Iterator[Path]:
    """A folder with a space and umlauts in its name, and so long that no socket fits; it is started several times."""
    with open_folder("a house with späces " + "long" * 20) as folder:
        yield folder


def test_a_killed_web_server_ends_the_house_with_a_sentence(warm: Path) -> None:
    port = free_port()
    process = start(warm, port)
    until_ready(process)
    web = next(
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit()
        and b"uvicorn\0config.asgi" in _command(entry)
        and str(port).encode() in _command(entry)
    )
    os.kill(web, signal.SIGKILL)
    said, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "The process 'web' ended by itself" in said
    assert until_gone(warm) == []


def _command(entry: Path) -> bytes:
    try:
        return (entry / "cmdline").read_bytes()
    except OSError:
        return b""
