"""What only the direct client does by itself: the connection, TLS, strange answers, hostile services."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from agents.providers.endpoint import Endpoint, endpoint_check
from agents.providers.idle_connections import close_idle_connections
from agents.providers.openai_compatible import OpenAICompatibleModel
from agents.providers.timeouts import Timeouts
from processors.engine.errors import ConfigError, ModelAPIError
from processors.engine.ports import ModelRequest
from tests.providers.asking import HELLO, answer, of_type, text_of
from tests.providers.certificates import tls_contexts
from tests.providers.conftest import SECRET
from tests.providers.server import ModelServer, ends, event, says

pytestmark = pytest.mark.asyncio(loop_scope="package")
KEPT = {"content-type": "text/event-stream", "connection": "keep-alive"}
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]


def client(
    url: str, context: ssl.SSLContext | None = None, *, first_byte: float = 10.0
) -> OpenAICompatibleModel:
    return OpenAICompatibleModel(
        "openai-compatible/m", name="m", endpoint=endpoint_check(url, allow_private=True), api_key=SECRET,
        timeouts=Timeouts(first_byte=first_byte), ssl_context=context,
    )  # fmt: skip


@pytest_asyncio.fixture(loop_scope="package")
async def secure(tmp_path: Path) -> AsyncIterator[tuple[ModelServer, ssl.SSLContext]]:
    """A service with TLS, and what a client needs to trust it."""
    theirs, ours = tls_contexts(tmp_path)
    server = ModelServer()
    await server.start(theirs)
    yield server, ours
    close_idle_connections()
    await server.stop()


async def raw(serve: Serve) -> tuple[asyncio.Server, str]:
    """A service that answers with its own bytes."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    return server, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


async def refused(url: str) -> ModelAPIError:
    with pytest.raises(ModelAPIError) as caught:
        await answer(client(url, first_byte=2.0))
    return caught.value


async def test_a_certificate_that_nobody_vouches_for_is_refused(
    secure: tuple[ModelServer, ssl.SSLContext],
) -> None:
    server, _ = secure
    problem = await refused(server.url)
    assert (problem.provider_code, problem.retryable) == ("certificate", False)
    assert server.exchanges == [], "the key was not sent"


async def test_a_secure_connection_is_used_again(secure: tuple[ModelServer, ssl.SSLContext]) -> None:
    server, context = secure
    model = client(server.url, context)
    for word in ("One.", "Two.", "Three."):
        server.plays(says(word), ends(), headers=KEPT)
        assert text_of(await answer(model)) == word
    assert server.connections == 1


async def test_a_kept_connection_that_the_service_closed_is_replaced(
    secure: tuple[ModelServer, ssl.SSLContext],
) -> None:
    server, context = secure
    model = client(server.url, context)
    server.plays(says("One."), ends(), headers=KEPT)
    await answer(model)
    server.plays(says("Two."), ends())
    server.closes_next = True
    assert text_of(await answer(model)) == "Two."
    assert server.connections == 2


async def test_a_stream_that_was_left_early_is_not_used_again(
    secure: tuple[ModelServer, ssl.SSLContext],
) -> None:
    server, context = secure
    model = client(server.url, context)
    server.plays(says("One."), asyncio.Event(), headers=KEPT)
    stream: Any = model.stream(HELLO)
    await anext(stream)
    await stream.aclose()
    server.plays(says("Two."), ends(), headers=KEPT)
    assert text_of(await answer(model)) == "Two."
    assert server.connections == 2


async def test_a_whole_answer_instead_of_a_stream_is_read_too(server: ModelServer) -> None:
    message = {"role": "assistant", "content": "Hello, Alice.", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "clock", "arguments": "{}"}}]}  # fmt: skip
    whole = {"id": "x", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
             "usage": {"prompt_tokens": 3, "completion_tokens": 4}}  # fmt: skip
    server.plays(json.dumps(whole).encode(), headers={"content-type": "application/json; charset=utf-8"})
    chunks = await answer(client(server.url))
    assert text_of(chunks) == "Hello, Alice."
    assert of_type(chunks, "tool-call") == [{"toolCallId": "c1", "toolName": "clock", "args": {}}]
    assert of_type(chunks, "finish")[0]["usage"]["totalTokens"] == 7


async def test_a_body_that_ends_with_the_connection_is_read(server: ModelServer) -> None:
    server.plays(says("Hello"), ends(), framed=False)
    assert text_of(await answer(client(server.url))) == "Hello"


async def test_the_end_mark_may_be_missing_after_the_reason(server: ModelServer) -> None:
    server.plays(says("Hello"), ends().replace(event(b"[DONE]"), b""))
    assert text_of(await answer(client(server.url))) == "Hello"


@pytest.mark.parametrize(
    ("status", "headers", "sentence"),
    [
        (200, {"content-type": "text/html"}, "web page"),
        (200, {"content-type": "text/event-stream", "content-encoding": "gzip"}, "compresses"),
        (302, {"location": "http://169.254.169.254/"}, "redirects"), (502, {"content-type": "text/html"}, "problem"),
    ],
)  # fmt: skip
async def test_an_answer_that_is_no_stream_is_refused_in_plain_words(
    server: ModelServer, status: int, headers: dict[str, str], sentence: str
) -> None:
    server.plays(b"<html>", status=status, headers=headers)
    problem = await refused(server.url)
    assert sentence in problem.message
    assert "<html>" not in problem.message
    assert len(server.exchanges) == 1, "no redirect is followed"


@pytest.mark.parametrize(
    "answered",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\nx: " + b"a" * 100_000, b"", b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 20_000,
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 7\r\n\r\nhello",
    ],
)  # fmt: skip
async def test_a_service_that_speaks_no_http_is_given_up(answered: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answered)
        writer.close()

    server, url = await raw(serve)
    problem = await refused(url)
    assert problem.provider_code in ("malformed_answer", "disconnected")
    server.close()


async def test_an_interim_answer_is_not_the_answer() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        writer.write(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + says("Hello") + ends())
        writer.close()

    server, url = await raw(serve)
    assert text_of(await answer(client(url))) == "Hello"
    server.close()


async def test_a_name_that_turns_into_an_inner_address_is_not_connected_to(server: ModelServer) -> None:
    rebound = Endpoint("http", "localhost", server.port, "/v1", allow_private=False)
    model = OpenAICompatibleModel("openai-compatible/m", name="m", endpoint=rebound)
    with pytest.raises(ConfigError, match="must not reach"):
        await answer(model)
    assert server.connections == 0


async def test_nothing_is_heard_after_the_end_mark(server: ModelServer) -> None:
    server.plays(says("One."), ends(), says("And another thing."))
    assert text_of(await answer(client(server.url))) == "One."


async def test_odd_characters_reach_the_service_whole(server: ModelServer) -> None:
    text = 'Zoë 👋🏽 \ud83d "\\ \x00 \u2028'
    server.plays(says("Hi."), ends())
    await answer(
        client(server.url), ModelRequest([{"role": "user", "content": [{"type": "text", "text": text}]}])
    )
    assert server.last.body["messages"][0]["content"] == text
