"""Server-sent events: what is ready travels together, silence is filled, a slow client holds nobody up."""

from __future__ import annotations

import asyncio
from typing import Any

from api.event_streams import MOST_WAITING, Pump, event


async def test_the_reader_of_an_event_stream_waits_when_nobody_takes() -> None:
    made = 0

    async def endless() -> Any:
        nonlocal made
        while True:
            made += 1
            yield event({"n": made}, name="chunk", number=made)
            await asyncio.sleep(0)

    pump = Pump(endless())
    await asyncio.sleep(0.05)
    assert made == MOST_WAITING
    taken = await pump.next(1)
    assert taken is not None and taken.count("\n\n") == MOST_WAITING
    await asyncio.sleep(0.05)
    assert made == 2 * MOST_WAITING
    await pump.close()


async def test_silence_is_noticed_and_an_end_is_an_end() -> None:
    gate = asyncio.Event()

    async def one() -> Any:
        await gate.wait()
        yield "only\n\n"

    pump = Pump(one())
    assert await pump.next(0.01) == ""
    gate.set()
    assert [await pump.next(1), await pump.next(1)] == ["only\n\n", None]
    await pump.close()
