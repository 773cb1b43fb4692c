"""Faults of approval policies: asked or not, and what is done before the answer."""

from harness.faults import stored as op
from harness.faults.base import fault
from harness.faults.scene import NotApplied, Scene
from harness.faults.tables.approvals import COMMAND, FILE, exchange
from harness.trace.trace import Trace
from harness.trace.values import obj


@fault(
    "asked-under-never",
    rule="approval.never-asked",
    on="approved-command",
    reason="Under never the client is not asked.",
)
def asked_under_never(scene: Scene) -> Trace:
    """The thread was under never all the time."""
    return _under(scene, "untrusted", "never")


@fault(
    "asked-under-an-override-of-never",
    rule="approval.never-asked",
    on="on-request",
    reason="approvalPolicy of turn/start overrides the thread's.",
)
def asked_under_override(scene: Scene) -> Trace:
    """The turn with a question was under never by its own word."""
    return _overridden(scene, "on-request", "never")


@fault(
    "unasked-under-on-request",
    rule="approval.always-asked",
    on="on-request",
    reason="Under on-request the client is always asked.",
)
def unasked(scene: Scene) -> Trace:
    """The turn without a question was under on-request by its own word."""
    return _overridden(scene, "never", "on-request")


@fault(
    "output-before-the-answer",
    rule="approval.asks-before-acting",
    on="approved-command",
    reason="Nothing of the operation is done before the client has answered.",
)
def output_early(scene: Scene) -> Trace:
    """Output of the command while the client is still being asked."""
    one = exchange(scene, "accept", methods=(COMMAND,))
    deltas = scene.deltas(one.item)
    if not deltas:
        raise NotApplied("no output")
    return op.move(scene.trace, deltas[0], after=one.question)


@fault(
    "changed-before-the-answer",
    rule="approval.asks-before-acting",
    on="file-changes",
    reason="The diff of the turn has nothing of a change that the client is still asked about.",
)
def changed_early(scene: Scene) -> Trace:
    """The diff of the turn, told while the client is being asked."""
    one = exchange(scene, "accept", methods=(FILE,))
    told = [f for f in scene.notified("turn/diff/updated") if f.seq > one.done.seq]
    if not told:
        raise NotApplied("no diff")
    return op.insert(
        scene.trace,
        after=one.question,
        message={"method": told[0].method, "params": told[0].params},
    )


@fault(
    "asked-before-a-failure",
    rule="approval.failure-first",
    on="approved-command",
    reason="Under on-failure the client is asked when an operation has failed.",
)
def asked_unfailed(scene: Scene) -> Trace:
    """The thread was under on-failure all the time, with nothing confined."""
    return _under(scene, "untrusted", "on-failure")


@fault(
    "asked-under-reject",
    rule="approval.rejected",
    on="file-changes",
    reason="Under reject nothing is approved; that the client is asked at all is recorded.",
)
def asked_under_reject(scene: Scene) -> Trace:
    """The thread was under reject all the time."""
    return _under(scene, "untrusted", "reject")


def _under(scene: Scene, policy: str, other: str) -> Trace:
    """A thread with a question, under another policy from its start on."""
    exchange(scene)
    answer = scene.answers("thread/start", lambda f: obj(f.result).get("approvalPolicy") == policy)
    request = scene.request_of(answer[0])
    trace = op.edit(scene.trace, answer[0], ("result", "approvalPolicy"), other)
    return op.edit(trace, trace.frames[request.seq], ("params", "approvalPolicy"), other)


def _overridden(scene: Scene, policy: str, other: str) -> Trace:
    """The turn with an override, under another one."""
    for answer in scene.answers("turn/start"):
        request = scene.request_of(answer)
        if obj(request.params).get("approvalPolicy") == policy:
            return op.edit(scene.trace, request, ("params", "approvalPolicy"), other)
    raise NotApplied(f"no turn/start with {policy}")
