"""Faults of approvals: the sequence, the decisions, and what they leave for later."""

import copy
from typing import Any

from harness.faults import stored
from harness.faults.approval_selectors import (
    decided_item,
    decided_turn,
    question,
    resolved,
    whole_approval,
)
from harness.faults.base import Fault, NotApplied, StoredOnly
from harness.faults.changes import delay, first, in_turn, there_is
from harness.faults.item_selectors import item_started
from harness.faults.operators import Operator, drop, duplicate, edit, edit_by, insert_by, put
from harness.faults.queue import Change, FrameQueue
from harness.faults.selectors import Verdict, notification
from harness.faults.site import COMMAND, FILE, Approval, FaultSite
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.trace import Trace

CHANGED_PATH = ("params", "item", "changes", 0, "path")
STATUS = ("params", "item", "status")


def asked(site: FaultSite, frame: Frame) -> Approval:
    """The approval that a question opens, or that an item's completion ends."""
    found = site.approval(lambda one: one.question is frame or one.done is frame)
    if found is None:
        raise ValueError(f"frame {frame.seq} is of no approval")
    return found


def place(one: Approval) -> dict[str, Any]:
    """The ids of thread and turn of an approval."""
    return {"threadId": one.turn.thread_id, "turnId": one.turn.id}


def next_is_its_question(site: FaultSite, frame: Frame) -> Verdict:
    """Return whether what comes next about an item that was started is a question."""
    told = site.next_about_its_item(frame)
    return None if told is None else told.kind is Kind.REQUEST


def question_first(queue: FrameQueue, frame: Frame) -> None:
    """The question, then item/started."""
    told = queue.site.next_about_its_item(frame)
    if told is not None:
        queue.put_before(told, frame)


def resolved_at_once(site: FaultSite, frame: Frame) -> dict[str, Any]:
    """serverRequest/resolved for a question that nobody has answered."""
    params = {"threadId": asked(site, frame).turn.thread_id, "requestId": frame.id}
    return {"method": "serverRequest/resolved", "params": params}


def declined_at_once(site: FaultSite, frame: Frame) -> dict[str, Any]:
    """item/completed as declined, for an item that nobody has declined."""
    params = obj(asked(site, frame).item.started[0].params)
    item = {**obj(params.get("item")), "status": "declined"}
    return {"method": "item/completed", "params": {**params, "item": item}}


def its_item_ends(site: FaultSite, late: Frame, now: Frame) -> bool:
    """Return whether a frame completes the item whose question was resolved."""
    return site.approval(lambda one: one.done is now and one.resolved[:1] == [late]) is not None


def second_resolved(site: FaultSite, frame: Frame) -> bool:
    """Return whether another question was resolved before."""
    return any(one.method == frame.method and one.seq < frame.seq for one in site.frames)


def items_before(site: FaultSite, frame: Frame) -> list[str]:
    """The ids of items of earlier turns that the turn of a question does not have."""
    mine = asked(site, frame).turn
    earlier = [turn for turn in site.conversation.turns.values() if turn is not mine]
    if not any(turn.completed for turn in earlier):
        return []
    return [item for turn in earlier for item in turn.items if item not in mine.items]


def output(site: FaultSite, frame: Frame) -> dict[str, Any]:
    """Output of a command that was declined."""
    one = site.approvals[[one.resolved[:1] for one in site.approvals].index([frame])]
    params = {**place(one), "itemId": one.item.id, "delta": "done\n"}
    return {"method": "item/commandExecution/outputDelta", "params": params}


def the_next_item(site: FaultSite, frame: Frame) -> dict[str, Any]:
    """The start of an item like the one that ends, with another id."""
    params = copy.deepcopy(obj(asked(site, frame).item.started[0].params))
    return {
        "method": "item/started",
        "params": {**params, "item": {**params["item"], "id": "the-next"}},
    }


def the_next_question(site: FaultSite, frame: Frame) -> dict[str, Any]:
    """The question about it."""
    before = asked(site, frame).question
    params = {**obj(before.params), "itemId": "the-next"}
    return {"method": before.method, "id": 99, "params": params}


def session_approval(site: FaultSite, frame: Frame) -> Approval | None:
    """The first command that was approved for the session and ended before a frame."""
    return site.approval(
        lambda one: (
            one.done is not None
            and one.done.seq < frame.seq
            and whole_approval(site, one.done, "acceptForSession", methods=(COMMAND,)) is not None
        )
    )


def as_approved_for_the_session(key: str) -> Operator:
    """A later question is about the command that was approved for the session."""

    def before(site: FaultSite, frame: Frame) -> Any:
        one = session_approval(site, frame)
        return None if one is None else obj(one.question.params).get(key)

    return edit_by("params", key, value=before)


