"""A client that does not read costs the run, the other clients and the server's memory nothing."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest

from accounts.models import User
from agents.bridge import in_database
from agents.models import Run
from agents.providers.scripted import says
from tests.agents.conftest import Scripts, published
from tests.chat.conftest import Socket, said, session_of, socket_for

pytestmark = pytest.mark.django_db(transaction=True)


def first_run() -> str:
    """The id of the first run, once it is there."""
    while (run := Run.objects.first()) is None:
        time.sleep(0.01)
    return str(run.pk)


async def test_a_client_that_never_reads_slows_nobody(
    alice: User, script: Scripts, tab: Any, living_server: str
) -> None:
    text = "0123456789" * 20_000  # more than the socket's buffers hold
    script(says(text), cut=40)
    await in_database(published)
    session = await in_database(session_of, alice)
    stuck = socket.create_connection(("127.0.0.1", int(living_server.rsplit(":", 1)[1])))
    stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    async with socket_for(living_server, session, sock=stuck, max_queue=1) as never_reads:
        await Socket(never_reads).send(type="message.send", agent="helper", text="Go", clientMessageId="m-1")
        reader = await tab(alice)
        run = await in_database(first_run)
        begun = time.monotonic()
        await reader.send(type="run.resume", runId=run, after=0)
        assert said(await reader.until("run.ended")) == text
        assert time.monotonic() - begun < 10
        never_reads.transport.abort()
