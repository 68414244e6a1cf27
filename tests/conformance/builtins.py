"""The built-in processors that cases use, by the reference's names."""

from __future__ import annotations

from typing import Any

from processors import builtin
from processors.engine.ports import BuildContext
from processors.engine.registry import Registry
from tests.conformance.probes import Case, callback_of

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

JUDGED = {
    "pii-detector": "personal-data-judge",
    "prompt-injection-detector": "injection-judge",
    "system-prompt-scrubber": "system-prompt-judge",
}
"""Kinds that ask a model here, beside those that find by format: a case with a private model means these."""

NOT_OURS = frozenset({
    "model", "threshold", "instructions", "include_detections", "include_scores", "include_breakdown", "buffer_size",
    "stream_carryover_size", "include_redacted_values", "chunk_window", "structured_output_options", "provider_options",
    "translation_quality", "bust", "key",
})  # fmt: skip
"""Options of the reference that a kind may lack here: what we find by format needs no model, no score and no window."""


class CaseCache:
    """The in-memory cache of a case."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    async def get(self, key: str) -> Any:
        return self.values.get(key)

    async def set(self, key: str, value: Any, *, ttl: float) -> None:
        self.values[key] = value


class CaseCosts:
    """A cost store that answers what the case says."""

    def __init__(self, report: dict[str, Any]) -> None:
        self.report = report

    async def spent(self, *, scope: str, key: str, window_seconds: float | None) -> dict[str, float]:
        return {"cost": self.report["estimated_cost"]}


def options_of(value: Any, aux: dict[str, Any]) -> Any:
    """Options with what the case only names: auxiliary models and patterns."""
    if isinstance(value, list):
        return [options_of(one, aux) for one in value]
    if not isinstance(value, dict):
        return value
    if "$model" in value:
        return aux[value["$model"]]
    if "$regex" in value:
        flags = f"(?{value['flags'].replace('g', '')})" if value.get("flags", "").replace("g", "") else ""
        return flags + value["$regex"]
    return {
        key: options_of(one, aux)
        for key, one in value.items()
        if not (isinstance(one, dict) and "$cache" in one)
    }


def built_in(case: Case, value: dict[str, Any], aux: dict[str, Any], cost_report: Any) -> Any:
    """The processor a case names. Raises ConfigError when its kind is gone."""
    registry = Registry()
    builtin.register_all(registry)
    slug = SLUGS[value["builtin"]]
    if "model" in value.get("options", {}):
        slug = JUDGED.get(slug, slug)
    context = BuildContext(cache=CaseCache(), costs=CaseCosts(cost_report) if cost_report else None)
    known = registry.get(slug).options.model_fields
    options = options_of(value.get("options", {}), aux)
    options = {name: one for name, one in options.items() if name in known or name not in NOT_OURS}
    processor = registry.build(slug, value["id"], options, context)
    if value.get("on_violation"):
        processor.on_violation = callback_of(case, value["on_violation"])
    return processor