def remembered(site: FaultSite, trace: Trace) -> Trace:
    """A command that was accepted once is run again, and nobody is asked."""
    seen: dict[object, Approval] = {}
    for one in site.approvals:
        asked = dig(one.question.params, "command")
        whole = one.answer is not None and one.decision == "accept" and one.done is not None
        if one.question.method != COMMAND or not whole:
            continue
        if one.answer is not None and str(asked) in seen:
            return stored.drop(trace, one.question, one.answer, *one.resolved)
        seen[str(asked)] = one
    raise NotApplied("no command that was accepted twice")


def ends(status: str, *decisions: str, methods: tuple[str, ...] = (COMMAND, FILE)) -> Change:
    """The item ends with another status than the decision leaves it."""
    return first(decided_item(*decisions, methods=methods), edit(*STATUS, to=status))


def declined_changed(site: FaultSite, trace: Trace) -> Trace:
    """The diff of the turn has what was declined; nothing else has touched that file."""
    ended = decided_item("decline", methods=(FILE,))
    done = next((one for one in trace.frames if ended.fits(site, one)), None)
    if done is None:
        raise NotApplied(f"no {ended.what}")
    one, path = asked(site, done), "another/file.txt"
    told = (one.item.started[0], done)
    trace = stored.change(trace, told, lambda message: put(message, CHANGED_PATH, path))
    diff = added_file(path, one)
    message = {"method": "turn/diff/updated", "params": {**place(one), "diff": diff}}
    return stored.insert(trace, after=trace.frames[done.seq], message=message)


def added_file(path: str, one: Approval) -> str:
    """The diff of a file that the change of an item adds."""
    change = obj(next(iter(arr(dig(one.item.started[0].params, "item", "changes"))), None))
    added = "".join(f"+{line}\n" for line in text(change.get("diff")).splitlines())
    return f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n{added}"


def no_other_is_open(site: FaultSite, _: Frame) -> bool:
    """Return whether there is one item only that was asked about and has not ended."""
    return sum(one.done is None for one in site.approvals) == 1


ANY_APPROVAL = there_is(decided_item())

