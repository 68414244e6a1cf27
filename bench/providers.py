"""What a chunk costs on its way from a service to us: the direct client against litellm, on the same local endpoint.

The service runs in a process of its own and sends 5,000 text deltas as fast as they are taken. The floor reads the same
bytes with asyncio and parses each event with the standard library, and does nothing else.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, cast

from agents.providers.endpoint import endpoint_check
from agents.providers.litellm_client import LiteLLMModel
from agents.providers.openai_compatible import OpenAICompatibleModel
from bench.row import Row
from processors.engine.chunks import Chunk
from processors.engine.ports import LanguageModel, ModelRequest

DELTAS = 5_000
ROUNDS = 5
STREAMS = 50
ASKED = ModelRequest([{"role": "user", "content": [{"type": "text", "text": "Hello"}]}])
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"


@dataclass(slots=True)
class Measured:
    """wall, cpu: seconds of this process for `chunks` text deltas."""

    chunks: int
    wall: float
    cpu: float


def frame(delta: dict[str, Any], reason: str | None = None) -> bytes:
    """One event in an HTTP chunk of its own, as services send it."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
    event = {
        "id": "chatcmpl-9aZ", "object": "chat.completion.chunk", "created": 1_790_000_000, "model": "bench-1",
        "system_fingerprint": "fp_44709d6fcb", "choices": [choice],
    }  # fmt: skip
    data = b"data: " + json.dumps(event).encode() + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(data), data)


async def serve(answers: Connection) -> None:
    """Answer every request with the same stream; tell the port."""
    body = b"".join(frame({"content": f"word{number} "}) for number in range(DELTAS))
    done = b"data: [DONE]\n\n"
    body += frame({}, "stop") + b"%x\r\n%b\r\n" % (len(done), done) + b"0\r\n\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        await reader.readexactly(int(length))
        writer.write(HEAD)
        # Some readers leave after the first text.
        with suppress(ConnectionError):
            for at in range(0, len(body), 16_384):
                writer.write(body[at : at + 16_384])
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    answers.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def run_service(answers: Connection) -> None:
    asyncio.run(serve(answers))


@contextmanager
def service() -> Iterator[str]:
    """The base URL of a running service."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=run_service, args=(there,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}/v1"
    finally:
        process.terminate()
        process.join()


async def floor_stream(url: str) -> AsyncIterator[str]:
    """The floor: sockets, split, json.loads."""
    port = int(url.split(":")[2].partition("/")[0])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}")
    await reader.readuntil(b"\r\n\r\n")
    rest = b""
    while data := await reader.read(65_536):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data: {"):
                delta = json.loads(line[6:])["choices"][0]["delta"]
                if delta:
                    yield delta["content"]
    writer.close()


async def drain(stream: AsyncIterator[Any]) -> int:
    """Read to the end; count the text deltas."""
    count = 0
    async with aclosing(cast("Any", stream)) as open_stream:
        async for item in open_stream:
            if not isinstance(item, Chunk) or item.type == "text-delta":
                count += 1
    return count


async def measured(work: Callable[[], Awaitable[int]]) -> Measured:
    wall, cpu = time.perf_counter(), time.process_time()
    count = await work()
    return Measured(count, time.perf_counter() - wall, time.process_time() - cpu)


async def best(work: Callable[[], Awaitable[int]], rounds: int = ROUNDS) -> Measured:
    """The least wall and CPU time of several rounds. One before them warms up what is loaded at first use."""
    await work()
    each = [await measured(work) for _ in range(rounds)]
    return Measured(each[0].chunks, min(one.wall for one in each), min(one.cpu for one in each))


async def first_text(model: LanguageModel) -> float:
    """Seconds from the call to the first text."""
    start = time.perf_counter()
    async with aclosing(cast("Any", model.stream(ASKED))) as stream:
        async for chunk in stream:
            if chunk.type == "text-delta":
                return time.perf_counter() - start
    raise AssertionError("the stream ended without text")


async def longest_gap(model: LanguageModel) -> float:
    """The longest time for which the event loop was not free while many full streams were read, in seconds."""
    gaps = [0.0]

    async def beat() -> None:
        while True:
            start = time.perf_counter()
            await asyncio.sleep(0)
            gaps.append(time.perf_counter() - start)
            await asyncio.sleep(0.001)

    heart = asyncio.ensure_future(beat())
    await asyncio.gather(*(drain(model.stream(ASKED)) for _ in range(STREAMS)))
    heart.cancel()
    return max(gaps)


async def measure(url: str) -> list[Row]:
    direct = OpenAICompatibleModel(
        "openai/bench-1", name="bench-1", endpoint=endpoint_check(url, allow_private=True)
    )
    library = LiteLLMModel(
        "openai/bench-1", name="openai/bench-1", base_url=url, api_key="none", allow_private=True
    )
    floor = await best(lambda: drain(floor_stream(url)))
    ours = await best(lambda: drain(direct.stream(ASKED)))
    theirs = await best(lambda: drain(library.stream(ASKED)), 2)
    assert ours.chunks == theirs.chunks == floor.chunks == DELTAS
    first_ours = min([await first_text(direct) for _ in range(20)])
    first_theirs = min([await first_text(library) for _ in range(5)])
    gap = await longest_gap(direct)
    return [
        Row("floor: socket, split, json.loads", DELTAS / floor.wall, "chunks/s"),
        Row("litellm", DELTAS / theirs.wall, "chunks/s"),
        Row("direct client", DELTAS / ours.wall, "chunks/s", "≥ 10 times litellm", theirs.wall / ours.wall),
        Row("floor, CPU", floor.cpu / DELTAS * 1e6, "µs/chunk"),
        Row("litellm, CPU", theirs.cpu / DELTAS * 1e6, "µs/chunk", "floor", theirs.cpu / floor.cpu),
        Row("direct client, CPU", ours.cpu / DELTAS * 1e6, "µs/chunk", "floor", ours.cpu / floor.cpu),
        Row("litellm, first text", first_theirs * 1e3, "ms"),
        Row("direct client, first text", first_ours * 1e3, "ms", "litellm", first_ours / first_theirs),
        Row(f"direct client, longest stall of the loop, {STREAMS} full streams", gap * 1e3, "ms"),
    ]


def rows() -> list[Row]:
    """Every row of this benchmark."""
    with service() as url:
        return asyncio.run(measure(url))
