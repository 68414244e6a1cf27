"""Rows that come in packages."""

from __future__ import annotations

from typing import Any


def corpus_rows() -> list[dict[str, Any]]:
    """bastioncorpus: {"text", "attack", "type", "language", "kind"}."""
    from bastioncorpus import load_corpus

    return [
        {"text": row.text, "attack": row.is_malicious, "type": "indirect" if row.channel == "tool_output" else "direct", "language": row.lang, "kind": row.category}
        for row in load_corpus()
    ]  # fmt: skip
