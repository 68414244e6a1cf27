"""A whole Gatehouse in its own folder, started as `make run` does, for tests that must see it from outside."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from embedded.places import Places

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 90.0


def free_port() -> int:
    """A port of this machine that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(var: Path, port: int, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a person's shell would hold, and where this house lives."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GATEHOUSE_", "MAKE", "PYTEST"))
    }
    paths = os.pathsep.join([str(ROOT), str(ROOT / "platform")])
    mine = {
        "PYTHONPATH": paths,
        "GATEHOUSE_VAR": str(var),
        "GATEHOUSE_PORT": str(port),
        "GATEHOUSE_HOST": "127.0.0.1",
    }
    return {**kept, **mine, **(extra or {})}


def start(var: Path, port: int, extra: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """The supervisor, with what it prints on a pipe."""
    return subprocess.Popen(
        [sys.executable, "-m", "embedded.supervisor"],
        cwd=ROOT, env=environment(var, port, extra), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


@contextlib.contextmanager
def open_folder(name: str) -> Iterator[Path]:
    """A folder that other users can walk to, as an ordinary checkout is, removed in the end."""
    with tempfile.TemporaryDirectory(prefix="gh") as outer:
        Path(outer).chmod(0o755)
        inner = Path(outer) / name
        inner.mkdir()
        yield inner


def processes_of(var: Path) -> list[str]:
    """Command lines of the living processes whose environment or arguments name this house."""
    found, sockets = [], str(Places(var).sockets)
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                command = (
                    (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                )
                named = f"GATEHOUSE_VAR={var}\0".encode() in (entry / "environ").read_bytes()
                if command and (named or str(var) in command or sockets in command):
                    found.append(command)
    return found


def until_gone(var: Path, seconds: float = 15) -> list[str]:
    """Wait until no process of the folder lives. Returns those that stayed."""
    deadline = time.monotonic() + seconds
    while (left := processes_of(var)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


@dataclass(frozen=True, slots=True)
class House:
    """One that runs."""

    var: Path
    port: int
    process: subprocess.Popen[str]
    said: str

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def password(self) -> str:
        """Of `admin` and of `alice`."""
        return (self.var / "admin-password").read_text(encoding="ascii").strip()

    @classmethod
    @contextlib.contextmanager
    def started(cls, var: Path, extra: Mapping[str, str] | None = None) -> Iterator[House]:
        """Start one, wait until it says that it is ready, and stop it in the end."""
        port = free_port()
        process = start(var, port, extra)
        try:
            yield cls(var, port, process, until_ready(process))
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)


def until_ready(process: subprocess.Popen[str]) -> str:
    """What it printed until it was ready. Raises AssertionError with its words when it ends before."""
    said, deadline = "", time.monotonic() + PATIENCE
    assert process.stdout is not None
    while time.monotonic() < deadline:
        line = process.stdout.readline()
        said += line
        if "Ctrl-C stops everything" in line:
            return said
        if not line:
            break
    raise AssertionError(f"Gatehouse did not start: {said}")


def shown_password(said: str) -> str | None:
    """The generated password, when it was printed."""
    found = re.search(r"with the password {2}(\S+)", said)
    return found[1] if found else None
