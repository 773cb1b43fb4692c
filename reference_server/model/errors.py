"""What can go wrong with a model call, and how the protocol names it.

Here lives the one error type of the model client, and the tables from HTTP status, provider's code
and transport cause to AgentErrorInfo. Source: session-protocol "TurnError"; which cause has which
value is not shown there beyond the names.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from harness.wire.error import AgentErrorInfo

Phase = Literal["request", "stream"]
"""Which budget a retry is taken from: before the answer began, or while it streamed."""

DETAILS_LIMIT = 2000
"""Characters of a provider's words that are passed on."""


@dataclass(eq=False)
class ModelError(Exception):
    """One model call failed. `retry_after`: seconds the provider asked to wait, if it did."""

    message: str
    info: AgentErrorInfo
    details: str
    phase: Phase = "request"
    retryable: bool = False
    retry_after: float | None = None

    def __str__(self) -> str:
        return f"{self.message}: {self.details}"


_BY_CODE: dict[str, tuple[AgentErrorInfo, bool]] = {
    "context_length_exceeded": ("ContextWindowExceeded", False),
    "usage_limit_reached": ("UsageLimitExceeded", False),
    "insufficient_quota": ("UsageLimitExceeded", False),
    "invalid_api_key": ("Unauthorized", False),
    "invalid_prompt": ("BadRequest", False),
    "invalid_request_error": ("BadRequest", False),
    "rate_limit_exceeded": ("Other", True),
    "server_error": ("InternalServerError", True),
    "server_is_overloaded": ("InternalServerError", True),
}
"""Provider's code (or error type) -> classification, and whether another try may help."""


def connection_failed(cause: BaseException, *, retryable: bool = True) -> ModelError:
    """No connection, or none that took the request."""
    return ModelError(
        "The connection to the model failed",
        "HttpConnectionFailed",
        describe(cause),
        retryable=retryable,
    )


def no_address(provider: str) -> ModelError:
    """Nothing says where the model is."""
    return ModelError(
        "No model is configured",
        "HttpConnectionFailed",
        f"set PROVIDER_BASE_URL, or base_url of [model_providers.{provider}] in config.toml",
    )


def stream_broken(details: str) -> ModelError:
    """The stream ended, broke or fell silent before the answer was complete."""
    return ModelError(
        "The model's response stream was disconnected",
        "ResponseStreamDisconnected",
        details,
        phase="stream",
        retryable=True,
    )


def http_failed(status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
    """The provider answered with an error status."""
    code, words = _error_of_body(body)
    info, retryable = _classify_status(status, code)
    return ModelError(
        f"The model answered with HTTP status {status}",
        info,
        words[:DETAILS_LIMIT] or f"HTTP status {status} without a text",
        retryable=retryable,
        retry_after=_retry_after(headers),
    )


def response_failed(error: Mapping[str, Any]) -> ModelError:
    """The stream reported `response.failed`."""
    code = str(error.get("code") or error.get("type") or "unknown")
    info, retryable = _BY_CODE.get(code, ("Other", False))
    return ModelError(
        f"The model reported a failure ({code})",
        info,
        str(error.get("message") or code)[:DETAILS_LIMIT],
        phase="stream",
        retryable=retryable,
    )


def response_incomplete(reason: str) -> ModelError:
    """The stream reported `response.incomplete`: the model will say no more."""
    return ModelError("The model's answer is incomplete", "Other", reason, phase="stream")


def describe(cause: BaseException) -> str:
    """Put a cause in words; some exceptions have none of their own."""
    return f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__


def _classify_status(status: int, code: str) -> tuple[AgentErrorInfo, bool]:
    if code in _BY_CODE and status in (400, 413, 429):
        return _BY_CODE[code]
    match status:
        case 401 | 403:
            return "Unauthorized", False
        case 429:
            return "Other", True
        case 400 | 422:
            return "BadRequest", False
        case _ if status >= 500:
            return "InternalServerError", True
        case _:
            return "Other", False


def _error_of_body(body: bytes) -> tuple[str, str]:
    """Read `{"error": {"code", "type", "message"}}`; any other body is its own words."""
    text = body.decode(errors="replace").strip()
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return "", text
    error: Any = cast("dict[str, Any]", value).get("error") if isinstance(value, dict) else None
    if not isinstance(error, dict):
        return "", text
    fields = cast("dict[str, Any]", error)
    code = str(fields.get("code") or fields.get("type") or "")
    words = str(fields.get("message") or "")
    return code, f"{code}: {words}" if code and words else words or code or text


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Read Retry-After: seconds, or a date (RFC 9110, 10.2.3)."""
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        return _seconds_until(value, headers.get("date"))
    return seconds if 0 <= seconds < float("inf") else None


def _seconds_until(date: str, now: str | None) -> float | None:
    """Compare two dates of the same clock, the provider's own."""
    from email.utils import parsedate_to_datetime

    try:
        wait = parsedate_to_datetime(date) - parsedate_to_datetime(now or "")
    except (ValueError, TypeError):
        return None
    return max(0.0, wait.total_seconds())
