"""One local model for the installation, whoever asks, and none left behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded import local_model
from embedded.local_model import LocalModelUnavailable, ensure_local_model
from embedded.places import Places
from tests.embedded.house import ROOT, environment, free_port, open_folder

ASK = "from embedded.local_model import ensure_local_model; print(ensure_local_model(), flush=True)"
WAIT = f"{ASK}; import time; time.sleep(120)"


@pytest.fixture(scope="module")
def var() -> Iterator[Path]:
    with open_folder("model") as folder:
        yield folder


def started(var: Path, code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment(var, free_port()),
        stdout=subprocess.PIPE,
        text=True,
    )


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.slow
@pytest.mark.faults
def test_processes_that_ask_at_once_share_one_server_that_ends_with_its_starter(var: Path) -> None:
    both = [started(var, WAIT), started(var, WAIT)]
    try:
        addresses = {first_line(process) for process in both}
        assert len(addresses) == 1
        address = addresses.pop()
        assert answer(address)
        server = int((var / "local-model.address").read_text(encoding="ascii").split()[0])
    finally:
        for process in both:
            process.send_signal(signal.SIGKILL)
            process.communicate()
    assert gone(server)


def answer(address: str) -> str:
    body = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 4, "temperature": 0}
    request = urllib.request.Request(
        f"{address}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        return str(json.load(reply)["choices"][0]["message"]["content"])


def gone(pid: int) -> bool:
    """Whether the process ends within ten seconds."""
    for _ in range(100):
        with contextlib.suppress(OSError):
            state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(") ", 1)[1][0]
            if state != "Z":
                time.sleep(0.1)
                continue
        return True
    return False


def test_an_address_left_by_a_dead_process_is_not_believed(var: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    (var / "local-model.address").write_text(f"{dead.pid} http://127.0.0.1:1\n", encoding="ascii")
    assert local_model._running(Places(var)) is None
    (var / "local-model.address").write_text(f"{os.getpid()} http://127.0.0.1:1\n", encoding="ascii")
    assert local_model._running(Places(var)) is None


def test_without_its_weights_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_model.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(LocalModelUnavailable, match="Run `make install` again, or choose another model"):
        ensure_local_model(Places(tmp_path))