FAULTS: tuple[Fault, ...] = (
    Fault(
        "asked-before-the-item-starts",
        rule="approval.order",
        on="approved-command",
        reason="The item that needs approval is started before the client is asked.",
        change=first(
            item_started().where(next_is_its_question, "that is asked about next"), question_first
        ),
        given=ANY_APPROVAL,
    ),
    Fault(
        "resolved-before-the-answer",
        rule="approval.order",
        on="approved-command",
        reason="serverRequest/resolved follows the client's answer.",
        change=in_turn(first(question(), insert_by(resolved_at_once)), first(resolved(), drop)),
        given=ANY_APPROVAL,
    ),
    Fault(
        "completed-before-the-answer",
        rule="approval.order",
        on="declined-command",
        reason="item/completed follows the client's answer.",
        change=in_turn(first(question(), insert_by(declined_at_once)), first(decided_item(), drop)),
        given=ANY_APPROVAL,
    ),
    Fault(
        "resolved-after-the-item",
        rule="approval.order",
        on="approved-command",
        reason="item/completed follows serverRequest/resolved.",
        change=delay(resolved(), "end of its item", its_item_ends),
    ),
    Fault(
        "never-resolved",
        rule="approval.order",
        on="approved-command",
        reason="After the answer the server emits serverRequest/resolved.",
        change=first(resolved(), drop),
        given=ANY_APPROVAL,
    ),
    Fault(
        "answer-without-effect",
        rule="approval.order",
        on="declined-command",
        reason="An answered question is resolved, and its item completed: here neither comes.",
        change=in_turn(first(resolved(), drop), first(decided_item(), drop)),
        given=ANY_APPROVAL,
    ),
    Fault(
        "resolved-twice",
        rule="approval.order",
        on="approved-command",
        reason="One question is resolved once.",
        change=first(resolved().where(no_other_is_open, "with no other one open"), duplicate),
        given=ANY_APPROVAL,
    ),
    Fault(
        "two-questions-one-resolved",
        rule="approval.order",
        on="asked-at-once",
        reason="Each of two answered questions is resolved.",
        change=first(
            notification("serverRequest/resolved").where(second_resolved, "after another one"),
            drop,
        ),
    ),
    Fault(
        "asked-about-another-turn",
        rule="approval.names-item",
        on="file-changes",
        reason="An approval request names the turn of its item.",
        change=first(question(), edit("params", "turnId", to="turn_404404")),
        given=ANY_APPROVAL,
    ),
    Fault(
        "asked-about-another-thread",
        rule="approval.names-item",
        on="approved-command",
        reason="An approval request names the thread of its turn.",
        change=first(question(), edit("params", "threadId", to="thr_404404")),
        given=ANY_APPROVAL,
    ),
    Fault(
        "asked-about-no-item",
        rule="approval.order",
        on="approved-command",
        reason="The item that the client is asked about has been started.",
        change=first(question(), edit("params", "itemId", to="item_404404")),
        given=ANY_APPROVAL,
    ),
    Fault(
        "asked-about-an-item-of-another-turn",
        rule="approval.names-item",
        on="file-changes",
        reason="An approval request names the turn of its item.",
        change=first(
            question().where(lambda site, f: bool(items_before(site, f)), "after another turn"),
            edit_by("params", "itemId", value=lambda site, f: items_before(site, f)[0]),
        ),
    ),
    Fault(
        "command-asked-as-file-change",
        rule="approval.request-of-type",
        on="declined-command",
        reason="Commands have a server request of their own.",
        change=first(question(COMMAND), edit("method", to=FILE)),
        given=there_is(decided_item("accept", "decline", methods=(COMMAND,))),
    ),
    Fault(
        "file-change-ends-in-progress",
        rule="approval.final-item",
        on="file-changes",
        reason="A file change that was asked about ends as completed, failed or declined.",
        change=ends("inProgress", methods=(FILE,)),
    ),
    Fault(
        "command-ends-in-progress",
        rule="approval.final-item",
        on="declined-command",
        reason="item/completed carries the final item, and one in progress is not final.",
        change=ends("inProgress", methods=(COMMAND,)),
    ),
    Fault(
        "accepted-and-declined",
        rule="approval.accepted-runs",
        on="approved-command",
        reason="accept lets the operation run.",
        change=ends("declined", "accept"),
    ),
    Fault(
        "accepted-for-session-and-declined",
        rule="approval.accepted-runs",
        on="session-approval",
        reason="acceptForSession approves.",
        change=ends("declined", "acceptForSession"),
    ),
    Fault(
        "declined-and-completed",
        rule="approval.denied-not-run",
        on="declined-command",
        reason="decline denies the operation.",
        change=ends("completed", "decline"),
    ),
    Fault(
        "cancelled-and-completed",
        rule="approval.denied-not-run",
        on="cancelled-command",
        reason="cancel denies the operation.",
        change=ends("completed", "cancel"),
    ),
    Fault(
        "declined-and-failed",
        rule="approval.denied-status",
        on="declined-command",
        reason="An item whose operation was denied ends as declined.",
        change=ends("failed", "decline"),
    ),
    Fault(
        "declined-and-run",
        rule="approval.denied-not-run",
        on="declined-command",
        reason="decline denies the operation: the command prints nothing, and has no exit code.",
        change=in_turn(
            first(resolved("decline", methods=(COMMAND,)), insert_by(output)),
            first(
                decided_item("decline", methods=(COMMAND,)),
                edit("params", "item", "exitCode", to=0),
            ),
        ),
    ),
    Fault(
        "declined-and-changed",
        rule="approval.denied-not-run",
        on="file-changes",
        reason="decline denies the operation: the diff of the turn has nothing of the change.",
        change=StoredOnly(
            "the item is another from its start on, before the client has declined it",
            declined_changed,
        ),
    ),
    Fault(
        "asked-after-cancel",
        rule="approval.cancel-ends-work",
        on="cancelled-command",
        reason="cancel interrupts the turn: another of its commands is not asked about any more.",
        change=first(
            decided_item("cancel"), insert_by(the_next_item), insert_by(the_next_question)
        ),
    ),
    Fault(
        "cancelled-turn-goes-on",
        rule="approval.cancel-interrupts",
        on="cancelled-command",
        reason="cancel interrupts the turn.",
        change=first(decided_turn("cancel"), edit("params", "turn", "status", to="completed")),
    ),
    Fault(
        "declined-turn-stops",
        rule="approval.decline-goes-on",
        on="declined-command",
        reason="To interrupt the turn is what cancel adds to decline.",
        change=first(decided_turn("decline"), edit("params", "turn", "status", to="interrupted")),
    ),
    Fault(
        "session-approval-forgotten",
        rule="approval.session-remembered",
        on="session-approval",
        reason="acceptForSession is remembered: the same command is not asked about again.",
        change=first(
            question(COMMAND).where(
                lambda site, f: session_approval(site, f) is not None, "after acceptForSession"
            ),
            as_approved_for_the_session("command"),
            as_approved_for_the_session("cwd"),
        ),
    ),
    Fault(
        "accepted-once-and-remembered",
        rule="approval.asked-again",
        on="accepted-twice",
        reason="accept is for once: the same command is asked about when it comes again.",
        change=StoredOnly("live, the server waits for the answer to its question", remembered),
    ),
)
