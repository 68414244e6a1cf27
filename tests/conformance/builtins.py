"""The built-in processors that cases use, by the reference's names."""

from __future__ import annotations

from typing import Any

import pytest

from processors import builtin
from processors.engine.ports import BuildContext
from processors.engine.registry import Registry

SLUGS = {
    "unicode_normalizer": "unicode-normalizer",
    "token_limiter": "token-limiter",
    "batch_parts": "batch-parts",
    "tool_call_filter": "tool-call-filter",
    "regex_filter": "regex-filter",
    "moderation": "moderation",
    "pii_detector": "pii-detector",
    "prompt_injection_detector": "prompt-injection-detector",
    "system_prompt_scrubber": "system-prompt-scrubber",
    "language_detector": "language-detector",
    "token_cost_control": "token-cost-control",
    "response_cache": "response-cache",
    "stream_error_retry": "stream-error-retry",
}


def built_in(value: dict[str, Any], aux: dict[str, Any], cost_report: Any) -> Any:
    """The processor a case names; the case is skipped with the reason while its kind is not built."""
    registry = Registry()
    builtin.register_all(registry)
    slug = SLUGS[value["builtin"]]
    if slug not in registry:
        pytest.skip(f"the built-in {slug!r} is not part of this version")
    return registry.build(slug, value["id"], value.get("options", {}), BuildContext())
