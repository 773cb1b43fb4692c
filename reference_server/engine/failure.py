"""TurnErrors for the failures of a turn.

Source: session-protocol "TurnError", "Errors" 1-2.
"""

from typing import Any, cast

from harness.protocol.wire.error import TurnError
from reference_server.model.errors import ModelError
from reference_server.refusal import describe_disk_error

MODEL_CALLS_LIMIT = 50
"""Maximum model calls of one turn or review, for a model that never stops calling tools."""
TURN_TEXT_LIMIT = 32 << 20
"""Maximum characters that a turn may add to the conversation, which each model call holds."""


def too_many_calls(caller: str, unit: str) -> ModelError:
    """Return the failure of a turn in which `caller` made MODEL_CALLS_LIMIT calls in one `unit`."""
    return ModelError(
        f"The {caller} does not come to an end",
        "Other",
        f"{MODEL_CALLS_LIMIT} model calls in one {unit}",
    )


def count_characters(items: list[dict[str, Any]]) -> int:
    """Return the number of characters of items; images have their own limit."""
    total = 0
    for item in items:
        total += sum(len(value) for value in item.values() if isinstance(value, str))
        for parts in (item.get("content"), item.get("summary"), item.get("output")):
            if isinstance(parts, list):
                texts = [part.get("text") for part in cast("list[Any]", parts) if _is_object(part)]
                total += sum(len(text) for text in texts if isinstance(text, str))
    return total


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def turn_too_long() -> ModelError:
    """Return the failure of a turn that added more than TURN_TEXT_LIMIT to the conversation."""
    return ModelError(
        "The turn has grown too long",
        "ContextWindowExceeded",
        f"its calls, outputs and messages have more than {TURN_TEXT_LIMIT:,} characters together",
    )


def turn_error(failure: ModelError) -> TurnError:
    """Return the error of a model call that is not retried."""
    return TurnError(
        message=failure.message,
        agent_error_info=failure.info,
        additional_details=failure.details,
    )


def retry_error(failure: ModelError, count: str) -> TurnError:
    """Return the error of a model call that is retried; `count` reads like `2/5`."""
    return TurnError(
        message=f"{failure.message}; trying again ({count})",
        agent_error_info=failure.info,
        additional_details=failure.details,
    )


def internal_error(cause: BaseException) -> TurnError:
    """Return the error of a failure in this server, such as of its disk."""
    if isinstance(cause, OSError):
        return TurnError(
            message="The server could not use its disk",
            agent_error_info="Other",
            additional_details=describe_disk_error(cause),
        )
    return TurnError(
        message="The server failed",
        agent_error_info="Other",
        additional_details=f"{type(cause).__name__}: {cause}",
    )
