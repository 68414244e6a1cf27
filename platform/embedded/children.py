"""Child processes that cannot outlive us."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

PR_SET_PDEATHSIG = 1


class ServiceFailed(Exception):
    """A service could not start; the message says why and what to do."""


def die_with_parent(signal_number: int = signal.SIGINT) -> Callable[[], None]:
    """A function for the child: its own session, and a signal when the parent dies, however it dies (Linux)."""

    def prepare() -> None:
        os.setsid()
        _signal_me_when_the_parent_dies(signal_number)

    return prepare


def end_with_parent() -> None:
    """Ask for SIGTERM when our own parent dies: `make`, killed, must not leave the whole house running."""
    _signal_me_when_the_parent_dies(signal.SIGTERM)


def _signal_me_when_the_parent_dies(signal_number: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal_number)


def start(
    command: Sequence[str | Path],
    *,
    log: IO[bytes] | int,
    env: Mapping[str, str] | None = None,
    user: str | None = None,
    cwd: Path | None = None,
    death_signal: int = signal.SIGINT,
) -> subprocess.Popen[bytes]:
    """Start a child in its own session that dies with this process."""
    account: dict[str, Any] = {}
    if user is not None:
        entry = pwd.getpwnam(user)
        account = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    return subprocess.Popen(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=dict(env) if env else None, cwd=cwd,
        preexec_fn=die_with_parent(death_signal), **account,  # noqa: PLW1509 - nothing but system calls
    )  # fmt: skip


def stop(
    process: subprocess.Popen[bytes], *, signal_number: int = signal.SIGTERM, seconds: float = 10
) -> None:
    """Ask a child to stop, insist after a while, and leave none of its own children."""
    if process.poll() is None:
        process.send_signal(signal_number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
    # Its group: a child that was told to stop while it was forking may have left somebody behind.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
