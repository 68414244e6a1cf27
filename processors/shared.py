"""Built guardrails, kept: compiling patterns takes tens of milliseconds, and each run would do it anew.

Only our own kinds are shared between runs, because we know that their objects hold configuration only; those of other packages
are built for every run. A guardrail that asked for a model while it was built is not kept either: its credential may change.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from dataclasses import replace
from typing import Any, Final

from processors.engine.errors import ConfigError
from processors.engine.ports import BuildContext, LanguageModel
from processors.engine.processor import Processor
from processors.engine.registry import ProcessorKind

MOST: Final = 256
OURS: Final = "processors.builtin."


class SharedProcessors:
    """The most recently used ones, by kind, name and options."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[ProcessorKind, Processor]] = OrderedDict()
        self._lock = threading.Lock()

    def built(
        self, kind: ProcessorKind, id: str, options: dict[str, Any], context: BuildContext
    ) -> Processor:
        """A processor of these options, kept or new. Raises ConfigError, pydantic.ValidationError."""
        if not kind.factory.__module__.startswith(OURS):
            return kind.factory(id, kind.options.model_validate(options), context)
        key = self._key(kind, id, options, context)
        with self._lock:
            found = self._kept.get(key)
            if found is not None and found[0] is kind:
                self._kept.move_to_end(key)
                return found[1]
        asked: list[str] = []
        processor = kind.factory(id, kind.options.model_validate(options), _watched(context, asked))
        if not asked:
            with self._lock:
                self._kept[key] = (kind, processor)
                while len(self._kept) > MOST:
                    self._kept.popitem(last=False)
        return processor

    @staticmethod
    def _key(kind: ProcessorKind, id: str, options: dict[str, Any], context: BuildContext) -> str:
        text = json.dumps([kind.slug, id, options, context.hash_key.hex()], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()


def _watched(context: BuildContext, asked: list[str]) -> BuildContext:
    """The context, with a note of every model that is asked for."""
    models = context.models

    def resolve(model_id: str) -> LanguageModel:
        asked.append(model_id)
        if models is None:
            raise ConfigError(f"There is no way to reach the model {model_id!r} here.")
        return models(model_id)

    return replace(context, models=resolve if models is not None else None)


shared_processors = SharedProcessors()
