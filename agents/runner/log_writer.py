"""Writes the logs of this process's runs to Redis: all runs together, in one round trip per batch."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any, Final

from redis import RedisError

from agents.live_log import LiveLog, live_log_forget, live_logs
from agents.redis_link import redis_for_loop
from agents.run_log import key_of

log = logging.getLogger("gatehouse.runs")
FLUSH_AFTER: Final = 0.012
"""Seconds that chunks are gathered before they are written."""
RETRY_AFTER: Final = 0.5
LONGEST_STREAM: Final = 20_000
"""Entries kept per run, about; an entry holds what was gathered in one batch."""
MOST_PENDING: Final = 20_000
AFTER_A_GAP: Final = 1_000_000
KEEP_RUNNING: Final = 6 * 3600
KEEP_ENDED: Final = 3600
_encode: Final = json.JSONEncoder(default=str, separators=(",", ":")).encode
LINGER: Final = 15.0
"""Seconds that an ended run's log stays in memory."""


class LogWriter:
    """One per runner. Everything here happens in the runner's event loop."""

    def __init__(self) -> None:
        self._pending: dict[str, list[tuple[int, str]]] = {}
        self._expire: dict[str, int] = {}
        self._wanted = asyncio.Event()
        self._flushed = asyncio.Condition()
        self._client = redis_for_loop()
        self._task = asyncio.create_task(self._write(), name="gatehouse-log-writer")

    async def open(self, run_id: str, *, is_first: bool, resumes: bool = False) -> RunLog:
        """The log of a run that begins (`is_first`), or goes on after a crash or a pause (`resumes`): numbers continue.

        If the log before the pause is lost, numbers begin so high that readers see the gap.
        """
        known = live_logs.get(run_id)
        if is_first:
            live = known if known is not None and not known.closed else LiveLog()
        else:
            last = max(await self._last(run_id), known.last if known is not None else 0)
            live = LiveLog(last or (AFTER_A_GAP if resumes else 0))
        live_logs[run_id] = live
        self._expire[run_id] = KEEP_RUNNING
        return RunLog(self, run_id, live)

    async def _last(self, run_id: str) -> int:
        """The number of the last chunk in Redis, 0 if there is none or Redis is away."""
        try:
            found = await asyncio.wait_for(self._client.xrevrange(key_of(run_id), count=1), 2)
        except (RedisError, OSError, TimeoutError):
            log.warning("Redis cannot be reached; the log of run %s is kept in memory for now.", run_id)
            return 0
        return int(found[0][0].split(b"-")[0]) if found else 0

    def add(self, run_id: str, number: int, text: str) -> None:
        pending = self._pending.setdefault(run_id, [])
        pending.append((number, text))
        if len(pending) > MOST_PENDING:
            del pending[0]  # a reader sees the gap and falls back to the stored messages
        self._wanted.set()

    async def ended(self, run_id: str) -> None:
        """Write what is left of a run, waiting a moment for Redis, and forget it soon."""
        self._expire[run_id] = KEEP_ENDED
        self._wanted.set()
        try:
            async with asyncio.timeout(1.0), self._flushed:
                await self._flushed.wait_for(lambda: run_id not in self._pending)
        except TimeoutError:
            log.warning("The log of run %s could not be written to Redis in time.", run_id)
        live = live_logs.get(run_id)
        if live is not None:
            live.close()
            asyncio.get_running_loop().call_later(LINGER, live_log_forget, run_id, live)

    async def close(self) -> None:
        """Stop writing."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._client.aclose()

    async def _write(self) -> None:
        while True:
            await self._wanted.wait()
            await asyncio.sleep(FLUSH_AFTER)
            self._wanted.clear()
            batch, self._pending = self._pending, {}
            try:
                await self._flush(batch)
            except (RedisError, OSError) as problem:
                log.warning("Redis cannot be reached (%s); logs are kept in memory.", type(problem).__name__)
                for run_id, entries in batch.items():
                    self._pending[run_id] = (entries + self._pending.get(run_id, []))[-MOST_PENDING:]
                await asyncio.sleep(RETRY_AFTER)
                self._wanted.set()
            async with self._flushed:
                self._flushed.notify_all()

    async def _flush(self, batch: dict[str, list[tuple[int, str]]]) -> None:
        if not batch:
            return
        async with self._client.pipeline(transaction=False) as pipe:
            for run_id, entries in batch.items():
                for run in _unbroken(entries):
                    fields: dict[Any, Any] = {
                        "n": run[0][0],
                        "c": "[" + ",".join(text for _, text in run) + "]",
                    }
                    pipe.xadd(
                        key_of(run_id), fields, id=f"{run[-1][0]}-0", maxlen=LONGEST_STREAM, approximate=True
                    )
                seconds = self._expire.pop(run_id, None)
                if seconds is not None:
                    pipe.expire(key_of(run_id), seconds)
            await pipe.execute(raise_on_error=False)


def _unbroken(entries: list[tuple[int, str]]) -> list[list[tuple[int, str]]]:
    """The entries as runs of consecutive numbers."""
    out: list[list[tuple[int, str]]] = []
    for entry in entries:
        if out and out[-1][-1][0] + 1 == entry[0]:
            out[-1].append(entry)
        else:
            out.append([entry])
    return out


class RunLog:
    """The log of one run, as its runner writes it."""

    def __init__(self, writer: LogWriter, run_id: str, live: LiveLog) -> None:
        self._writer, self.run_id, self._live = writer, run_id, live

    def append(self, wire: dict[str, Any]) -> int:
        """Number a chunk, show it to this process's readers at once and to others within a batch. Returns the number."""
        number = self._live.append(wire)
        self._writer.add(self.run_id, number, _encode(wire))
        return number

    async def end(self, status: str) -> None:
        """Write the end marker and close."""
        self.append({"type": "run-end", "runId": self.run_id, "status": status})
        await self._writer.ended(self.run_id)
