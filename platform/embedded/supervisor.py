"""What `make run` starts: Postgres, Redis, migrations, demo data, a Celery worker and the web server, as one.

Ctrl-C, a termination signal or this process's death ends them all. When something cannot start, one sentence says what
to do, nothing is left half-started, and the exit code is not 0.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import IO

from embedded.children import ServiceFailed, end_with_parent, start, stop
from embedded.places import ROOT, Places, places
from embedded.preparation import embedded_only, is_prepared, remember

PATIENCE = 60.0
LONGEST_LOG = 10_000_000
"""In bytes."""


def port_check(host: str, port: int) -> None:
    """Raises ServiceFailed when somebody else listens there."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ServiceFailed(
                f"Port {port} on {host} cannot be used ({error.strerror}). "
                f"Stop what uses it, or choose another: GATEHOUSE_PORT={port + 1} make run"
            ) from error


@contextlib.contextmanager
def only_one(where: Places) -> Iterator[None]:
    """Hold the installation's lock. Raises ServiceFailed when the folder is read-only or another supervisor runs."""
    try:
        where.var.mkdir(parents=True, exist_ok=True)
        handle = (where.var / "supervisor.lock").open("w")
    except OSError as error:
        raise ServiceFailed(
            f"Cannot write {where.var}: {error.strerror}. Make the folder writable, or set GATEHOUSE_VAR to another."
        ) from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ServiceFailed(
                f"Gatehouse already runs with {where.var}. Stop it first, or set GATEHOUSE_VAR to another folder."
            ) from error
        yield


def admin_password(where: Places) -> tuple[str, bool]:
    """The generated admin password and whether it is new."""
    file = where.var / "admin-password"
    if file.exists():
        return file.read_text(encoding="ascii").strip(), False
    password = os.environ.get("GATEHOUSE_ADMIN_PASSWORD") or secrets.token_urlsafe(9)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as handle:
        handle.write(password + "\n")
    return password, True


class Interrupted(Exception):
    """Somebody asked to stop while things were still starting."""


