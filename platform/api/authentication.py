"""API keys: `Authorization: Bearer gh_…`."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from accounts.services import api_key_authenticate


class ApiKeyAuthentication(BaseAuthentication):
    """The key's owner acts. `request.auth` is the key's public beginning.

    Raises AuthenticationFailed for a key that is unknown, expired or revoked.
    """

    def authenticate(self, request: Request) -> tuple[Any, str] | None:
        scheme, _, secret = get_authorization_header(request).decode("latin-1").partition(" ")
        if scheme.lower() != "bearer":
            return None
        secret = secret.strip()
        user = api_key_authenticate(secret=secret)
        if user is None:
            raise AuthenticationFailed("This API key is not valid: it is unknown, expired or revoked.")
        return user, secret[:11]

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the schema describes the keys."""

    target_class = "api.authentication.ApiKeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "gh_…"}
