"""A configured guardrail as JSON: what a published version keeps of it. Secrets stay behind in the guardrail's own row."""

from __future__ import annotations

from typing import Any

from pydantic import SecretStr

from processors.engine.registry import registry
from processors.models import Processor


def processor_snapshot(processor: Processor) -> dict[str, Any]:
    """{"slug", "name", "kind", "options", "on_error", "public_message", "severity"}; secret options are left out."""
    secret = secret_options(processor.kind)
    options = processor.options if isinstance(processor.options, dict) else {}
    return {
        "slug": processor.slug, "name": processor.name, "kind": processor.kind,
        "options": {name: value for name, value in options.items() if name not in secret}, "on_error": str(processor.on_error),
        "public_message": processor.public_message, "severity": str(processor.severity),
    }  # fmt: skip


def secret_options(kind: str) -> frozenset[str]:
    """Names of a kind's options that hold secrets (annotated as `SecretStr`)."""
    if kind not in registry:
        return frozenset()
    return frozenset(
        name
        for name, one in registry.get(kind).options.model_fields.items()
        if SecretStr in _types(one.annotation)
    )


def _types(annotation: Any) -> tuple[Any, ...]:
    return (annotation, *getattr(annotation, "__args__", ()))
