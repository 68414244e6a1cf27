"""One HTTP/1.1 exchange over asyncio: a request, the head of the answer, then its body as it comes.

A protocol class and httptools instead of a client library, because a library costs more per delta than all
guardrails together. No redirects, no compression, no proxies; TLS is always verified.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from functools import cache
from typing import Final, cast

import httptools

from agents.providers.endpoint import Endpoint, checked_addresses
from agents.providers.failures import broken
from agents.providers.timeouts import Timeouts
from processors.engine.errors import ModelAPIError, RunCancelled

HIGH_WATER: Final = 64 * 1024
"""Unread bytes at which reading pauses, so that a slow consumer holds back the service."""
LONGEST_HEAD: Final = 64 * 1024
QUICK_TRY: Final = 2.0
"""Seconds for an address when others are left to try."""


class Connection(asyncio.Protocol):
    """A connection to a model's service, for one exchange after the other.

    Every wait has a limit and raises ModelAPIError when it passes. Bytes that came before a failure are read.
    """

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.exchanges = 0
        """How many requests went over this connection."""
        self.key: tuple[Endpoint, int] | None = None
        """What it may be used again for; None: for nothing."""
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self._unread = self._head_size = 0
        self._paused = self._head_done = self._complete = self._lost = self._until_close = (
            self._stays_open
        ) = False
        self._failure: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._late = ""

    # -- what the client calls

    def send(self, method: str, target: str, headers: list[tuple[str, str]], body: bytes = b"") -> None:
        """Write a request. Header values must be free of line breaks: the caller has checked them."""
        assert self._transport is not None
        self.exchanges += 1
        self.status, self.headers, self._head_size = 0, {}, 0
        self._head_done = self._complete = self._until_close = self._stays_open = False
        self._parser = httptools.HttpResponseParser(self)
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
        if body:
            lines.append(f"content-length: {len(body)}")
        self._transport.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)

    async def read_head(self, limit: float) -> None:
        """Wait for status and headers. limit: seconds."""
        while not self._head_done:
            self._raise_if_failed()
            await self._wait(limit, "The model's service did not begin to answer in time.")

    async def read(self, limit: float) -> bytes:
        """What has come of the body since the last call, waiting at most `limit` seconds; empty at its end."""
        while not self._pieces:
            if self._complete:
                return b""
            self._raise_if_failed()
            await self._wait(limit, "The model's service fell silent inside its answer.")
        pieces = self._pieces
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        self._unread = 0
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return data

    def fail(self, failure: Exception) -> None:
        """Give up: the reader gets `failure` after what it has not read yet, the socket is closed at once."""
        if self._failure is None and not self._complete:
            self._failure = failure
        self.close()
        self._wake()

    def cancel(self, reason: str | None) -> None:
        """The run was stopped: the reader gets RunCancelled now, unread bytes are dropped."""
        self._pieces.clear()
        self._complete = False
        self._failure = None
        self.fail(RunCancelled(f"The run was stopped: {reason or 'cancelled'}."))

    def close(self) -> None:
        """Close the socket without waiting for anything. Harmless when repeated."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None:
            self._transport.abort()

    async def settled(self, limit: float) -> bool:
        """Whether the exchange has ended, within `limit` seconds, with the connection ready for another."""
        try:
            rest = await self.read(limit)
        except ModelAPIError:
            return False
        return not rest and self._stays_open and not self._lost

    @property
    def untouched(self) -> bool:
        """Whether nothing of an answer has come yet."""
        return not self._head_done and self._head_size == 0

    # -- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclass of asyncio's, and have the same methods.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.fail(
                self._failure or broken("The model's service did not answer in HTTP.", "malformed_answer")
            )
            return
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        if self._until_close and self._head_done and exc is None:
            self._complete = True
        if self._failure is None and not self._complete:
            self._failure = broken("The model's service closed the connection too early.", "disconnected")
        self._wake()

    # -- what httptools calls

    def on_status(self, status: bytes) -> None:
        self._head_size += len(status) + 1

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_size += len(name) + len(value)
        if self._head_size > LONGEST_HEAD:
            self._failure = broken("The model's service sent headers without an end.", "malformed_answer")
            raise ValueError("headers too long")
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:
            self.headers = {}
            return
        self.status, self._head_done = status, True
        self._until_close = (
            "content-length" not in self.headers
            and "chunked" not in self.headers.get("transfer-encoding", "").lower()
        )

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)
        self._unread += len(body)
        if self._unread > HIGH_WATER and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        # Without this check the "100 Continue" before an answer would end it.
        self._complete = self._head_done
        self._stays_open = self._complete and self._parser.should_keep_alive()

    # -- waiting

    def _raise_if_failed(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _wait(self, limit: float, late: str) -> None:
        """Wait for news. One timer serves all waits of a connection: it looks again when it rings early."""
        self._waiter = self._loop.create_future()
        self._deadline, self._late = self._loop.time() + limit, late
        if self._timer is None or self._timer.when() > self._deadline:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(self._deadline, self._ring)
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _ring(self) -> None:
        self._timer = None
        if self._waiter is None or self._waiter.done():
            return
        if self._loop.time() < self._deadline:
            self._timer = self._loop.call_at(self._deadline, self._ring)
        else:
            self.fail(broken(self._late, "timeout", status=408))


async def connect(
    endpoint: Endpoint, timeouts: Timeouts, ssl_context: ssl.SSLContext | None = None
) -> Connection:
    """Open a connection to one of the endpoint's checked addresses.

    Raises ConfigError for a forbidden address, ModelAPIError if none can be reached.
    """
    loop = asyncio.get_running_loop()
    # Reading the authorities' certificates takes tens of milliseconds the first time.
    context = (ssl_context or await asyncio.to_thread(default_ssl_context)) if endpoint.tls else None
    problem: Exception | None = None
    try:
        async with asyncio.timeout(timeouts.connect):
            addresses = await checked_addresses(endpoint)
            for number, address in enumerate(addresses, start=1):
                try:
                    async with asyncio.timeout(None if number == len(addresses) else QUICK_TRY):
                        _, connection = await loop.create_connection(
                            Connection, address, endpoint.port, ssl=context,
                            server_hostname=endpoint.host if context else None,
                        )  # fmt: skip
                        return connection
                except ssl.SSLError as failure:
                    raise _untrusted(failure) from failure
                except (OSError, TimeoutError) as failure:
                    problem = failure
    except TimeoutError as failure:
        raise broken("The model's service cannot be reached in time.", "timeout", status=408) from failure
    raise broken(
        "The model's service cannot be reached. Check the address and whether the service runs.",
        "connection_failed",
    ) from problem


def _untrusted(failure: ssl.SSLError) -> ModelAPIError:
    if isinstance(failure, ssl.SSLCertVerificationError):
        return broken(
            f"The certificate of the model's service is not trusted: {failure.verify_message}.",
            "certificate",
            retryable=False,
        )
    return broken("The secure connection to the model's service failed. Check the address.", "tls")


@cache
def default_ssl_context() -> ssl.SSLContext:
    """Verifies against the system's authorities, or certifi's where the system has none."""
    context = ssl.create_default_context()
    if not context.get_ca_certs():
        with suppress(ImportError):
            import certifi

            context.load_verify_locations(certifi.where())
    return context
