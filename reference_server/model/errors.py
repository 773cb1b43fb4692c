"""Failures of a model call, and their AgentErrorInfo.

Source: session-protocol "TurnError", which shows the values without their causes.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from harness.protocol.wire.error import AgentErrorInfo
from reference_server.brief import brief
from reference_server.model.secrets import Secrets
from reference_server.rejected import Rejects

Phase = Literal["request", "stream"]
"""Phase in which a call failed: before the answer or in its stream, with separate retries."""

MESSAGE_LIMIT = 200
DETAILS_LIMIT = 2000
"""Maximum characters of a provider's error text that are passed on."""
MAX_QUOTED_CHARACTERS = 200
"""Maximum characters quoted from an answer that is not an event stream."""


@dataclass(eq=False)
class ModelError(Exception):
    """A failed model call. `retry_after`: seconds after which the provider allows a retry.

    `rejects`: the kind of content that the provider will reject in later calls too, None for
    another cause. `is_cut`: the details are only the beginning of a longer text. `for_clients`
    redacts them before it shortens them to `limit` characters, since a secret that is cut in two
    could not be found. `status`: of HTTP, 0 without one; `code`: of the provider, "" without one.
    """

    message: str
    info: AgentErrorInfo
    details: str
    phase: Phase = "request"
    retryable: bool = False
    retry_after: float | None = None
    limit: int = DETAILS_LIMIT
    rejects: Rejects | None = None
    is_cut: bool = False
    status: int = 0
    code: str = ""

    def for_clients(self, secrets: Secrets) -> "ModelError":
        """Return the error for clients: with secrets redacted first, then shortened."""
        details = secrets.redact(self.details, cut=self.is_cut)
        return replace(
            self,
            message=secrets.redact(self.message)[:MESSAGE_LIMIT],
            details=details[: self.limit],
            is_cut=False,
        )

    def __str__(self) -> str:
        return f"{self.message}: {self.details}"


ReadFailure = Callable[[ModelError], ModelError]
"""Returns a failed call as the engine sees it, such as with another choice whether to retry."""


BY_CODE: dict[str, tuple[AgentErrorInfo, bool]] = {
    "context_length_exceeded": ("ContextWindowExceeded", False),
    "usage_limit_reached": ("UsageLimitExceeded", False),
    "usage_limit_exceeded": ("UsageLimitExceeded", False),
    "insufficient_quota": ("UsageLimitExceeded", False),
    "billing_hard_limit_reached": ("UsageLimitExceeded", False),
    "invalid_api_key": ("Unauthorized", False),
    "invalid_prompt": ("BadRequest", False),
    "model_not_found": ("BadRequest", False),
    "rate_limit_exceeded": ("Other", True),
    "server_is_overloaded": ("InternalServerError", True),
}
"""Classification and whether to retry, by the provider's code. Takes precedence over the status."""

BY_KIND: dict[str, tuple[AgentErrorInfo, bool]] = {
    "authentication_error": ("Unauthorized", False),
    "invalid_request": ("BadRequest", False),
    "invalid_request_error": ("BadRequest", False),
    "server_error": ("InternalServerError", True),
}
"""The same for codes of a whole kind of errors; an HTTP status takes precedence over these."""

REJECTED_BY_CODE: dict[str, Rejects] = {
    "context_length_exceeded": "size",
    "string_above_max_length": "size",
    "invalid_prompt": "text",
    "invalid_request": "content",
    "invalid_request_error": "content",
}
"""Rejected kind of content by code; any other code with `image` in it means "content"."""
REJECTING_STATUSES: dict[int, Rejects] = {
    400: "content",
    413: "size",
    415: "content",
    422: "content",
}
"""The same by HTTP status, if the code is unknown."""

BY_STATUS: dict[int, tuple[AgentErrorInfo, bool]] = {
    400: ("BadRequest", False),
    401: ("Unauthorized", False),
    402: ("UsageLimitExceeded", False),
    403: ("Unauthorized", False),
    408: ("Other", True),
    413: ("BadRequest", False),
    422: ("BadRequest", False),
    425: ("Other", True),
    429: ("Other", True),
}
"""Classification and whether to retry, by HTTP status. From 500 on: InternalServerError, retry."""


def connection_failed(details: str, *, retryable: bool) -> ModelError:
    """Return the error for a connection that failed, or a request that could not be sent."""
    return ModelError(
        "The connection to the model failed",
        "HttpConnectionFailed",
        details,
        retryable=retryable,
    )


def cannot_connect(details: str) -> ModelError:
    """Return the error for a setting that makes every connection fail, as of a proxy or TLS."""
    return ModelError("The connection to the model failed", "HttpConnectionFailed", details)


def no_address(provider: str) -> ModelError:
    """Return the error for a provider without an address."""
    return ModelError(
        "No model is configured",
        "HttpConnectionFailed",
        f"set PROVIDER_BASE_URL, or base_url of [model_providers.{brief(provider)}] in config.toml",
    )


