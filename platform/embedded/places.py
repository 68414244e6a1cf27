"""Where the embedded services keep their files, and the addresses by which processes reach them.

Only the standard library: settings, tests and the supervisor all ask here, so that none needs the servers to be up.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[2]
LONGEST_SOCKET_PATH = 100
"""Unix sockets take about 103 bytes; Postgres adds a file name of 16."""


@dataclass(frozen=True, slots=True)
class Places:
    """The folders and sockets of one installation. `var` holds everything that is kept."""

    var: Path

    @property
    def sockets(self) -> Path:
        """A folder for sockets: inside var, or a short private one.

        Short when var's path is too long for a socket, and for root, whose Postgres runs as another user and may not
        be able to walk down to var.
        """
        inside = self.var / "run"
        if os.geteuid() and len(str(inside).encode()) + len("/.s.PGSQL.5432") < LONGEST_SOCKET_PATH:
            return inside
        digest = hashlib.sha256(str(self.var).encode()).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"gatehouse-{os.getuid()}-{digest}"

    @property
    def database(self) -> Path:
        return self.var / "postgres"

    @property
    def redis_socket(self) -> Path:
        return self.sockets / "redis.sock"

    @property
    def logs(self) -> Path:
        return self.var / "log"

    @property
    def database_url(self) -> str:
        return f"postgresql://postgres@/gatehouse?host={quote(str(self.sockets))}"

    @property
    def redis_url(self) -> str:
        return f"unix://{self.redis_socket}"

    def secret(self, name: str) -> str:
        """A generated key, made once and kept in var with mode 0600. Raises SystemExit when it cannot be kept.

        Several processes may ask at the same time: the first one's key appears whole, or not at all.
        """
        file = self.var / f"{name}.key"
        try:
            if not file.exists():
                self._keep_secret(file, secrets.token_urlsafe(32))
            return file.read_text(encoding="ascii").strip()
        except OSError as error:
            raise SystemExit(
                f"Cannot keep a generated key in {file}: {error.strerror}. Make the folder writable, set GATEHOUSE_VAR "
                "to another, or give SECRET_KEY and GATEHOUSE_ENCRYPTION_KEY."
            ) from error

    def _keep_secret(self, file: Path, value: str) -> None:
        self.var.mkdir(parents=True, exist_ok=True)
        whole = file.with_suffix(f".{os.getpid()}")
        descriptor = os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="ascii") as handle:
                handle.write(value + "\n")
            with contextlib.suppress(FileExistsError):
                os.link(whole, file)
        finally:
            whole.unlink()


def places() -> Places:
    """This installation's places: GATEHOUSE_VAR, or `var/` in the repository."""
    return Places(Path(os.environ.get("GATEHOUSE_VAR") or ROOT / "var").resolve())
