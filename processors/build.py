"""From a configured guardrail to the processor that runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from accounts.secrets import SecretUnreadable, derived_key, unseal
from processors.engine.errors import ConfigError
from processors.engine.hooks import Stage
from processors.engine.ports import BuildContext
from processors.engine.processor import ChainEntry
from processors.engine.registry import registry
from processors.models import Processor
from processors.shared import shared_processors
from processors.snapshot import secret_options

_factory: Callable[[], BuildContext] | None = None


def context_factory_set(factory: Callable[[], BuildContext]) -> None:
    """Higher layers say here what processors get (models, cache, costs)."""
    global _factory  # noqa: PLW0603 - set once when the applications are ready
    _factory = factory


def build_context() -> BuildContext:
    """What a processor may ask the platform for, with this installation's key for hashes."""
    context = _factory() if _factory is not None else BuildContext()
    context.hash_key = derived_key("evidence")
    return context


def build_entry(
    snapshot_item: dict[str, Any], stage: Stage, context: BuildContext, *, mandatory: bool = False
) -> ChainEntry:
    """The chain entry of a guardrail's snapshot. Raises ConfigError with a sentence that names the guardrail."""
    name, slug = snapshot_item.get("name") or snapshot_item["slug"], snapshot_item["slug"]
    try:
        kind = registry.get(snapshot_item["kind"])
        if stage not in kind.stages:
            raise ConfigError(f"It has nothing to do in the {stage} chain. Take it out there.")
        options = opened_options(slug, kind.slug, snapshot_item.get("options") or {})
        processor = shared_processors.built(kind, slug, options, context)
    except ValidationError as problem:
        raise ConfigError(
            f"The guardrail “{name}” has settings that no longer fit: {first_sentence(problem)}"
        ) from problem
    except (ConfigError, SecretUnreadable) as problem:
        raise ConfigError(f"The guardrail “{name}” cannot run: {problem}") from problem
    on_error: Any = "block" if kind.redacts else snapshot_item.get("on_error", "block")
    origin = {
        "slug": slug, "name": snapshot_item.get("name", ""), "kind": kind.slug, "severity": snapshot_item.get("severity", "medium"),
        "public_message": snapshot_item.get("public_message", ""), "mandatory": mandatory,
    }  # fmt: skip
    group = getattr(processor, "group", None)  # readers say so that they may stand beside each other
    return ChainEntry(processor, on_error=on_error, mandatory=mandatory, group=group, origin=origin)


def opened_options(slug: str, kind: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options with their secrets, which are read from the guardrail's row now. Raises SecretUnreadable."""
    secret = secret_options(kind)
    if not secret:
        return dict(options)
    stored = Processor.objects.filter(slug=slug).values_list("options", flat=True).first() or {}
    found = {name: unseal(str(stored[name])) for name in secret if stored.get(name)}
    return {**{name: value for name, value in options.items() if name not in secret}, **found}


def snapshot_problem(snapshot_item: dict[str, Any]) -> str:
    """Why a guardrail cannot be built, empty if it can. Whatever its factory raises is a reason, not a crash."""
    try:
        kind = registry.get(snapshot_item["kind"])
        kind.options.model_validate(
            opened_options(snapshot_item["slug"], kind.slug, snapshot_item.get("options") or {})
        )
    except ValidationError as problem:
        return first_sentence(problem)
    except (ConfigError, SecretUnreadable, ValueError) as problem:
        return str(problem)
    return ""


def first_sentence(problem: ValidationError) -> str:
    """The first thing wrong, with the option's name; never the value, which may be a secret."""
    first = problem.errors(include_input=False, include_url=False)[0]
    where = " → ".join(str(one) for one in first["loc"])
    return f"{where}: {first['msg']}." if where else f"{first['msg']}."
