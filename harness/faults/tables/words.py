"""Faults of what a server must know because the text lists it: words and methods."""

from harness.faults import stored as op
from harness.faults.base import fault
from harness.faults.scene import NotApplied, Scene
from harness.trace.frame import Frame
from harness.trace.trace import Trace
from harness.trace.values import dig, obj, text


def _refuse(scene: Scene, method: str, name: str, *words: str) -> Trace:
    """An error for the first request with one of these words, and nothing more of what it made."""

    def fits(answer: Frame) -> bool:
        return obj(scene.request_of(answer).params).get(name) in words

    answer = scene.answers(method, fits)[0]
    kind = "turn" if method == "turn/start" else "thread"
    made = text(dig(answer.result, kind, "id"))
    request = scene.request_of(answer)
    gone = [
        frame
        for frame in scene.trace.frames
        if frame.seq > answer.seq and made and made in _named(frame)
    ]
    if any(not frame.from_target for frame in gone):
        raise NotApplied(f"a {kind} of which nothing more is asked")
    # The status of the thread while that turn ran.
    if kind == "turn" and gone:
        last = gone[-1].seq
        gone += [
            frame
            for frame in scene.notified("thread/status/changed")
            if request.seq < frame.seq < last and frame not in gone
        ]
    error = {"code": -32602, "message": f"invalid {name}"}
    refused = op.edit(scene.trace, answer, (), {"id": answer.id, "error": error})
    return op.drop(refused, *gone)


def _named(frame: Frame) -> set[str]:
    """The ids of the thread and the turn that a message names."""
    params = obj(frame.params)
    places = (("threadId",), ("turnId",), ("thread", "id"), ("turn", "id"))
    return {text(dig(params, *place)) for place in places}


@fault(
    "approval-policy-of-the-text-refused",
    rule="word.taken",
    on="words",
    reason="The five words for an approval policy are listed.",
)
def policy_refused(scene: Scene) -> Trace:
    """A turn/start with one of them is answered by an error, the same without it was not."""
    return _refuse(scene, "turn/start", "approvalPolicy", "reject", "untrusted")


@fault(
    "effort-of-the-text-refused",
    rule="word.taken",
    on="words",
    reason="The three words for an effort are listed; a model may not have them, so SHOULD.",
)
def effort_refused(scene: Scene) -> Trace:
    """A turn/start with one of them is answered by an error."""
    return _refuse(scene, "turn/start", "effort", "low", "medium", "high")


@fault(
    "personality-of-the-text-refused",
    rule="word.taken",
    on="words",
    reason="The three words for a personality are listed; a model may not have them, so SHOULD.",
)
def personality_refused(scene: Scene) -> Trace:
    """A thread/start with one of them is answered by an error."""
    return _refuse(scene, "thread/start", "personality", "friendly", "pragmatic", "none")


@fault(
    "method-of-every-server-unknown",
    rule="method.offered",
    on="words",
    reason="Reading a thread is what every server offers.",
)
def read_unknown(scene: Scene) -> Trace:
    """Every thread/read is refused as an unknown method."""
    broken = scene.trace
    for answer in scene.answers("thread/read"):
        error = {"code": -32601, "message": "Method not found"}
        broken = op.edit(broken, answer, (), {"id": answer.id, "error": error})
    return broken
