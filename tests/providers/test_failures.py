"""Whatever goes wrong at a service is a ModelAPIError that says what to do, whichever client met it."""

from __future__ import annotations

import asyncio
import json
import time
from email.utils import formatdate
from typing import Any

import pytest

from agents.providers.failures import described, retry_after
from processors.engine.chunks import Chunk
from processors.engine.errors import ModelAPIError
from tests.providers.asking import HELLO, answer, text_of
from tests.providers.conftest import SECRET, MakeClient
from tests.providers.server import ModelServer, delta, ends, event, says

on_the_wire = pytest.mark.asyncio(loop_scope="package")
JSON = {"content-type": "application/json"}


async def failure(connect: MakeClient, seen: list[Chunk] | None = None, **limits: float) -> ModelAPIError:
    with pytest.raises(ModelAPIError) as caught:
        await answer(connect(**limits), seen=seen)
    return caught.value


def refuses(server: ModelServer, status: int, error: Any, **headers: str) -> None:
    server.plays(json.dumps({"error": error}).encode(), status=status, headers={**JSON, **headers})


@on_the_wire
@pytest.mark.parametrize(
    ("status", "retryable", "sentence"),
    [
        (400, False, "refused the request"), (401, False, "Check the credential"), (403, False, "does not allow"),
        (404, False, "does not know"), (408, True, "too long"), (409, True, "conflict"),
        (422, False, "could not process"), (429, True, "slow down"), (500, True, "has a problem"),
        (503, True, "overloaded"),
    ],
)  # fmt: skip
async def test_a_refusal_keeps_its_status_and_says_what_to_do(
    connect: MakeClient, server: ModelServer, status: int, retryable: bool, sentence: str
) -> None:
    refuses(server, status, {"message": "No parcels today.", "code": "no_parcels"})
    problem = await failure(connect)
    assert (problem.status, problem.retryable) == (status, retryable)
    assert sentence in problem.message
    assert "No parcels today." in problem.message
    assert len(server.exchanges) == 1, "the client must not repeat a call by itself"


@on_the_wire
async def test_a_full_service_says_when_to_come_back(connect: MakeClient, server: ModelServer) -> None:
    refuses(server, 429, {"message": "Slow down.", "code": "rate_limit_exceeded"}, **{"retry-after": "7"})
    problem = await failure(connect)
    assert (problem.retry_after, problem.provider_code) == (7.0, "rate_limit_exceeded")


@on_the_wire
async def test_an_empty_account_is_no_reason_to_try_again(connect: MakeClient, server: ModelServer) -> None:
    refuses(server, 429, {"message": "You exceeded your current quota.", "code": "insufficient_quota"})
    problem = await failure(connect)
    assert (problem.retryable, problem.provider_code) == (False, "insufficient_quota")
    assert "no credit" in problem.message


@on_the_wire
async def test_the_key_does_not_travel_in_a_message(connect: MakeClient, server: ModelServer) -> None:
    refuses(server, 401, {"message": f"Incorrect API key provided: {SECRET}."})
    problem = await failure(connect)
    assert SECRET not in f"{problem} {problem.body}"
    assert "[key]" in problem.message


@on_the_wire
async def test_a_service_that_does_not_begin_is_given_up(connect: MakeClient, server: ModelServer) -> None:
    server.plays(says("too late"), ends(), before_head=asyncio.Event())
    start = time.monotonic()
    problem = await failure(connect, first_byte=0.3)
    assert (problem.status, problem.retryable, problem.provider_code) == (408, True, "timeout")
    assert time.monotonic() - start < 2
    await asyncio.wait_for(server.last.gone.wait(), 1)


@on_the_wire
async def test_a_service_that_falls_silent_is_given_up(connect: MakeClient, server: ModelServer) -> None:
    server.plays(says("Hel", "lo"), asyncio.Event())
    seen: list[Chunk] = []
    problem = await failure(connect, seen, between=0.3)
    assert (problem.status, problem.retryable, problem.provider_code) == (408, True, "timeout")
    assert text_of(seen) == "Hello"
    await asyncio.wait_for(server.last.gone.wait(), 1)


