"""Where the embedded services keep their files, and the addresses by which processes reach them.

Only the standard library: settings, tests and the supervisor all ask here, so that none needs the servers to be up.
"""

from __future__ import annotations

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
        """A generated key, made once and kept in var with mode 0600."""
        file = self.var / f"{name}.key"
        try:
            return file.read_text(encoding="ascii").strip()
        except FileNotFoundError:
            pass
        self.var.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        value = secrets.token_urlsafe(32)
        with os.fdopen(descriptor, "w", encoding="ascii") as handle:
            handle.write(value + "\n")
        return value


def places() -> Places:
    """This installation's places: GATEHOUSE_VAR, or `var/` in the repository."""
    return Places(Path(os.environ.get("GATEHOUSE_VAR") or ROOT / "var").resolve())
