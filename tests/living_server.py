"""The whole application behind a real server on loopback, in this process, for tests with real clients."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn


@pytest.fixture(scope="session")
def living_server(django_db_setup: None) -> Iterator[str]:
    """The server's address, such as http://127.0.0.1:40001."""
    from config.asgi import application

    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        application,
        ws="websockets-sansio",
        ws_per_message_deflate=False,
        lifespan="off",
        log_level="critical",
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join(10)
    listener.close()
