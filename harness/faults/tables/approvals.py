"""Faults of approvals: the sequence, the decisions, and what they leave for later."""

import copy
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from harness.faults import stored as op
from harness.faults.base import fault
from harness.faults.scene import NotApplied, Scene
from harness.trace.frame import Frame, Kind
from harness.trace.trace import Trace
from harness.trace.values import arr, dig, obj, text
from harness.trace.views import ItemView

COMMAND = "item/commandExecution/requestApproval"
FILE = "item/fileChange/requestApproval"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question, our decision, and the item it is about, started before and completed after."""

    question: Frame
    answer: Frame
    item: ItemView
    resolved: Frame

    @property
    def done(self) -> Frame:
        """The item's completion."""
        return self.item.completed[0]


def exchange(scene: Scene, *decisions: str, methods: Collection[str] = (COMMAND, FILE)) -> Exchange:
    """The first whole sequence with one of these decisions, while no other question was open."""
    for question in scene.trace.frames:
        if question.kind is not Kind.REQUEST or question.method not in methods:
            continue
        params = obj(question.params)
        turn = scene.conversation.turns.get(text(params.get("turnId")))
        answer = scene.conversation.answer_of(question)
        if turn is None or turn.reply is None or answer is None:
            continue
        item = turn.items.get(text(params.get("itemId")))
        if item is None or len(item.started) != 1 or len(item.completed) != 1:
            continue
        resolved = _resolved(scene, answer, item.completed[0])
        decided = text(dig(answer.result, "decision"))
        if len(resolved) == 1 and (not decisions or decided in decisions):
            return Exchange(question, answer, item, resolved[0])
    raise NotApplied(f"no approval with {' or '.join(decisions) or 'an answer'}")


def _resolved(scene: Scene, first: Frame, last: Frame) -> list[Frame]:
    return [
        frame
        for frame in scene.trace.frames[first.seq : last.seq]
        if frame.method == "serverRequest/resolved"
    ]


@fault(
    "asked-before-the-item-starts",
    rule="approval.order",
    on="approved-command",
    reason="The item that needs approval is started before the client is asked.",
)
def asked_early(scene: Scene) -> Trace:
    """The question, then item/started."""
    one = exchange(scene)
    return op.move(scene.trace, one.question, after=_before(scene, one.item.started[0]))


@fault(
    "resolved-before-the-answer",
    rule="approval.order",
    on="approved-command",
    reason="serverRequest/resolved follows the client's answer.",
)
def resolved_early(scene: Scene) -> Trace:
    """Resolved while the client is still being asked."""
    one = exchange(scene)
    return op.move(scene.trace, one.resolved, after=one.question)


@fault(
    "completed-before-the-answer",
    rule="approval.order",
    on="declined-command",
    reason="item/completed follows the client's answer.",
)
def completed_early(scene: Scene) -> Trace:
    """The item is completed while the client is still being asked."""
    one = exchange(scene)
    return op.move(scene.trace, one.done, after=one.question)


@fault(
    "resolved-after-the-item",
    rule="approval.order",
    on="approved-command",
    reason="item/completed follows serverRequest/resolved.",
)
def resolved_late(scene: Scene) -> Trace:
    """The item's completion, then serverRequest/resolved."""
    one = exchange(scene)
    return op.move(scene.trace, one.resolved, after=one.done)


@fault(
    "never-resolved",
    rule="approval.order",
    on="approved-command",
    reason="After the answer the server emits serverRequest/resolved.",
)
def never_resolved(scene: Scene) -> Trace:
    """No serverRequest/resolved."""
    return op.drop(scene.trace, exchange(scene).resolved)


@fault(
    "answer-without-effect",
    rule="approval.order",
    on="declined-command",
    reason="An answered question is resolved, and its item completed: here neither comes.",
)
def without_effect(scene: Scene) -> Trace:
    """Neither serverRequest/resolved nor item/completed."""
    one = exchange(scene)
    return op.drop(scene.trace, one.resolved, one.done)


@fault(
    "resolved-twice",
    rule="approval.order",
    on="approved-command",
    reason="One question is resolved once.",
)
def resolved_twice(scene: Scene) -> Trace:
    """serverRequest/resolved again."""
    return op.duplicate(scene.trace, exchange(scene).resolved)


@fault(
    "two-questions-one-resolved",
    rule="approval.order",
    on="asked-at-once",
    reason="Each of two answered questions is resolved.",
)
def one_resolved(scene: Scene) -> Trace:
    """Of two open questions one is never resolved."""
    resolved = scene.notified("serverRequest/resolved")
    if len(resolved) < 2:
        raise NotApplied("no two questions")
    return op.drop(scene.trace, resolved[1])