def bad_key(provider: str) -> ModelError:
    """Return the error for a key that no header can hold, without the key."""
    return ModelError(
        "The key of the model's provider cannot be sent",
        "Unauthorized",
        f"the key of {brief(provider)}, from PROVIDER_API_KEY or the variable that env_key names, "
        "holds a line end or another character that no header may have",
    )


def stream_broken(details: str) -> ModelError:
    """Return the error for a stream that ended before the answer was complete."""
    return ModelError(
        "The model's response stream was disconnected",
        "ResponseStreamDisconnected",
        details,
        phase="stream",
        retryable=True,
    )


def not_a_stream(content_type: str, beginning: bytes, *, is_complete: bool) -> ModelError:
    """Return the error for an answer without events, such as the page of a proxy.

    `is_complete`: `beginning` is the whole body.
    """
    excerpt = beginning.decode(errors="replace").strip()
    problem = f"the answer is no stream of events: {content_type or 'no type'}"
    description = f"{problem}, beginning " if excerpt else f"{problem}, and empty"
    return replace(
        stream_broken(description + excerpt),
        limit=len(description) + MAX_QUOTED_CHARACTERS,
        is_cut=not is_complete,
    )


def unreadable_encoding(encoding: str) -> ModelError:
    """Return the error for an answer in an unsupported encoding."""
    return stream_broken(
        f"the answer is encoded as {encoding}, which was not asked for (Accept-Encoding: identity) "
        "and cannot be read; a proxy before the model must pass it on unchanged"
    )


def http_failed(
    status: int, headers: Mapping[str, str], body: bytes, *, is_complete: bool = True
) -> ModelError:
    """Return the error for an HTTP error status; `is_complete`: the whole body was read."""
    code, words, parameter = _error_of_body(body)
    info, retryable = _classify_status(status, code)
    if status < 400 and (target := headers.get("location")):
        words = f"it redirects to {target}; base_url should name that address"
    return ModelError(
        f"The model answered with HTTP status {status}",
        info,
        words or f"HTTP status {status} without a text",
        retryable=retryable,
        retry_after=_retry_after(headers),
        rejects=_rejects(code, parameter, status),
        is_cut=not is_complete,
        status=status,
        code=code,
    )


def response_failed(error: Mapping[str, Any]) -> ModelError:
    """Return the error for `response.failed`."""
    code = _code_of(error) or "unknown"
    info, retryable = BY_CODE.get(code) or BY_KIND.get(code, ("Other", False))
    return ModelError(
        f"The model reported a failure ({code})",
        info,
        str(error.get("message") or code),
        phase="stream",
        retryable=retryable,
        rejects=_rejects(code, str(error.get("param") or "")),
        code=code,
    )


def response_incomplete(reason: str) -> ModelError:
    """Return the error for `response.incomplete`."""
    return ModelError("The model's answer is incomplete", "Other", reason, phase="stream")


def describe(cause: BaseException) -> str:
    """Return the text of an exception, or its type's name if it has none."""
    return f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__


def _classify_status(status: int, code: str) -> tuple[AgentErrorInfo, bool]:
    if code in BY_CODE:
        return BY_CODE[code]
    if status >= 500:
        return "InternalServerError", True
    return BY_STATUS.get(status) or ("Other", False)


def _rejects(code: str, parameter: str, status: int = 0) -> Rejects | None:
    """Return the kind of content that a provider rejects; None for another cause of its error.

    `parameter`: the member of the request that the error names, "" for none.
    """
    if parameter and not parameter.startswith("input"):
        return None
    if code in REJECTED_BY_CODE:
        return REJECTED_BY_CODE[code]
    if "image" in code:
        return "content"
    return None if code in BY_CODE else REJECTING_STATUSES.get(status)


def _error_of_body(body: bytes) -> tuple[str, str, str]:
    """Return code, message and param of `{"error": {…}}`; any other body is the message."""
    text = body.decode(errors="replace").strip()
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return "", text, ""
    error: Any = cast("dict[str, Any]", value).get("error") if isinstance(value, dict) else None
    if not isinstance(error, dict):
        return "", text, ""
    fields = cast("dict[str, Any]", error)
    code = _code_of(fields)
    words = str(fields.get("message") or "")
    description = f"{code}: {words}" if code and words else words or code or text
    return code, description, str(fields.get("param") or "")


def _code_of(error: Mapping[str, Any]) -> str:
    """Return the `code` of an error, or its `type` if the code is missing or unknown."""
    codes = [str(error[key]) for key in ("code", "type") if error.get(key)]
    known_codes = [code for code in codes if code in BY_CODE]
    return next(iter(known_codes or codes), "")


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of Retry-After, a number or a date (RFC 9110, 10.2.3); None without."""
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        return _seconds_until(value, headers.get("date"))
    return seconds if 0 <= seconds < float("inf") else None


def _seconds_until(date: str, now: str | None) -> float | None:
    """Return the seconds from `now` (a `Date` header), else the clock, to a date; None if wrong."""
    from email.utils import parsedate_to_datetime

    try:
        until = parsedate_to_datetime(date).timestamp()
        wait = until - (parsedate_to_datetime(now).timestamp() if now else time.time())
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0.0, wait)
