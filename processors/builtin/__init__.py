"""The guardrails and helpers that come with Gatehouse, one processor a file."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from processors.engine.registry import Registry

MODULES: Final = (
    "batch_parts",
    "block_list",
    "moderation",
    "pii",
    "regex_filter",
    "token_limiter",
    "unicode_normalizer",
)
"""Modules of this package that register a kind: each has `register(registry)`. Add yours here."""


def register_all(registry: Registry) -> None:
    """Register every built-in kind. Raises ConfigError if one is registered already."""
    for name in MODULES:
        import_module(f"{__name__}.{name}").register(registry)
