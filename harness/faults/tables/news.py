"""Faults of what the client is told of the model's side: tokens, plans, reroutes, retries."""

from harness.faults import stored as op
from harness.faults.base import fault
from harness.faults.scene import NotApplied, Scene
from harness.trace.frame import Frame
from harness.trace.trace import Mark, Trace
from harness.trace.values import obj, text
from harness.trace.views import TurnView

USAGE = "thread/tokenUsage/updated"
PLAN = "turn/plan/updated"


def _turn(scene: Scene, brought: str) -> tuple[TurnView, list[Mark]]:
    """A completed turn whose model calls brought something, and the ends of its calls."""
    if len({frame.connection for frame in scene.trace.frames}) > 1:
        raise NotApplied("one connection")
    for turn in scene.conversation.turns.values():
        if turn.request is None or turn.status != "completed":
            continue
        ends = [
            mark
            for mark in scene.trace.marks_of("model-end")
            if turn.request.seq <= mark.after <= turn.completed[0].seq
        ]
        if any(mark.data.get(brought) for mark in ends):
            return turn, ends
    raise NotApplied(f"no turn whose model brought {brought}")


def _of(turn: TurnView, frames: list[Frame]) -> list[Frame]:
    """Those of the notifications that name the turn."""
    found = [frame for frame in frames if text(obj(frame.params).get("turnId")) == turn.id]
    if not found:
        raise NotApplied("none of the turn")
    return found


@fault(
    "usage-not-told",
    rule="turn.usage-told",
    on="told",
    reason="Token usage that is updated during a turn is told.",
)
def usage_silent(scene: Scene) -> Trace:
    """No token counts at all."""
    _turn(scene, "usage")
    return op.drop(scene.trace, *scene.notified(USAGE))


@fault(
    "plan-not-told",
    rule="turn.plan-told",
    on="told",
    reason="turn/plan/updated comes each time the agent shares or changes its plan.",
)
def plan_silent(scene: Scene) -> Trace:
    """The last plan of a turn is not told."""
    turn, _ = _turn(scene, "plans")
    return op.drop(scene.trace, _of(turn, scene.notified(PLAN))[-1])


@fault(
    "plan-told-wrong",
    rule="turn.plan-told",
    on="told",
    reason="The plan in turn/plan/updated is the agent's.",
)
def plan_wrong(scene: Scene) -> Trace:
    """A plan without its steps."""
    turn, _ = _turn(scene, "plans")
    frame = _of(turn, scene.notified(PLAN))[0]
    return op.edit(scene.trace, frame, ("params", "plan"), [])


@fault(
    "reroute-not-told",
    rule="turn.reroute-told",
    on="told",
    reason="model/rerouted comes when another model answers.",
)
def reroute_silent(scene: Scene) -> Trace:
    """No model/rerouted."""
    turn, _ = _turn(scene, "answers")
    return op.drop(scene.trace, *_of(turn, scene.notified("model/rerouted")))


@fault(
    "failure-not-told",
    rule="error.told-mid-turn",
    on="retried",
    reason="An error within a turn is told by the error notification.",
)
def failure_silent(scene: Scene) -> Trace:
    """An answer that broke off, and no error."""
    turn, ends = _turn(scene, "outcome")
    broken = [mark for mark in ends if mark.data.get("outcome") == "disconnected"]
    if not broken or not turn.errors:
        raise NotApplied("no answer that broke off and was told")
    return op.drop(scene.trace, *turn.errors)


@fault(
    "retry-not-made",
    rule="error.retry-follows",
    on="retried",
    reason="willRetry says that the turn goes on by trying again.",
)
def no_retry(scene: Scene) -> Trace:
    """The calls after the one that failed were never made."""
    turn, ends = _turn(scene, "outcome")
    if not any(obj(error.params).get("willRetry") is True for error in turn.errors):
        raise NotApplied("no retry was announced")
    calls = [mark.data.get("call") for mark in ends]
    first = ends[0].data.get("outcome")
    if first == "completed":
        raise NotApplied("the first call did not fail")
    return op.unmark(scene.trace, lambda mark: mark.data.get("call") in calls[1:])


@fault(
    "plan-of-no-turn",
    rule="turn.notice-known-turn",
    on="told",
    reason="The turnId of a plan is that of a turn that was announced.",
)
def plan_of_no_turn(scene: Scene) -> Trace:
    """A plan with the id of no turn."""
    frame = scene.notified(PLAN)[0]
    return op.edit(scene.trace, frame, ("params", "turnId"), "turn_987654321")


@fault(
    "reroute-on-another-thread",
    rule="turn.known-thread",
    on="told",
    reason="What is told of a turn names the thread that the turn was started on.",
)
def reroute_elsewhere(scene: Scene) -> Trace:
    """model/rerouted names another thread."""
    turn = scene.turn()
    frame = _of(turn, scene.notified("model/rerouted"))[0]
    return op.edit(scene.trace, frame, ("params", "threadId"), "thr_987654321")
