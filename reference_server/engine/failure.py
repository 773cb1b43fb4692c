"""Failures in the words of the protocol.

Here lives the making of a TurnError. Source: session-protocol "TurnError", "Errors" 1-2.
"""

from harness.wire.error import TurnError
from reference_server.model.errors import ModelError
from reference_server.refusal import disk_failure

MODEL_CALLS_LIMIT = 50
"""Model calls of one turn or review; a model that goes on calling tools is stopped there."""


def endless(who: str, what: str) -> ModelError:
    """Give the failure of a turn or review (`what`) whose model (`who`) made all those calls."""
    return ModelError(
        f"The {who} does not come to an end",
        "Other",
        f"{MODEL_CALLS_LIMIT} model calls in one {what}",
    )


def turn_error(failure: ModelError) -> TurnError:
    """Give the error of a model call that is not tried again."""
    return TurnError(
        message=failure.message,
        agent_error_info=failure.info,
        additional_details=failure.details,
    )


def retry_error(failure: ModelError, count: str) -> TurnError:
    """Give the error of a model call that is tried again; `count` reads like `2/5`."""
    return TurnError(
        message=f"{failure.message}; trying again ({count})",
        agent_error_info=failure.info,
        additional_details=failure.details,
    )


def internal_error(cause: BaseException) -> TurnError:
    """Give the error of a failure of this server itself."""
    if isinstance(cause, OSError):
        return TurnError(
            message="The server could not use its disk",
            agent_error_info="Other",
            additional_details=disk_failure(cause),
        )
    return TurnError(
        message="The server failed",
        agent_error_info="Other",
        additional_details=f"{type(cause).__name__}: {cause}",
    )
