"""The numbered log of a run: every chunk that a client may see, from 1 on, replayed and followed by any number of readers.

Three layers, from near to far: chunks of a run in this process are read from memory; those of other processes from a Redis stream
(`gatehouse:run:<id>`, bounded, expiring); when both are gone, from the stored messages. A reader that is slow, or gone, costs the
run nothing. The last item of every read is `{"type": "run-end", "status": …}`.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final
from uuid import UUID

from redis import RedisError

from agents.live_log import LiveLog, live_logs
from agents.redis_link import redis_for_loop
from agents.stored_chunks import final_status, stored_chunks
from audit.bridge import in_database

log = logging.getLogger("gatehouse.runs")
Wire = dict[str, Any]
LOOK_EVERY: Final = 0.5
"""Seconds between two looks at the database when Redis is away."""
BLOCK_MS: Final = 2000
END: Final = "run-end"
RESET: Final = "log-reset"
"""Sent before stored messages: the client forgets what it has shown of this run, because the log in between is lost."""


def key_of(run_id: UUID | str) -> str:
    """The Redis key of a run's stream."""
    return f"gatehouse:run:{run_id}"


async def read(run_id: UUID | str, *, after: int = 0) -> AsyncGenerator[tuple[int, Wire], None]:
    """The chunks of a run that come after number `after`, each once and in order, up to the run's end marker.

    Waits for chunks that are still to come. The run's existence and the reader's right to it are checked by the caller.
    """
    name, position = str(run_id), max(0, after)
    for_sure = False
    while not for_sure:
        live = live_logs.get(name)
        if live is not None and live.reaches(position) and not live.is_exhausted(position):
            source = _from_memory(live, position)
        else:
            source, for_sure = _from_redis(name, position), True
        async with aclosing(source):
            async for number, wire in source:
                if number <= position and wire.get("type") != END:
                    continue
                position = number
                if _is_pause(wire) and await in_database(final_status, name) != "waiting":
                    continue  # history: the run has gone on since
                yield number, wire
                if wire.get("type") == END:
                    return
        if for_sure and (live := live_logs.get(name)) is not None and live.reaches(position):
            for_sure = live.is_exhausted(position)
    async with aclosing(_from_database(name, position)) as rest:
        async for item in rest:
            yield item


async def _from_memory(live: LiveLog, position: int) -> AsyncGenerator[tuple[int, Wire], None]:
    """Follow a log of this process. Ends when it is closed, or when the reader has fallen out of its window."""
    with live.subscribed() as wake:
        while True:
            wake.clear()
            found = live.since(position)
            if found is None:
                return
            for number, wire in found:
                position = number
                yield number, wire
            if not found:
                if live.closed:
                    return
                await wake.wait()


async def _from_redis(name: str, position: int) -> AsyncGenerator[tuple[int, Wire], None]:
    """Follow the stream. Ends at its end marker, at a gap, or when neither Redis nor a running run is there."""
    client = redis_for_loop()
    patience: int | None = (
        None  # the first look does not wait: most readers of old runs find everything, or nothing
    )
    try:
        while True:
            found: Any = await client.xread({key_of(name): f"{position}-0"}, block=patience, count=500)
            patience = BLOCK_MS
            entries = found[0][1] if found else []
            for _, fields in entries:
                first = int(fields[b"n"])
                if first > position + 1:
                    return
                for number, wire in enumerate(json.loads(fields[b"c"]), first):
                    if number > position:
                        position = number
                        yield number, wire
            live = live_logs.get(name)
            if live is not None and live.reaches(position) and not live.is_exhausted(position):
                return  # memory is nearer
            if entries:
                continue
            status = await in_database(final_status, name)
            if status is not None:
                last: Any = await client.xrevrange(key_of(name), count=1)
                if last and int(last[0][0].split(b"-")[0]) == position:
                    yield (
                        position,
                        {"type": END, "runId": name, "status": status},
                    )  # the reader has seen everything
                return
    except (RedisError, OSError):
        log.warning("Redis cannot be reached; the reader of run %s waits for its end.", name)
    finally:
        try:
            await client.aclose()
        except (RedisError, OSError):
            log.debug("A connection to Redis was gone already.")


def _is_pause(wire: Wire) -> bool:
    return wire.get("type") == END and wire.get("status") == "waiting"


async def _from_database(name: str, position: int) -> AsyncGenerator[tuple[int, Wire], None]:
    """Wait until the run has ended, then give what is stored. The client is told to forget what it has shown."""
    while True:
        status = await in_database(final_status, name)
        if status is not None:
            break
        await asyncio.sleep(LOOK_EVERY)
    chunks = await in_database(stored_chunks, name)
    reset: Wire = {"type": RESET, "runId": name}
    for number, wire in enumerate(
        [reset, *chunks, {"type": END, "runId": name, "status": status}], position + 1
    ):
        yield number, wire
