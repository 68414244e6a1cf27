"""Tools that run at once: in a thread beside the event loop, so that a slow one holds up nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from agents.loop.tools import ToolContext
from agents.tools.kinds import JobStopped, ToolKind
from processors.engine.chunks import Chunk

PROGRESS = "data-tool-progress"


class InlineJob:
    """A job in this process."""

    def __init__(self, context: ToolContext, loop: asyncio.AbstractEventLoop) -> None:
        self.call_id = f"{context.run_id}:{context.tool_call_id}"
        self._context, self._loop = context, loop

    def progress(self, percent: float, message: str = "") -> None:
        self.checkpoint()
        chunk = progress_chunk(self._context.tool_call_id, percent, message)
        self._loop.call_soon_threadsafe(self._context.writer.custom, chunk)

    def checkpoint(self) -> None:
        if self._context.abort_signal.aborted:
            raise JobStopped("The answer was stopped.")


def progress_chunk(call_id: str, percent: float, message: str) -> Chunk:
    """A transient chunk: shown, never stored."""
    data = {
        "toolCallId": call_id,
        "percent": round(max(0.0, min(100.0, percent)), 1),
        "message": message[:200],
    }
    return Chunk(PROGRESS, data=data, transient=True)


def inline_execute(kind: ToolKind, options: dict[str, Any]) -> Callable[[Any, ToolContext], Any]:
    """The function that the loop calls for a tool of this kind."""

    async def execute(args: Any, context: ToolContext) -> Any:
        job = InlineJob(context, asyncio.get_running_loop())
        return await asyncio.to_thread(kind.run, dict(args or {}), options, job)

    return execute
