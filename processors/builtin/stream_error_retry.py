"""Asks a provider again after an error that may pass: overload, time-outs, a stream that broke. Heeds Retry-After."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final

from pydantic import Field

from processors.engine.errors import ModelAPIError
from processors.engine.hooks import ProcessAPIErrorArgs
from processors.engine.ports import BuildContext
from processors.engine.processor import Processor
from processors.engine.registry import Options, ProcessorKind, Registry

SLUG: Final = "stream-error-retry"
PASSING: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Statuses that often pass by themselves."""


class StreamErrorRetryOptions(Options):
    """How often and after how long."""

    max_retries: int = Field(1, title="Tries", description="So often a step is tried again. The agent's own limit of retries counts too.", ge=1, le=10)  # fmt: skip
    delay: float = Field(0.5, title="First wait", description="Seconds before the first try; each further wait is twice as long.", ge=0, le=60)  # fmt: skip
    max_delay: float = Field(30.0, title="Longest wait", description="Seconds. A provider that asks for more (Retry-After) is not tried again.", ge=0, le=600)  # fmt: skip


class StreamErrorRetry(Processor):
    """Counts its tries per step. A stopped run ends the wait."""

    def __init__(self, id: str, options: StreamErrorRetryOptions) -> None:
        super().__init__(id)
        self.options = options

    async def process_api_error(self, args: ProcessAPIErrorArgs) -> dict[str, bool] | None:
        error = args.error
        if not isinstance(error, ModelAPIError) or not (error.retryable or error.status in PASSING):
            return None
        tries: dict[int, int] = args.state.setdefault("tries", {})
        tried = tries.get(args.step_number, 0)
        wait = error.retry_after if error.retry_after is not None else min(self.options.delay * 2**tried, self.options.max_delay)  # fmt: skip
        if tried >= self.options.max_retries or wait > self.options.max_delay:
            return None
        tries[args.step_number] = tried + 1
        if wait > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(args.abort_signal.wait(), wait)
        return {"retry": True}  # a run that was stopped meanwhile ends as stopped when the step begins again


def register(registry: Registry) -> None:
    def build(id: str, options: Any, context: BuildContext) -> StreamErrorRetry:
        return StreamErrorRetry(id, options)

    registry.register(ProcessorKind(
        slug=SLUG, title="Try again after errors", description="Repeats a step when the provider was overloaded, too slow, or broke off.",
        options=StreamErrorRetryOptions, factory=build, stages=frozenset({"error"}), group="Plumbing",
    ))  # fmt: skip