class Supervisor:
    """The running whole. `stops` undoes what was started, last first."""

    def __init__(self, where: Places, host: str, port: int) -> None:
        self.where, self.host, self.port = where, host, port
        self.stopping = threading.Event()
        self.stops: list[Callable[[], None]] = []
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self.env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self.env["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "platform")])
        self.env["GATEHOUSE_VAR"] = str(where.var)
        self.env["PYTHONUNBUFFERED"] = "1"

    def log(self, name: str) -> IO[bytes]:
        """The log file of one child; a long one of earlier starts is put aside."""
        self.where.logs.mkdir(parents=True, exist_ok=True)
        file = self.where.logs / f"{name}.log"
        if file.exists() and file.stat().st_size > LONGEST_LOG:
            file.replace(file.with_suffix(".log.old"))
        return file.open("ab")

    def start_services(self) -> None:
        """Redis and Postgres, unless the environment names real ones."""
        if not os.environ.get("REDIS_URL"):
            from embedded.valkey import Valkey

            valkey = Valkey(self.where)
            self.stops.append(valkey.stop)
            valkey.start()
        if not os.environ.get("DATABASE_URL"):
            from embedded.postgres import Postgres

            postgres = Postgres(self.where)
            self.stops.append(postgres.stop)
            postgres.start()

    def prepare(self) -> None:
        """Migrations and demo data. Raises ServiceFailed with the last line that `embedded.prepare` said."""
        with self.log("prepare") as log:
            child = start([sys.executable, "-m", "embedded.prepare"], log=log, env=self.env, cwd=ROOT)
        self.stops.append(lambda: stop(child))
        while child.poll() is None:
            if self.stopping.wait(0.02):
                raise Interrupted
        if child.returncode:
            file = self.where.logs / "prepare.log"
            words = file.read_text(errors="replace").strip().splitlines() or [f"it said nothing in {file}"]
            raise ServiceFailed(words[-1])
        if embedded_only():
            remember(self.where.database, self.env)

    def spawn(self, name: str, *command: str, death_signal: int) -> None:
        with self.log(name) as log:
            child = start(
                [sys.executable, "-m", *command], log=log, env=self.env, cwd=ROOT, death_signal=death_signal
            )
        self.children[name] = child
        self.stops.append(lambda: stop(child, seconds=6))

    def start_web(self) -> None:
        self.spawn(
            "web", "uvicorn", "config.asgi:application", "--host", self.host, "--port", str(self.port),
            "--ws", "websockets-sansio", "--ws-per-message-deflate", "false", "--lifespan", "on",
            "--log-level", "warning", "--timeout-graceful-shutdown", "3", death_signal=signal.SIGTERM,
        )  # fmt: skip

    def start_worker(self) -> None:
        """It is told to drop its tasks when we die (SIGQUIT): their rows keep a lease, so another worker takes them."""
        self.spawn(
            "worker", "celery", "-A", "config", "worker", "--loglevel", "WARNING", "--concurrency", "2",
            "-B", "--schedule", str(self.where.var / "celery-beat"), death_signal=signal.SIGQUIT,
        )  # fmt: skip

    def start_all(self) -> None:
        """Everything, in the order that shows the first page soonest.

        A database that is prepared already lets the web server load its modules while the services start.
        """
        warm = embedded_only() and is_prepared(self.where.database, self.env)
        if warm:
            self.start_web()
        self.start_services()
        if not warm:
            self.prepare()
            self.start_web()
        self.start_worker()
        self.wait_for_web()

    def wait_for_web(self) -> None:
        """Raises ServiceFailed when the web server dies or does not answer."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if self.stopping.is_set():
                raise Interrupted
            if self.children["web"].poll() is not None:
                raise ServiceFailed(
                    f"The web server stopped while starting; see {self.where.logs / 'web.log'}."
                )
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.address}/healthz", timeout=5):  # noqa: S310
                return
            time.sleep(0.05)
        raise ServiceFailed(
            f"The web server did not answer within {PATIENCE:.0f} s; see {self.where.logs / 'web.log'}."
        )

    @property
    def address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{'127.0.0.1' if host == '0.0.0.0' else host}:{self.port}"  # noqa: S104 - compared, not bound

    def watch(self) -> str | None:
        """Wait for a signal. Returns the name of a process that ended by itself, if one did."""
        while not self.stopping.wait(0.5):
            for name, child in self.children.items():
                if child.poll() is not None:
                    return name
        return None

    def close(self) -> None:
        """Stop everything, last started first; web server and worker at the same time."""
        for child in self.children.values():
            if child.poll() is None:
                child.terminate()
        while self.stops:
            self.stops.pop()()


def announce(supervisor: Supervisor, password: str, new: bool) -> None:
    """Tell the person where to go."""
    print(f"\n  Gatehouse is ready:  {supervisor.address}/      console: {supervisor.address}/admin/")
    if new:
        print(
            f"  Sign in as admin with the password  {password}  (kept in {supervisor.where.var / 'admin-password'})"
        )
    else:
        print(f"  Sign in as admin; the password is kept in {supervisor.where.var / 'admin-password'}")
    print("  Ctrl-C stops everything.\n", flush=True)


def run(supervisor: Supervisor) -> int:
    """Start, announce, watch, stop. Returns the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: supervisor.stopping.set())
    with contextlib.suppress(Interrupted), contextlib.closing(supervisor):
        port_check(supervisor.host, supervisor.port)
        print("Starting Gatehouse …", flush=True)
        password, new = admin_password(supervisor.where)
        supervisor.env["GATEHOUSE_ADMIN_PASSWORD"] = password
        supervisor.start_all()
        announce(supervisor, password, new)
        ended = supervisor.watch()
        if ended is not None:
            raise ServiceFailed(
                f"The process {ended!r} ended by itself; see {supervisor.where.logs / f'{ended}.log'}."
            )
    return 0


def main() -> int:
    os.chdir(ROOT)
    if os.environ.get("MAKELEVEL"):
        end_with_parent()
    where = places()
    named = os.environ.get("GATEHOUSE_PORT") or "8000"
    if not named.isdecimal() or not 0 < int(named) < 65536:
        print(
            f"GATEHOUSE_PORT is {named!r}, not a port. Use a number, for example GATEHOUSE_PORT=8080.",
            file=sys.stderr,
        )
        return 2
    supervisor = Supervisor(where, os.environ.get("GATEHOUSE_HOST") or "127.0.0.1", int(named))
    try:
        with only_one(where):
            return run(supervisor)
    except ServiceFailed as failure:
        print(failure, file=sys.stderr)
        return 1
    except OSError as error:
        print(
            f"{error.strerror}: {error.filename}. Free some space or make it writable, then try again.",
            file=sys.stderr,
        )
        return 1


if __name__ == "__main__":
    sys.exit(main())