@fault(
    "asked-about-another-turn",
    rule="approval.names-item",
    on="file-changes",
    reason="An approval request names the turn of its item.",
)
def other_turn(scene: Scene) -> Trace:
    """A turn that nobody has heard of."""
    return op.edit(scene.trace, exchange(scene).question, ("params", "turnId"), "turn_404404")


@fault(
    "asked-about-another-thread",
    rule="approval.names-item",
    on="approved-command",
    reason="An approval request names the thread of its turn.",
)
def other_thread(scene: Scene) -> Trace:
    """A thread that is not the turn's."""
    return op.edit(scene.trace, exchange(scene).question, ("params", "threadId"), "thr_404404")


@fault(
    "asked-about-no-item",
    rule="approval.order",
    on="approved-command",
    reason="The item that the client is asked about has been started.",
)
def no_item(scene: Scene) -> Trace:
    """An item that never comes."""
    return op.edit(scene.trace, exchange(scene).question, ("params", "itemId"), "item_404404")


@fault(
    "asked-about-an-item-of-another-turn",
    rule="approval.names-item",
    on="file-changes",
    reason="An approval request names the turn of its item.",
)
def item_of_another_turn(scene: Scene) -> Trace:
    """The user's message of an earlier turn."""
    one = exchange(scene, "decline")
    earlier = [turn for turn in scene.conversation.turns.values() if turn is not one.item.turn]
    items = [item for turn in earlier for item in turn.items if item not in one.item.turn.items]
    if not items or not any(turn.completed for turn in earlier):
        raise NotApplied("no earlier turn with an item of its own")
    return op.edit(scene.trace, one.question, ("params", "itemId"), items[0])


@fault(
    "command-asked-as-file-change",
    rule="approval.request-of-type",
    on="declined-command",
    reason="Commands have a server request of their own.",
)
def wrong_request(scene: Scene) -> Trace:
    """The server request for file changes about a command."""
    one = exchange(scene, "accept", "decline", methods=(COMMAND,))
    return op.edit(scene.trace, one.question, ("method",), FILE)


@fault(
    "file-change-ends-in-progress",
    rule="approval.final-item",
    on="file-changes",
    reason="A file change that was asked about ends as completed, failed or declined.",
)
def file_in_progress(scene: Scene) -> Trace:
    """item/completed with the status of its start."""
    return _ends(scene, exchange(scene, methods=(FILE,)), "inProgress")


@fault(
    "command-ends-in-progress",
    rule="approval.final-item",
    on="declined-command",
    reason="item/completed carries the final item, and one in progress is not final.",
)
def command_in_progress(scene: Scene) -> Trace:
    """item/completed with the status of its start."""
    return _ends(scene, exchange(scene, methods=(COMMAND,)), "inProgress")


@fault(
    "accepted-and-declined",
    rule="approval.accepted-runs",
    on="approved-command",
    reason="accept lets the operation run.",
)
def accepted_declined(scene: Scene) -> Trace:
    """Declined after accept."""
    return _ends(scene, exchange(scene, "accept"), "declined")


@fault(
    "accepted-for-session-and-declined",
    rule="approval.accepted-runs",
    on="session-approval",
    reason="acceptForSession approves.",
)
def session_declined(scene: Scene) -> Trace:
    """Declined after acceptForSession."""
    return _ends(scene, exchange(scene, "acceptForSession"), "declined")


@fault(
    "declined-and-completed",
    rule="approval.denied-not-run",
    on="declined-command",
    reason="decline denies the operation.",
)
def declined_completed(scene: Scene) -> Trace:
    """Completed after decline."""
    return _ends(scene, exchange(scene, "decline"), "completed")


@fault(
    "cancelled-and-completed",
    rule="approval.denied-not-run",
    on="cancelled-command",
    reason="cancel denies the operation.",
)
def cancelled_completed(scene: Scene) -> Trace:
    """Completed after cancel."""
    return _ends(scene, exchange(scene, "cancel"), "completed")


@fault(
    "declined-and-failed",
    rule="approval.denied-status",
    on="declined-command",
    reason="An item whose operation was denied ends as declined.",
)
def declined_failed(scene: Scene) -> Trace:
    """Failed after decline."""
    return _ends(scene, exchange(scene, "decline"), "failed")


@fault(
    "declined-and-run",
    rule="approval.denied-not-run",
    on="declined-command",
    reason="decline denies the operation: the command prints nothing, and has no exit code.",
)
def declined_run(scene: Scene) -> Trace:
    """Output after decline, and the exit code of a command that went well."""
    one = exchange(scene, "decline", methods=(COMMAND,))
    params = {"threadId": one.item.turn.thread_id, "turnId": one.item.turn.id}
    output = {**params, "itemId": one.item.id, "delta": "done\n"}
    trace = op.edit(scene.trace, one.done, ("params", "item", "exitCode"), 0)
    message = {"method": "item/commandExecution/outputDelta", "params": output}
    return op.insert(trace, after=trace.frames[one.resolved.seq], message=message)


