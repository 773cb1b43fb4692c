"""TurnError, its classification, and the `error` notification.

Source: session-protocol "TurnError", "Events", "Errors" 1-2.
"""

from typing import Literal

from harness.protocol.wire.base import Json, WireModel

AgentErrorInfo = Literal[
    "ContextWindowExceeded",
    "UsageLimitExceeded",
    "HttpConnectionFailed",
    "ResponseStreamDisconnected",
    "Unauthorized",
    "BadRequest",
    "InternalServerError",
    "Other",
]
"""The values in the document, which says that its list is not complete."""


class TurnError(WireModel):
    """The failure of a turn or of one attempt; other servers may extend `agentErrorInfo`."""

    message: str
    agent_error_info: AgentErrorInfo | Json = None
    additional_details: str | None = None


class ErrorNotification(WireModel):
    """Params of `error`: a mid-turn error, and whether the server tries again."""

    error: TurnError
    will_retry: bool
    thread_id: str
    turn_id: str
