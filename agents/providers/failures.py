"""What a provider's refusal means: status, headers and body become a `ModelAPIError` that people can read."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final

from processors.engine.errors import ModelAPIError

RETRYABLE: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
QUOTA_CODES: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
HOPELESS: Final = ("invalid", "authentication", "permission", "content_filter", "not_found", "context_length")
"""Parts of provider codes for which the same call fails again."""
MEANINGS: Final = {
    400: "The model's service refused the request.",
    401: "The model's service refused the key. Check the credential.",
    402: "The account at the model's service has no credit left. Top it up there.",
    403: "The model's service does not allow this key to do that. Check the account's rights.",
    404: "The model's service does not know this model or address. Check both.",
    408: "The model's service took too long. Try again.",
    409: "The model's service was in conflict with another request. Try again.",
    413: "The request is too large for the model's service. Shorten the conversation.",
    422: "The model's service could not process the request.",
    429: "The model's service asks to slow down. Try again later.",
    503: "The model's service is overloaded. Try again later.",
    529: "The model's service is overloaded. Try again later.",
}
DETAIL_LENGTH: Final = 300
BODY_LENGTH: Final = 4_000


def rejection(status: int, headers: Mapping[str, str], body: bytes, *, secret: str = "") -> ModelAPIError:
    """The error for an answer with an error status. headers: with lower-case names.

    secret: the key in use; services quote it in their messages, and it must not travel further.
    """
    text = body[:65_536].decode("utf-8", "replace")
    if secret:
        text = text.replace(secret, "[key]")
    try:
        parsed: Any = json.loads(text)
    except (ValueError, RecursionError):
        parsed = None
    detail, code = described(parsed)
    if 300 <= status < 400:
        meaning = "The address of the model's service redirects elsewhere. Enter the final address."
    elif code in QUOTA_CODES:
        meaning = MEANINGS[402]
    else:
        fallback = "The model's service has a problem. Try again later." if status >= 500 else MEANINGS[400]
        meaning = MEANINGS.get(status, fallback)
    return ModelAPIError(
        f"{meaning} It said: {detail}" if detail else meaning,
        status=status,
        retryable=is_retryable(status, code),
        retry_after=retry_after(headers),
        provider_code=code,
        body=parsed if len(text) <= BODY_LENGTH else None,
    )


def reported(error: Any, *, secret: str = "") -> ModelAPIError:
    """The error for an `{"error": …}` event inside a stream whose status was 200."""
    text = json.dumps({"error": error})
    parsed = json.loads(text.replace(secret, "[key]") if secret else text)
    detail, code = described(parsed)
    status = int(code) if code is not None and code.isdigit() and 400 <= int(code) < 600 else None
    retryable = is_retryable(status, code) if status else not any(mark in (code or "") for mark in HOPELESS)
    return ModelAPIError(
        f"The model's service broke off its answer. It said: {detail}" if detail
        else "The model's service broke off its answer.",
        status=status, retryable=retryable and code not in QUOTA_CODES,
        provider_code=code, body=parsed if len(text) <= BODY_LENGTH else None,
    )  # fmt: skip


def broken(what: str, code: str, *, retryable: bool = True, status: int | None = None) -> ModelAPIError:
    """The error for a connection or stream that failed. what: a full sentence; code: our own short name."""
    return ModelAPIError(what, status=status, retryable=retryable, provider_code=code)


def is_retryable(status: int | None, code: str | None) -> bool:
    """Whether the same call may succeed later."""
    return status in RETRYABLE and code not in QUOTA_CODES


def described(body: Any) -> tuple[str, str | None]:
    """(detail, code) of an error body in any of the usual shapes; ("", None) if it says nothing."""
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, dict):
        return "", None
    error = body.get("error", body)
    if isinstance(error, str):
        return _short(error), None
    if not isinstance(error, dict):
        return "", None
    detail = next((error[key] for key in ("message", "detail", "msg") if isinstance(error.get(key), str)), "")
    code = next((error[key] for key in ("code", "type", "status") if error.get(key) not in (None, "")), None)
    return _short(detail), None if code is None else str(code)[:100]


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= DETAIL_LENGTH else f"{words[: DETAIL_LENGTH - 1]}…"


def retry_after(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Seconds to wait, from `retry-after-ms` or `retry-after` (seconds or an HTTP date); None if not said."""
    try:
        if "retry-after-ms" in headers:
            return _positive(float(headers["retry-after-ms"]) / 1000)
        said = headers.get("retry-after", "").strip()
        if not said:
            return None
        try:
            return _positive(float(said))
        except ValueError:
            moment = parsedate_to_datetime(said).timestamp()
            return max(0.0, moment - (time.time() if now is None else now))
    except (ValueError, TypeError, OverflowError):
        return None


def _positive(seconds: float) -> float | None:
    return seconds if seconds >= 0 and math.isfinite(seconds) else None
