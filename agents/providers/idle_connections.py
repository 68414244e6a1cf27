"""Connections that a finished exchange left open, kept a short while for the next one.

Only TLS connections are kept: the handshake is what costs. Each event loop has its own.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Final, TypeAlias
from weakref import WeakKeyDictionary

from agents.providers.endpoint import Endpoint
from agents.providers.http_connection import Connection, connect
from agents.providers.timeouts import Timeouts

KEPT_SECONDS: Final = 15.0
KEPT_PER_ENDPOINT: Final = 8
LAST_BYTES: Final = 0.05
"""Seconds to wait for the end of an answer's body: less than a new handshake over the internet takes."""

Key: TypeAlias = tuple[Endpoint, int]
Shelf: TypeAlias = dict[Key, list[Connection]]

_shelves: WeakKeyDictionary[asyncio.AbstractEventLoop, Shelf] = WeakKeyDictionary()


async def take(
    endpoint: Endpoint, timeouts: Timeouts, ssl_context: ssl.SSLContext | None = None
) -> Connection:
    """A kept connection that is still open, or a new one. Raises as `http_connection.connect`."""
    key = (endpoint, id(ssl_context))
    kept = _shelf().get(key, [])
    while kept:
        connection = kept.pop()
        if await connection.settled(LAST_BYTES):
            return connection
        connection.close()
    connection = await connect(endpoint, timeouts, ssl_context)
    connection.key = key if endpoint.tls else None
    return connection


def give_back(connection: Connection, *, answered: bool) -> None:
    """Keep the connection if it may be used again, else close it at once.

    answered: the service has said all it will say. The last bytes of the body may still be under way; whether they
    came is looked at when the connection is wanted again.
    """
    if connection.key is None or not answered:
        connection.close()
        return
    kept = _shelf().setdefault(connection.key, [])
    if len(kept) >= KEPT_PER_ENDPOINT:
        connection.close()
        return
    kept.append(connection)
    asyncio.get_running_loop().call_later(KEPT_SECONDS, _expire, kept, connection, connection.exchanges)


def _expire(kept: list[Connection], connection: Connection, exchanges: int) -> None:
    # A connection that was used in between is on the shelf with a later date.
    if connection in kept and connection.exchanges == exchanges:
        kept.remove(connection)
        connection.close()


def close_idle_connections() -> None:
    """Close what this event loop keeps. For the end of a program or test."""
    for kept in _shelf().values():
        while kept:
            kept.pop().close()


def _shelf() -> Shelf:
    return _shelves.setdefault(asyncio.get_running_loop(), {})
