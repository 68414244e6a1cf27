"""Reads the evaluation data: the files of this folder or of `DATA=folder`, and two packages."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "data"


def folder() -> Path:
    """Where the files are. Raises SystemExit for a folder that does not exist."""
    chosen = Path(os.environ.get("DATA") or HERE)
    if not chosen.is_dir():
        raise SystemExit(
            f"There is no folder {chosen}; set DATA to a folder with files such as pii_even.jsonl."
        )
    return chosen


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of all files whose name begins so, such as `pii`. Empty if there are none."""
    found: list[dict[str, Any]] = []
    for file in sorted(folder().glob(f"{name}*.jsonl")):
        with file.open(encoding="utf-8") as lines:
            found += [json.loads(line) for line in lines if line.strip()]
    return found


def corpus_rows() -> list[dict[str, Any]]:
    """bastioncorpus: {"text", "attack", "from_tool", "language", "kind"}."""
    from bastioncorpus import load_corpus

    return [
        {"text": row.text, "attack": row.is_malicious, "from_tool": row.channel == "tool_output", "language": row.lang, "kind": row.category}
        for row in load_corpus()
    ]  # fmt: skip


def agent_bench_rows() -> list[dict[str, Any]]:
    """agent-injection-bench: what is injected, and its controls, which say nothing to the agent."""
    text = resources.files("aib").joinpath("data/attacks.jsonl").read_text(encoding="utf-8")
    return list(_agent_bench(text))


def _agent_bench(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        row = json.loads(line)
        attack = "control" not in f"{row.get('family')} {row['id']}" and row["success"]["kind"] != "refusal"
        yield {"text": row["injected"], "attack": attack, "from_tool": row["channel"] != "user_message"}
