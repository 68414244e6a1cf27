"""The runner's thread. It is started when first needed, works beside any kind of caller, and ends with its process."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
import threading
import time
import uuid
from typing import Any, Final
from uuid import UUID

from agents.bridge import in_database
from agents.live_log import live_log_expect, live_log_forget
from agents.runner.claims import BEAT, leases_extend, next_of_thread, run_claim, stops_wanted
from agents.runner.execute import Execution
from agents.runner.log_writer import LogWriter
from agents.runner.reaper import runs_left_behind, runs_reap

log = logging.getLogger("gatehouse.runs")
STOP_EVERY: Final = 0.3
"""Seconds between two looks for stop requests from other processes."""
REAP_EVERY: Final = 5.0
SWITCH_EVERY: Final = 0.001
"""Seconds after which a thread that computes lets another one in."""


class RunnerLoop:
    """All runs of this process."""

    def __init__(self) -> None:
        self.owner = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self.process = os.getpid()
        self._ready = threading.Event()
        self._executions: dict[UUID, Execution] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._launched: set[UUID] = set()
        self._closing = False
        self._loop = asyncio.new_event_loop()
        self._writer: LogWriter
        self._thread = threading.Thread(target=self._run, name="gatehouse-runner", daemon=True)
        self._thread.start()
        self._ready.wait()

    # ── for callers in any thread ──────────────────────────────────────────
    def launch(self, run_id: UUID, *, is_new: bool = False) -> None:
        """Start a run if it is its turn. Harmless when it is not, or when it runs already. is_new: it was never launched before."""
        if is_new:
            live_log_expect(str(run_id))
        self._launched.add(run_id)
        self._loop.call_soon_threadsafe(self._spawn, run_id)

    def launch_next(self, thread_id: UUID) -> None:
        """Start what queues on a thread whose turn has become free."""
        following = next_of_thread(thread_id)
        if following is not None:
            self.launch(following)

    def stop(self, run_id: UUID) -> None:
        """Stop a run at once if it is one of this process; others see the request in the database."""
        self._loop.call_soon_threadsafe(self._stop_now, run_id)

    def wait_idle(self, timeout: float = 10.0) -> bool:
        """Wait until no run of this process goes on. For tests, and for a clean shutdown."""
        end = time.monotonic() + timeout
        while self._launched or self._executions or self._tasks:
            if time.monotonic() > end:
                return False
            time.sleep(0.005)
        return True

    def close(self, timeout: float = 5.0) -> None:
        """End every run as interrupted and stop the thread."""
        if not self._closing:
            self._closing = True
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive() and not self._closing

    # ── in the runner's thread ─────────────────────────────────────────────
    def _run(self) -> None:
        # this loop and the web server's take turns on the interpreter; with the usual 5 ms, chunks of 100 chats come late by 100 ms
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_EVERY))
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._set_up())
        self._ready.set()
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._tear_down())
            self._loop.close()

    async def _set_up(self) -> None:
        self._writer = LogWriter()
        self._watchers = [asyncio.create_task(self._repeat(seconds, work)) for seconds, work in (
            (BEAT, self._beat), (STOP_EVERY, self._look_for_stops), (REAP_EVERY, self._reap),
        )]  # fmt: skip

    async def _tear_down(self) -> None:
        for task in (*self._watchers, *self._tasks):
            task.cancel()
        await asyncio.gather(*self._watchers, *self._tasks, return_exceptions=True)
        await self._writer.close()
        await self._loop.shutdown_asyncgens()
        await self._loop.shutdown_default_executor()

    def _spawn(self, run_id: UUID) -> None:
        task = asyncio.create_task(self._start(run_id))
        self._tasks.add(task)
        self._launched.discard(run_id)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error(
                "A run could not be started or ended: %s",
                type(task.exception()).__name__,
                exc_info=task.exception(),
            )

    async def _start(self, run_id: UUID) -> None:
        """Run a run, then those that queue behind it on its thread."""
        following: UUID | None = run_id
        while following is not None and following not in self._executions:
            claim = await in_database(run_claim, run_id=following, owner=self.owner)
            if claim is None:
                if following not in self._executions:
                    live_log_forget(str(following))  # another process may run it
                return
            execution = self._executions[following] = Execution(following, self.owner, self._writer)
            try:
                await execution.go(claim.run, is_first=claim.is_first)
            finally:
                self._executions.pop(following, None)
            thread_id = claim.run.thread_id
            following = await in_database(next_of_thread, thread_id) if thread_id else None

    def _stop_now(self, run_id: UUID) -> None:
        execution = self._executions.get(run_id)
        if execution is not None:
            execution.stop()

    async def _repeat(self, seconds: float, work: Any) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await work()
            except Exception as problem:
                if isinstance(problem, RuntimeError) and "shutdown" in str(problem):
                    return  # the process is on its way out
                log.warning("The runner's %s failed: %s", work.__name__.strip("_"), type(problem).__name__)

    async def _beat(self) -> None:
        ids = list(self._executions)
        if ids:
            mine = await in_database(leases_extend, run_ids=ids, owner=self.owner)
            for run_id in set(ids) - mine:
                execution = self._executions.get(run_id)
                if execution is not None:
                    log.warning("The lease of run %s was lost.", run_id)
                    execution.stop("lease lost")

    async def _look_for_stops(self) -> None:
        if self._executions:
            for run_id in await in_database(stops_wanted, list(self._executions)):
                self._stop_now(run_id)

    async def _reap(self) -> None:
        ended = await in_database(runs_reap)
        if ended:
            log.warning("%d runs of processes that are gone were ended.", len(ended))
        for run_id in await in_database(runs_left_behind):
            if run_id not in self._executions:
                self._spawn(run_id)


_lock = threading.Lock()
_runner: RunnerLoop | None = None


def runner() -> RunnerLoop:
    """The runner of this process; started now if it is not there yet. A forked process gets its own."""
    global _runner  # noqa: PLW0603 - one per process by design
    with _lock:
        if _runner is None or _runner.process != os.getpid() or not _runner.is_alive:
            _runner = RunnerLoop()
        return _runner


def runner_close() -> None:
    """End this process's runner, if it has one: its runs are stored as they were shown."""
    with _lock:
        if _runner is not None and _runner.process == os.getpid() and _runner.is_alive:
            _runner.close()
