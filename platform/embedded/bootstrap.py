"""Makes `.venv` from the hash-checked locks, with the standard library only.

    python3 platform/embedded/bootstrap.py [--dev]

Run again it costs a few milliseconds: a stamp in the environment says which locks it holds.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / ".venv"
LOWEST = (3, 11)


def python_of(environment: Path) -> Path:
    """The interpreter inside a virtual environment."""
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def stamp_of(locks: list[Path]) -> str:
    """What the environment must hold: the locks' contents, the interpreter's version, and its place (scripts name it)."""
    digest = hashlib.sha256(f"{sys.version}\0{ENVIRONMENT}".encode())
    for lock in locks:
        digest.update(lock.read_bytes())
    return digest.hexdigest()


def held(stamp: str) -> bool:
    """Whether the environment is whole and holds these locks."""
    file = ENVIRONMENT / "gatehouse.stamp"
    return (
        file.exists()
        and python_of(ENVIRONMENT).exists()
        and stamp in file.read_text(encoding="utf-8").split()
    )


def make_environment() -> None:
    """A fresh environment, unless a whole one of this very Python lies here. Raises SystemExit with a sentence.

    One that was moved is made anew: its scripts name the old place.
    """
    settings = ENVIRONMENT / "pyvenv.cfg"
    version = ".".join(str(part) for part in sys.version_info[:3])
    whole = (
        python_of(ENVIRONMENT).exists()
        and settings.exists()
        and version in settings.read_text(encoding="utf-8")
    )
    made = ENVIRONMENT / "gatehouse.made"
    if whole and made.exists() and made.read_text(encoding="utf-8") == str(ENVIRONMENT):
        return
    try:
        venv.create(ENVIRONMENT, with_pip=True, clear=True)
    except subprocess.CalledProcessError as error:
        raise SystemExit(
            "This Python cannot make virtual environments. Install its venv module (Debian: apt install python3-venv), "
            "or name another Python: make run PYTHON=python3.12"
        ) from error
    made.write_text(str(ENVIRONMENT), encoding="utf-8")


def installers(python: Path, env: dict[str, str]) -> list[list[str]]:
    """uv inside the environment, which takes half a minute, then plain pip, which gets through where uv does not."""
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # Which uv does not matter: the lock decides what is installed.
    if subprocess.run([*pip, "uv"], env=env, check=False, capture_output=True).returncode:
        return [pip]
    uv = [str(python), "-m", "uv", "pip", "install", "--quiet", "--compile-bytecode", "--python", str(python)]
    return [uv, pip]


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """`make run` beside `make test` on a fresh machine: the second waits for the first."""
    ENVIRONMENT.mkdir(exist_ok=True)
    with ROOT.joinpath(".venv.lock").open("w") as handle:
        if os.name != "nt":
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def fill(main: Path, model: Path) -> None:
    """Install what the locks say. Raises SystemExit with a sentence."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPATH"] = ""
    make_environment()
    steps = (["-r", str(main)], ["--no-deps", "-r", str(model)])
    said = b""
    for command in installers(python_of(ENVIRONMENT), env):
        for step in steps:
            done = subprocess.run(
                [*command, "--require-hashes", *step], env=env, check=False, stderr=subprocess.PIPE
            )
            if done.returncode:
                said += done.stderr
                break
        else:
            return
    sys.stderr.write(said.decode(errors="replace"))
    raise SystemExit(
        "The packages could not be installed (see above). Check the connection to the package index and the free "
        "space, then try again."
    )


def install(*, dev: bool) -> None:
    """Make or refresh the environment. Raises SystemExit with a sentence when that fails."""
    runtime, model = ROOT / "requirements.lock", ROOT / "requirements-model.lock"
    main = ROOT / "requirements-dev.lock" if dev else runtime
    stamp = stamp_of([main, model])
    if held(stamp):
        return
    try:
        with one_at_a_time():
            if held(stamp):
                return
            print("Installing packages into .venv (once, about a minute) …", flush=True)
            fill(main, model)
            stamps = {stamp, stamp_of([runtime, model])}
            (ENVIRONMENT / "gatehouse.stamp").write_text("\n".join(sorted(stamps)) + "\n", encoding="utf-8")
    except OSError as error:
        raise SystemExit(
            f"Cannot write {ENVIRONMENT}: {error.strerror}. Make the folder writable, or free some space, and try again."
        ) from error


def main() -> None:
    if sys.version_info < LOWEST:
        raise SystemExit(
            f"Gatehouse needs Python 3.11 or newer; this is {sys.version.split()[0]}. "
            "Name another: make run PYTHON=python3.12"
        )
    try:
        install(dev="--dev" in sys.argv[1:])
    except KeyboardInterrupt:
        raise SystemExit("\nStopped. The next call goes on from here.") from None


if __name__ == "__main__":
    main()
