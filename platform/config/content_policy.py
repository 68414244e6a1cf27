"""The content security policy: everything from this server, and images from nowhere else.

The admin's own framework (Alpine) evaluates expressions in attributes and sets inline styles; it alone gets that
relaxation.
"""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

STRICT = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'self'; form-action 'self'; "
    "frame-ancestors 'none'"
)
ADMIN = f"{STRICT}; script-src 'self' 'unsafe-eval' 'unsafe-inline'; style-src 'self' 'unsafe-inline'"
API_PAGES = f"{STRICT}; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'"


class ContentPolicyMiddleware:
    """Sets the header on every response that has none."""

    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        response.headers.setdefault(
            "Content-Security-Policy", f"{policy_for(request.path)}; {sockets_of(request)}"
        )
        return response


def policy_for(path: str) -> str:
    """The policy of one address."""
    if path.startswith("/admin/"):
        return ADMIN
    return API_PAGES if path.startswith("/api/docs") else STRICT


def sockets_of(request: HttpRequest) -> str:
    """Our own WebSocket by name: not every browser counts it to 'self'."""
    host = request.get_host()
    return f"connect-src 'self' ws://{host} wss://{host}"
