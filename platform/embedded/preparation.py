"""Whether an embedded database still has to be prepared: a warm start is quick because nothing is done twice.

The stamp lies in the database's own folder, so that whoever removes the data removes it too.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from embedded.places import ROOT

DECIDING = (
    "*/migrations/*.py",
    "platform/*/migrations/*.py",
    "agents/demo_data.py",
    "agents/services/demo.py",
)


def fingerprint(environment: Mapping[str, str]) -> str:
    """What preparing depends on: migrations, demo data, packages, and which providers' keys are given (not the keys)."""
    digest = hashlib.sha256((ROOT / "requirements.lock").read_bytes())
    for file in sorted(file for pattern in DECIDING for file in ROOT.glob(pattern)):
        digest.update(f"{file.relative_to(ROOT)}\0".encode())
        digest.update(file.read_bytes())
    digest.update("\0".join(sorted(name for name in environment if name.endswith("_API_KEY"))).encode())
    return digest.hexdigest()


def is_prepared(data: Path, environment: Mapping[str, str]) -> bool:
    """Whether the database in that folder was prepared by this very state of the repository."""
    try:
        return (data / "gatehouse.prepared").read_text(encoding="ascii") == fingerprint(environment)
    except OSError:
        return False


def remember(data: Path, environment: Mapping[str, str]) -> None:
    """Called when preparing went well. A stamp that cannot be written costs a second at the next start, no more."""
    with contextlib.suppress(OSError):
        (data / "gatehouse.prepared").write_text(fingerprint(environment), encoding="ascii")


def embedded_only() -> bool:
    """Whether both services are ours; given ones are checked at every start."""
    return not os.environ.get("DATABASE_URL") and not os.environ.get("REDIS_URL")