@on_the_wire
@pytest.mark.parametrize("framed", [True, False])
async def test_a_cut_connection_is_no_end(connect: MakeClient, server: ModelServer, framed: bool) -> None:
    server.plays(says("Hel", "lo"), 0.05, "cut", framed=framed)
    seen: list[Chunk] = []
    problem = await failure(connect, seen)
    assert (problem.retryable, problem.provider_code) == (True, "disconnected")
    assert text_of(seen) == "Hello"
    assert not [chunk for chunk in seen if chunk.type == "finish"]


@on_the_wire
async def test_a_stream_that_ends_without_an_end_is_broken(connect: MakeClient, server: ModelServer) -> None:
    server.plays(says("Hello"))
    seen: list[Chunk] = []
    problem = await failure(connect, seen)
    assert problem.retryable
    assert text_of(seen) == "Hello"


@on_the_wire
@pytest.mark.parametrize("frame", [b'{"choices": [{"del', b'"text"', b"<html>", b"\xff\xfe"])
async def test_a_malformed_event_breaks_the_stream(
    connect: MakeClient, server: ModelServer, frame: bytes
) -> None:
    server.plays(says("Hel", "lo"), 0.05, event(frame), says("!"), ends())
    seen: list[Chunk] = []
    problem = await failure(connect, seen)
    assert problem.retryable
    assert text_of(seen) == "Hello"


@on_the_wire
async def test_an_error_inside_the_stream_is_an_error(connect: MakeClient, server: ModelServer) -> None:
    error = {"error": {"message": "The engine stalled.", "type": "server_error", "code": None}}
    server.plays(says("Hel", "lo"), 0.05, event(error))
    seen: list[Chunk] = []
    problem = await failure(connect, seen)
    assert problem.retryable
    assert "The engine stalled." in problem.message
    assert text_of(seen) == "Hello"


@on_the_wire
async def test_a_service_that_is_not_there_can_be_tried_again(
    connect: MakeClient, server: ModelServer
) -> None:
    model = connect()
    await server.stop()
    with pytest.raises(ModelAPIError, match="cannot be reached") as caught:
        await answer(model)
    assert (caught.value.retryable, caught.value.provider_code) == (True, "connection_failed")


@on_the_wire
async def test_the_next_call_after_a_failure_works(connect: MakeClient, server: ModelServer) -> None:
    model = connect()
    refuses(server, 500, "down")
    server.plays(delta(content="Up again."), ends())
    with pytest.raises(ModelAPIError):
        await answer(model)
    assert text_of(await answer(model, HELLO)) == "Up again."


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "12"}, 12.0), ({"retry-after": "0.5"}, 0.5), ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": formatdate(1_000_030, usegmt=True)}, 30.0),
        ({"retry-after": formatdate(999_000, usegmt=True)}, 0.0),
        ({}, None), ({"retry-after": "soon"}, None), ({"retry-after": "-3"}, None), ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None), ({"retry-after-ms": "x"}, None),
    ],
)  # fmt: skip
def test_retry_after_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=1_000_000) == seconds


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": {"message": "No.", "type": "t", "code": "c"}}, ("No.", "c")),
        ({"error": {"message": "No.", "type": "t", "code": None}}, ("No.", "t")),
        ({"error": {"message": "No.", "code": 429}}, ("No.", "429")),
        ([{"error": {"message": "No.", "status": "UNAVAILABLE"}}], ("No.", "UNAVAILABLE")),
        ({"error": "No."}, ("No.", None)), ({"detail": "No."}, ("No.", None)), ({"message": "No."}, ("No.", None)),
        ({"error": {"message": "No\n  way.\x00"}}, ("No way.\x00", None)),
        (None, ("", None)), ([], ("", None)), ("text", ("", None)), ({"error": 3}, ("", None)),
    ],
)  # fmt: skip
def test_error_bodies_are_read_in_all_their_shapes(body: Any, said: tuple[str, str | None]) -> None:
    assert described(body) == said


def test_a_long_message_is_cut() -> None:
    detail, _ = described({"error": "x" * 5_000})
    assert len(detail) == 300
