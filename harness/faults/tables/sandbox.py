"""Faults of the sandbox that a thread or a turn is asked to have."""

from harness.faults import stored as op
from harness.faults.base import fault
from harness.faults.scene import NotApplied, Scene
from harness.trace.frame import Frame
from harness.trace.trace import Trace
from harness.trace.values import dig, obj, text

REFUSAL = {"code": -32602, "message": "unknown sandbox"}


def _refuse_thread(scene: Scene, *words: str) -> Trace:
    """An error for the thread/start of one of these words, and nothing more of its thread."""

    def fits(answer: Frame) -> bool:
        return obj(scene.request_of(answer).params).get("sandbox") in words

    answer = scene.answers("thread/start", fits)[0]
    thread_id = text(dig(answer.result, "thread", "id"))
    told = scene.notified(
        "thread/started", lambda f: text(dig(f.params, "thread", "id")) == thread_id
    )
    refused = op.edit(scene.trace, answer, (), {"id": answer.id, "error": REFUSAL})
    return op.drop(refused, *told)


@fault(
    "sandbox-word-refused",
    rule="thread.sandbox-taken",
    on="sandboxes",
    reason="read-only, workspace-write and danger-full-access are the words for a sandbox.",
)
def word_refused(scene: Scene) -> Trace:
    """A thread/start with one of them is answered by an error, the same without it was not."""
    return _refuse_thread(scene, "read-only", "workspace-write")


@fault(
    "sandbox-word-of-the-example-refused",
    rule="thread.sandbox-camel-taken",
    on="sandboxes",
    reason="An example passes a word in camelCase, so that to refuse it is worth recording.",
)
def camel_refused(scene: Scene) -> Trace:
    """A thread/start with a word in camelCase is answered by an error."""
    return _refuse_thread(scene, "readOnly", "workspaceWrite", "dangerFullAccess")


@fault(
    "sandbox-of-the-turn-refused",
    rule="turn.sandbox-policy-taken",
    on="sandboxes",
    reason="turn/start takes a sandboxPolicy.",
)
def policy_refused(scene: Scene) -> Trace:
    """The last turn/start is answered by an error, and nothing more is told."""

    def fits(answer: Frame) -> bool:
        return "sandboxPolicy" in obj(scene.request_of(answer).params)

    answer = scene.answers("turn/start", fits)[-1]
    rest = [frame for frame in scene.trace.frames if frame.seq > answer.seq]
    refused = op.edit(scene.trace, answer, (), {"id": answer.id, "error": REFUSAL})
    return op.drop(refused, *rest)


@fault(
    "sandbox-of-the-turn-ignored",
    rule="turn.sandbox-applies",
    on="sandboxes",
    reason="A turn whose sandboxPolicy is readOnly may not change a file without consent.",
)
def policy_ignored(scene: Scene) -> Trace:
    """The file change of such a turn is made."""
    for turn in scene.conversation.turns.values():
        policy = obj(turn.request.params).get("sandboxPolicy") if turn.request else None
        for item in turn.items.values():
            if item.type == "fileChange" and dig(policy, "type") == "readOnly":
                done = item.completed[0]
                made = op.edit(scene.trace, done, ("params", "item", "status"), "completed")
                params = {"threadId": turn.thread_id, "turnId": turn.id, "diff": "+++ b/made.txt"}
                diff = {"method": "turn/diff/updated", "params": params}
                return op.insert(made, after=made.frames[done.seq], message=diff)
    raise NotApplied("no file change in a turn that may only read")
