"""Repeats a call that failed before its first chunk."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from typing import Any, Final, cast

from processors.engine.chunks import Chunk
from processors.engine.errors import ConfigError, ModelAPIError, RunCancelled
from processors.engine.ports import AbortSignal, LanguageModel, ModelRequest

FIRST_WAIT: Final = 0.5
LONGEST_WAIT: Final = 30.0


class RetryingModel:
    """A `LanguageModel` around another that repeats a retryable failure, as long as nothing was said yet.

    max_retries: repetitions after the first try. longest_wait: seconds; a service that asks for a longer wait with
    Retry-After is not asked again, because coming back too early only prolongs the limit.
    first_wait: seconds before the first repetition; doubled each time, with up to a quarter more by chance.
    """

    def __init__(
        self, model: LanguageModel, *, max_retries: int = 2, longest_wait: float = LONGEST_WAIT,
        first_wait: float = FIRST_WAIT,
    ) -> None:  # fmt: skip
        if max_retries < 0:
            raise ConfigError("The number of retries cannot be negative. Use 0 for none.")
        self._model, self._max_retries = model, max_retries
        self._longest_wait, self._first_wait = longest_wait, first_wait

    @property
    def id(self) -> str:
        return self._model.id

    async def stream(
        self, request: ModelRequest, *, signal: AbortSignal | None = None
    ) -> AsyncIterator[Chunk]:
        """As the model's own; its last failure is raised when no repetition helped."""
        retries = 0
        while True:
            said = False
            try:
                source = cast("Any", self._model.stream(request, signal=signal))
                async with aclosing(source):
                    async for chunk in source:
                        said = True
                        yield chunk
                return
            except ModelAPIError as problem:
                wait = self._wait_after(problem, retries)
                if said or wait is None:
                    raise
            retries += 1
            await _pause(wait, signal)

    def _wait_after(self, problem: ModelAPIError, retries: int) -> float | None:
        """Seconds before the next try; None for no further try."""
        if not problem.retryable or retries >= self._max_retries:
            return None
        if problem.retry_after is not None:
            return problem.retry_after if problem.retry_after <= self._longest_wait else None
        grown = self._first_wait * float(2**retries) * random.uniform(1.0, 1.25)  # noqa: S311  spreads callers
        return min(grown, self._longest_wait)


async def _pause(seconds: float, signal: AbortSignal | None) -> None:
    if signal is None:
        await asyncio.sleep(seconds)
        return
    with suppress(TimeoutError):
        await asyncio.wait_for(signal.wait(), seconds)
    if signal.aborted:
        raise RunCancelled(f"The run was stopped: {signal.reason}.")
