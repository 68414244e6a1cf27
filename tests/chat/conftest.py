"""alice chats, bob is a stranger to her, charlie runs the house; sockets are real consumers behind the real application."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.test import Client
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Origin

from accounts.models import User
from agents.bridge import in_database
from tests.agents.conftest import Scripts, alice, bob, charlie, script
from tests.living_database import living_database
from tests.living_server import living_server

__all__ = ["Scripts", "alice", "bob", "charlie", "living_database", "living_server", "script"]
Frame = dict[str, Any]


class Socket:
    """One tab of one person."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.received: list[str] = []

    async def send(self, **frame: Any) -> None:
        await self.connection.send(json.dumps(frame))

    async def next(self, seconds: float = 10) -> Frame:
        """The next frame."""
        async with asyncio.timeout(seconds):
            text = await self.connection.recv(decode=True)
        assert isinstance(text, str)
        self.received.append(text)
        frame: Frame = json.loads(text)
        return frame

    async def until(self, kind: str, seconds: float = 15) -> list[Frame]:
        """Frames up to the first of a type, that one included."""
        frames: list[Frame] = []
        async with asyncio.timeout(seconds):
            while not frames or frames[-1]["type"] != kind:
                frames.append(await self.next(seconds))
        return frames

    async def closing_code(self) -> int:
        """Waits for the server to close."""
        async with asyncio.timeout(10):
            await self.connection.wait_closed()
        assert self.connection.close_code is not None
        return self.connection.close_code

    async def answer(self, text: str, agent: str = "helper", **more: Any) -> list[Frame]:
        """Send a message and take everything up to the run's end."""
        await self.send(type="message.send", agent=agent, text=text, **more)
        return await self.until("run.ended")


def said(frames: list[Frame]) -> str:
    """The text that frames delivered."""
    chunks = [frame["chunk"] for frame in frames if frame["type"] == "chunk"]
    return "".join(chunk["payload"]["text"] for chunk in chunks if chunk["type"] == "text-delta")


def session_of(user: User) -> str:
    """A fresh session of a person."""
    client = Client()
    client.force_login(user)
    return str(client.session.session_key)


def socket_for(server: str, session: str | None, *, origin: str | None = None, **more: Any) -> Any:
    """A connection that is not opened yet: `async with socket_for(…) as connection`."""
    headers = {"Cookie": f"sessionid={session}"} if session else {}
    address = f"{server.replace('http', 'ws', 1)}/ws/chat/"
    return connect(
        address,
        additional_headers=headers,
        origin=Origin(origin or server),
        max_size=None,
        proxy=None,
        open_timeout=10,
        close_timeout=0.2,
        **more,
    )


@pytest.fixture
async def tab(db: None, living_server: str) -> AsyncIterator[Callable[[User], Any]]:
    """Opens tabs, and closes them again."""
    async with AsyncExitStack() as opened:

        async def open_tab(user: User) -> Socket:
            session = await in_database(session_of, user)
            return Socket(await opened.enter_async_context(socket_for(living_server, session)))

        yield open_tab


def end_session(user: User) -> None:
    """What signing out everywhere does."""
    for row in SessionStore.get_model_class().objects.all():
        if row.get_decoded().get("_auth_user_id") == str(user.pk):
            row.delete()
