"""The ASGI application: HTTP by Django, WebSockets by Channels behind an origin and a session check."""

from __future__ import annotations

import asyncio
import os
from typing import Any, Final

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
http = get_asgi_application()

from channels.auth import AuthMiddlewareStack  # noqa: E402 - needs the app registry
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402

from agents.runner import runner, runner_close  # noqa: E402
from chat.routing import websocket_urlpatterns  # noqa: E402

SERVED: Final = {"startup": runner, "shutdown": runner_close}


async def lifespan(scope: Any, receive: Any, send: Any) -> None:
    """Start the runner with the server (runs that a process left behind reach their end) and stop it before the server ends."""
    while True:
        event = (await receive())["type"].rpartition(".")[2]
        await asyncio.to_thread(SERVED[event])
        await send({"type": f"lifespan.{event}.complete"})
        if event == "shutdown":
            return


application = ProtocolTypeRouter(
    {
        "http": http,
        "lifespan": lifespan,
        "websocket": AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(websocket_urlpatterns))),
    }
)
