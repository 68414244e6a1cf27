"""Chooses a test run's own folder before Django's settings are read; loaded with `-p` because conftest comes too late."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "platform")]
SEVERAL_AT_ONCE = 20
FROM_OUTSIDE = (
    "DATABASE_URL", "REDIS_URL", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "MISTRAL_API_KEY",
    "GROQ_API_KEY", "OPENROUTER_API_KEY", "SECRET_KEY", "GATEHOUSE_ENCRYPTION_KEY", "GATEHOUSE_HTTPS", "DJANGO_DEBUG",
    "GATEHOUSE_METRICS_TOKEN", "GATEHOUSE_STATIC_ROOT", "ALLOWED_HOSTS", "http_proxy", "https_proxy", "HTTP_PROXY",
    "HTTPS_PROXY", "ALL_PROXY", "all_proxy",
)  # fmt: skip


def _own_folder() -> tuple[Path, IO[str]]:
    """A folder that no other test run on this checkout uses now, locked for as long as this process lives."""
    import fcntl

    chosen = os.environ.get("GATEHOUSE_TEST_VAR")
    candidates = (
        [Path(chosen)] if chosen else [ROOT / "var" / f"test-{number}" for number in range(SEVERAL_AT_ONCE)]
    )
    for folder in candidates:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "tests.lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            continue
        return folder, lock
    raise pytest.UsageError(
        f"Other test runs use {candidates[-1]}. Wait for them, or set GATEHOUSE_TEST_VAR."
    )


def pytest_unconfigure(config: pytest.Config) -> None:
    """Give the folder back; conftest, registered later, has stopped its services before."""
    while _locks:
        _locks.pop().close()


_locks: list[IO[str]] = []
for _name in FROM_OUTSIDE:
    os.environ.pop(_name, None)
if "PYTEST_XDIST_WORKER" not in os.environ:
    _folder, _lock = _own_folder()
    _locks.append(_lock)
    os.environ["GATEHOUSE_VAR"] = str(_folder)
