"""Faults of the causes of failed turns, and of systemError without a cause."""

from harness.faults.base import Fault
from harness.faults.changes import first
from harness.faults.operators import edit
from harness.faults.selectors import Selector, notification, turn_completed
from harness.protocol.values import dig

ERROR = ("params", "turn", "error")


def failed_turn(info: str) -> Selector:
    """Select the end of a failed turn with this agentErrorInfo."""
    return turn_completed("failed").where(
        lambda _, f: dig(f.params, "turn", "error", "agentErrorInfo") == info, f"as {info}"
    )


def thread_becomes_idle() -> Selector:
    """Select the notification that a thread is idle."""
    return notification("thread/status/changed").where(
        lambda _, f: dig(f.params, "status", "type") == "idle", "idle"
    )


FAULTS: tuple[Fault, ...] = (
    Fault(
        "refused-caller-is-a-bad-request",
        rule="turn-error.info-fits",
        on="causes",
        reason="Unauthorized is the given word for a caller who is not known.",
        change=first(failed_turn("Unauthorized"), edit(*ERROR, "agentErrorInfo", to="BadRequest")),
    ),
    Fault(
        "unreachable-model-is-other",
        rule="turn-error.info-fits",
        on="causes",
        reason="HttpConnectionFailed is the given word for a model that cannot be reached.",
        change=first(
            failed_turn("HttpConnectionFailed"), edit(*ERROR, "agentErrorInfo", to="Other")
        ),
    ),
    Fault(
        "cause-not-told",
        rule="turn-error.tells-cause",
        on="causes",
        reason="A user who is not told the model's own words cannot know what to do.",
        change=first(
            failed_turn("Unauthorized"),
            edit(*ERROR, "additionalDetails", to="something went wrong"),
        ),
    ),
    Fault(
        "system-error-after-a-good-turn",
        rule="status.system-error-met",
        on="plain-turn",
        reason="systemError means that the thread met a system error.",
        change=first(thread_becomes_idle(), edit("params", "status", to={"type": "systemError"})),
    ),
)
