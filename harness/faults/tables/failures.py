"""Faults of what failed turns say of their cause, and of the status of threads that met none."""

from harness.faults import stored as op
from harness.faults.base import fault
from harness.faults.scene import NotApplied, Scene
from harness.trace.trace import Trace
from harness.trace.values import dig
from harness.trace.views import TurnView

ERROR = ("params", "turn", "error")


def _failed(scene: Scene, info: str) -> TurnView:
    """A failed turn with this classification."""

    def classified(turn: TurnView) -> bool:
        return dig(turn.completed[0].params, "turn", "error", "agentErrorInfo") == info

    return scene.turn("failed", where=classified)


@fault(
    "refused-caller-is-a-bad-request",
    rule="turn-error.info-fits",
    on="causes",
    reason="Unauthorized is the given word for a caller who is not known.",
)
def misclassified(scene: Scene) -> Trace:
    """Another given word."""
    end = _failed(scene, "Unauthorized").completed[0]
    return op.edit(scene.trace, end, (*ERROR, "agentErrorInfo"), "BadRequest")


@fault(
    "unreachable-model-is-other",
    rule="turn-error.info-fits",
    on="causes",
    reason="HttpConnectionFailed is the given word for a model that cannot be reached.",
)
def unnamed(scene: Scene) -> Trace:
    """Other, where there is a word."""
    end = _failed(scene, "HttpConnectionFailed").completed[0]
    return op.edit(scene.trace, end, (*ERROR, "agentErrorInfo"), "Other")


@fault(
    "cause-not-told",
    rule="turn-error.tells-cause",
    on="causes",
    reason="A user who is not told the model's own words cannot know what to do.",
)
def untold(scene: Scene) -> Trace:
    """Details that say nothing."""
    end = _failed(scene, "Unauthorized").completed[0]
    return op.edit(scene.trace, end, (*ERROR, "additionalDetails"), "something went wrong")


@fault(
    "system-error-after-a-good-turn",
    rule="status.system-error-met",
    on="plain-turn",
    reason="systemError means that the thread met a system error.",
)
def no_error_met(scene: Scene) -> Trace:
    """systemError where the thread became idle."""
    changes = [f for f in scene.notified("thread/status/changed") if _status(f.params) == "idle"]
    if not changes:
        raise NotApplied("no thread became idle")
    return op.edit(scene.trace, changes[-1], ("params", "status"), {"type": "systemError"})


def _status(params: object) -> object:
    return dig(params, "status", "type")