@fault(
    "declined-and-changed",
    rule="approval.denied-not-run",
    on="file-changes",
    reason="decline denies the operation: the diff of the turn has nothing of the change.",
)
def declined_changed(scene: Scene) -> Trace:
    """The diff of the turn has what was declined; nothing else has touched that file."""
    one = exchange(scene, "decline", methods=(FILE,))
    (started,), path, trace = one.item.started, "another/file.txt", scene.trace
    change = obj(arr(dig(started.params, "item", "changes"))[0])
    for frame in (started, one.done):
        there = ("params", "item", "changes", 0, "path")
        trace = op.edit(trace, trace.frames[frame.seq], there, path)
    added = text(change.get("diff"))
    diff = "".join(f"+{line}\n" for line in added.splitlines())
    params = {"threadId": one.item.turn.thread_id, "turnId": one.item.turn.id}
    message = {
        "method": "turn/diff/updated",
        "params": {**params, "diff": f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n{diff}"},
    }
    return op.insert(trace, after=trace.frames[one.done.seq], message=message)


@fault(
    "asked-after-cancel",
    rule="approval.cancel-ends-work",
    on="cancelled-command",
    reason="cancel interrupts the turn: another of its commands is not asked about any more.",
)
def asked_after_cancel(scene: Scene) -> Trace:
    """The next command of the turn is begun and asked about."""
    one = exchange(scene, "cancel")
    trace = op.insert(scene.trace, after=one.done, message=_again(one.question))
    return op.insert(trace, after=one.done, message=_again(one.item.started[0]))


def _again(frame: Frame) -> dict[str, Any]:
    """The same about another item, with another id."""
    params: dict[str, Any] = copy.deepcopy(obj(frame.params))
    if frame.kind is Kind.REQUEST:
        return {"method": frame.method, "id": 99, "params": {**params, "itemId": "the-next"}}
    return {
        "method": frame.method,
        "params": {**params, "item": {**params["item"], "id": "the-next"}},
    }


@fault(
    "cancelled-turn-goes-on",
    rule="approval.cancel-interrupts",
    on="cancelled-command",
    reason="cancel interrupts the turn.",
)
def cancel_goes_on(scene: Scene) -> Trace:
    """The turn is completed after cancel."""
    end = exchange(scene, "cancel").item.turn.completed[0]
    return op.edit(scene.trace, end, ("params", "turn", "status"), "completed")


@fault(
    "declined-turn-stops",
    rule="approval.decline-goes-on",
    on="declined-command",
    reason="To interrupt the turn is what cancel adds to decline.",
)
def decline_stops(scene: Scene) -> Trace:
    """The turn is interrupted after decline."""
    end = exchange(scene, "decline").item.turn.completed[0]
    return op.edit(scene.trace, end, ("params", "turn", "status"), "interrupted")


@fault(
    "session-approval-forgotten",
    rule="approval.session-remembered",
    on="session-approval",
    reason="acceptForSession is remembered: the same command is not asked about again.",
)
def forgotten(scene: Scene) -> Trace:
    """A later question turns out to be about the same command."""
    first = exchange(scene, "acceptForSession", methods=(COMMAND,))
    command, cwd = (obj(first.question.params).get(key) for key in ("command", "cwd"))
    later = scene.frame(Kind.REQUEST, lambda f: f.method == COMMAND and f.seq > first.done.seq)
    trace = op.edit(scene.trace, later, ("params", "command"), command)
    return op.edit(trace, trace.frames[later.seq], ("params", "cwd"), cwd)


@fault(
    "accepted-once-and-remembered",
    rule="approval.asked-again",
    on="accepted-twice",
    reason="accept is for once: the same command is asked about when it comes again.",
)
def remembered(scene: Scene) -> Trace:
    """The unasked command turns out to be the one that was accepted."""
    one = exchange(scene, "accept", methods=(COMMAND,))
    shows = obj(dig(one.done.params, "item"))
    for item in one.item.turn.items.values():
        asked = scene.conversation.questions_of(item.turn, item.id)
        if item.type != "commandExecution" or asked or len(item.completed) != 1:
            continue
        trace = scene.trace
        for frame in (*item.started, *item.completed):
            at = ("params", "item", "command")
            trace = op.edit(trace, trace.frames[frame.seq], at, shows["command"])
        return trace
    raise NotApplied("no command that nobody was asked about")


def _ends(scene: Scene, one: Exchange, status: str) -> Trace:
    return op.edit(scene.trace, one.done, ("params", "item", "status"), status)


def _before(scene: Scene, frame: Frame) -> Frame:
    return scene.trace.frames[frame.seq - 1]
