"""The guardrails and helpers that come with Gatehouse, one processor a file."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from processors.engine.registry import Registry

MODULES: Final = (
    "allow_list",
    "batch_parts",
    "block_list",
    "groundedness",
    "injection_judge",
    "instruction_block",
    "json_schema",
    "language",
    "length_limit",
    "link_guard",
    "model_selection",
    "moderation",
    "personal_data_judge",
    "pii",
    "policy_judge",
    "prefill_error_handler",
    "prompt_injection",
    "provider_history",
    "rate_limit",
    "regex_filter",
    "response_cache",
    "secrets",
    "stream_error_retry",
    "structured_output",
    "system_prompt",
    "system_prompt_judge",
    "token_cost_control",
    "token_limiter",
    "tool_access",
    "tool_arguments",
    "tool_call_filter",
    "tool_search",
    "topic_rules",
    "unicode_normalizer",
)
"""Modules of this package that register a kind: each has `register(registry)`. Add yours here."""


def register_all(registry: Registry) -> None:
    """Register every built-in kind. Raises ConfigError if one is registered already."""
    for name in MODULES:
        import_module(f"{__name__}.{name}").register(registry)
