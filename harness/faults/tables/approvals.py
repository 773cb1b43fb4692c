"""Faults of approvals: the sequence, the decisions, and their lasting effects."""

import copy
from typing import Any

from harness.faults import stored
from harness.faults.approval_selectors import (
    approval_resolved,
    decided_item,
    decided_turn,
    question,
    whole_approval,
)
from harness.faults.base import Fault, NotApplied, StoredOnly
from harness.faults.changes import delay, first, in_sequence, requires
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


def approval_at(site: FaultSite, frame: Frame) -> Approval:
    """Return the approval that `frame` requests or completes. Raises `ValueError` for others."""
    approval = site.find_approval(lambda a: a.question is frame or a.completion is frame)
    if approval is None:
        raise ValueError(f"frame {frame.seq} is of no approval")
    return approval


def turn_ids(approval: Approval) -> dict[str, Any]:
    """Return the thread id and the turn id of an approval, as params."""
    return {"threadId": approval.turn.thread_id, "turnId": approval.turn.id}


def next_is_its_question(site: FaultSite, frame: Frame) -> Verdict:
    """Return whether approval is requested right after item/started; None until a frame comes."""
    following = site.next_frame_of_item(frame)
    return None if following is None else following.kind is Kind.REQUEST


def move_question_first(queue: FrameQueue, frame: Frame) -> None:
    """Move the approval request for an item before its item/started."""
    following = queue.site.next_frame_of_item(frame)
    if following is not None:
        queue.move_before(following, frame)


def early_resolved(site: FaultSite, frame: Frame) -> dict[str, Any]:
    """Return serverRequest/resolved for an unanswered approval request."""
    params = {"threadId": approval_at(site, frame).turn.thread_id, "requestId": frame.id}
    return {"method": "serverRequest/resolved", "params": params}


def early_declined(site: FaultSite, frame: Frame) -> dict[str, Any]:
    """Return item/completed as declined, for an item whose approval is not answered yet."""
    params = obj(approval_at(site, frame).item.starts[0].params)
    item = {**obj(params.get("item")), "status": "declined"}
    return {"method": "item/completed", "params": {**params, "item": item}}


def its_item_ends(site: FaultSite, late: Frame, now: Frame) -> bool:
    """Return whether `now` completes the item whose approval request `late` resolved."""
    return (
        site.find_approval(lambda a: a.completion is now and a.resolutions[:1] == [late])
        is not None
    )


def is_second_resolved(site: FaultSite, frame: Frame) -> bool:
    """Return whether another serverRequest/resolved came before."""
    return any(other.method == frame.method and other.seq < frame.seq for other in site.frames)


def items_before(site: FaultSite, frame: Frame) -> list[str]:
    """Return the ids of items of other turns that the turn of an approval request lacks.

    [] if none of the other turns has ended.
    """
    own_turn = approval_at(site, frame).turn
    earlier = [turn for turn in site.conversation.turns.values() if turn is not own_turn]
    if not any(turn.completions for turn in earlier):
        return []
    return [item for turn in earlier for item in turn.items if item not in own_turn.items]


def command_output(site: FaultSite, frame: Frame) -> dict[str, Any]:
    """Return an output delta for the command whose approval `frame` resolved."""
    approval = site.approvals[
        [approval.resolutions[:1] for approval in site.approvals].index([frame])
    ]
    params = {**turn_ids(approval), "itemId": approval.item.id, "delta": "done\n"}
    return {"method": "item/commandExecution/outputDelta", "params": params}


def the_next_item(site: FaultSite, frame: Frame) -> dict[str, Any]:
    """Return item/started for a new item, `the-next`, like the completed one."""
    params = copy.deepcopy(obj(approval_at(site, frame).item.starts[0].params))
    return {
        "method": "item/started",
        "params": {**params, "item": {**params["item"], "id": "the-next"}},
    }


def the_next_question(site: FaultSite, frame: Frame) -> dict[str, Any]:
    """Return an approval request for the item `the-next`."""
    before = approval_at(site, frame).question
    params = {**obj(before.params), "itemId": "the-next"}
    return {"method": before.method, "id": 99, "params": params}


def session_approval(site: FaultSite, frame: Frame) -> Approval | None:
    """Return the first command approved for the session that ended before a frame, or None."""
    return site.find_approval(
        lambda a: (
            a.completion is not None
            and a.completion.seq < frame.seq
            and whole_approval(site, a.completion, "acceptForSession", methods=(COMMAND,))
            is not None
        )
    )


def copy_session_approval(key: str) -> Operator:
    """Return an operator that copies a param of the session approval into a later request."""

    def before(site: FaultSite, frame: Frame) -> Any:
        approval = session_approval(site, frame)
        return None if approval is None else obj(approval.question.params).get(key)

    return edit_by("params", key, value=before)


def skip_second_question(site: FaultSite, trace: Trace) -> Trace:
    """Drop the second approval of a command that was answered with `accept` twice."""
    accepted: dict[object, Approval] = {}
    for approval in site.approvals:
        command = dig(approval.question.params, "command")
        was_accepted = (
            approval.answer is not None
            and approval.decision == "accept"
            and approval.completion is not None
        )
        if approval.question.method != COMMAND or not was_accepted:
            continue
        if approval.answer is not None and str(command) in accepted:
            return stored.drop(trace, approval.question, approval.answer, *approval.resolutions)
        accepted[str(command)] = approval
    raise NotApplied("no command that was accepted twice")


def end_item_as(status: str, *decisions: str, methods: tuple[str, ...] = (COMMAND, FILE)) -> Change:
    """Return a change: an item ends with another status than the decision demands."""
    return first(decided_item(*decisions, methods=methods), edit(*STATUS, to=status))


def apply_declined_change(site: FaultSite, trace: Trace) -> Trace:
    """Insert a diff of the turn with the declined change, moved to a file of its own."""
    declined_end = decided_item("decline", methods=(FILE,))
    completion = next((frame for frame in trace.frames if declined_end.fits(site, frame)), None)
    if completion is None:
        raise NotApplied(f"no {declined_end.description}")
    approval, path = approval_at(site, completion), "another/file.txt"
    item_frames = (approval.item.starts[0], completion)
    trace = stored.change(trace, item_frames, lambda message: put(message, CHANGED_PATH, path))
    diff = added_file_diff(path, approval)
    message = {"method": "turn/diff/updated", "params": {**turn_ids(approval), "diff": diff}}
    return stored.insert(trace, after=trace.frames[completion.seq], message=message)


def added_file_diff(path: str, approval: Approval) -> str:
    """Return the diff of a file that the change of an item adds."""
    change = obj(next(iter(arr(dig(approval.item.starts[0].params, "item", "changes"))), None))
    added = "".join(f"+{line}\n" for line in text(change.get("diff")).splitlines())
    return f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n{added}"


def no_other_is_open(site: FaultSite, _: Frame) -> bool:
    """Return whether only one item with an approval request is not completed."""
    return sum(approval.completion is None for approval in site.approvals) == 1


ANY_APPROVAL = requires(decided_item())

FAULTS: tuple[Fault, ...] = (
    Fault(
        "asked-before-the-item-starts",
        rule="approval.order",
        on="approved-command",
        reason="The item that needs approval is started before the client is asked.",
        change=first(
            item_started().where(next_is_its_question, "that is asked about next"),
            move_question_first,
        ),
        condition=ANY_APPROVAL,
    ),
    Fault(
        "resolved-before-the-answer",
        rule="approval.order",
        on="approved-command",
        reason="serverRequest/resolved follows the client's answer.",
        change=in_sequence(
            first(question(), insert_by(early_resolved)), first(approval_resolved(), drop)
        ),
        condition=ANY_APPROVAL,
    ),
    Fault(
        "completed-before-the-answer",
        rule="approval.order",
        on="declined-command",
        reason="item/completed follows the client's answer.",
        change=in_sequence(
            first(question(), insert_by(early_declined)), first(decided_item(), drop)
        ),
        condition=ANY_APPROVAL,
    ),
    Fault(
        "resolved-after-the-item",
        rule="approval.order",
        on="approved-command",
        reason="item/completed follows serverRequest/resolved.",
        change=delay(approval_resolved(), "end of its item", its_item_ends),
    ),
    Fault(
        "never-resolved",
        rule="approval.order",
        on="approved-command",
        reason="After the answer the server emits serverRequest/resolved.",
        change=first(approval_resolved(), drop),
        condition=ANY_APPROVAL,
    ),
    Fault(
        "answer-without-effect",
        rule="approval.order",
        on="declined-command",
        reason="An answered question is resolved, and its item completed: here neither comes.",
        change=in_sequence(first(approval_resolved(), drop), first(decided_item(), drop)),
        condition=ANY_APPROVAL,
    ),
    Fault(
        "resolved-twice",
        rule="approval.order",
        on="approved-command",
        reason="One question is resolved once.",
        change=first(
            approval_resolved().where(no_other_is_open, "with no other one open"), duplicate
        ),
        condition=ANY_APPROVAL,
    ),
    Fault(
        "two-questions-one-resolved",
        rule="approval.order",
        on="asked-at-once",
        reason="Each of two answered questions is resolved.",
        change=first(
            notification("serverRequest/resolved").where(is_second_resolved, "after another one"),
            drop,
        ),
    ),
    Fault(
        "asked-about-another-turn",
        rule="approval.names-item",
        on="file-changes",
        reason="An approval request names the turn of its item.",
        change=first(question(), edit("params", "turnId", to="turn_404404")),
        condition=ANY_APPROVAL,
    ),
    Fault(
        "asked-about-another-thread",
        rule="approval.names-item",
        on="approved-command",
        reason="An approval request names the thread of its turn.",
        change=first(question(), edit("params", "threadId", to="thr_404404")),
        condition=ANY_APPROVAL,
    ),
    Fault(
        "asked-about-no-item",
        rule="approval.order",
        on="approved-command",
        reason="The item that the client is asked about has been started.",
        change=first(question(), edit("params", "itemId", to="item_404404")),
        condition=ANY_APPROVAL,
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
        condition=requires(decided_item("accept", "decline", methods=(COMMAND,))),
    ),
    Fault(
        "file-change-ends-in-progress",
        rule="approval.final-item",
        on="file-changes",
        reason="A file change that was asked about ends as completed, failed or declined.",
        change=end_item_as("inProgress", methods=(FILE,)),
    ),
    Fault(
        "command-ends-in-progress",
        rule="approval.final-item",
        on="declined-command",
        reason="item/completed carries the final item, and one in progress is not final.",
        change=end_item_as("inProgress", methods=(COMMAND,)),
    ),
    Fault(
        "accepted-and-declined",
        rule="approval.accepted-runs",
        on="approved-command",
        reason="accept lets the operation run.",
        change=end_item_as("declined", "accept"),
    ),
    Fault(
        "accepted-for-session-and-declined",
        rule="approval.accepted-runs",
        on="session-approval",
        reason="acceptForSession approves.",
        change=end_item_as("declined", "acceptForSession"),
    ),
    Fault(
        "declined-and-completed",
        rule="approval.denied-not-run",
        on="declined-command",
        reason="decline denies the operation.",
        change=end_item_as("completed", "decline"),
    ),
    Fault(
        "cancelled-and-completed",
        rule="approval.denied-not-run",
        on="cancelled-command",
        reason="cancel denies the operation.",
        change=end_item_as("completed", "cancel"),
    ),
    Fault(
        "declined-and-failed",
        rule="approval.denied-status",
        on="declined-command",
        reason="An item whose operation was denied ends as declined.",
        change=end_item_as("failed", "decline"),
    ),
    Fault(
        "declined-and-run",
        rule="approval.denied-not-run",
        on="declined-command",
        reason="decline denies the operation: the command prints nothing, and has no exit code.",
        change=in_sequence(
            first(approval_resolved("decline", methods=(COMMAND,)), insert_by(command_output)),
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
            apply_declined_change,
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
            copy_session_approval("command"),
            copy_session_approval("cwd"),
        ),
    ),
    Fault(
        "accepted-once-and-remembered",
        rule="approval.asked-again",
        on="accepted-twice",
        reason="accept is for once: the same command is asked about when it comes again.",
        change=StoredOnly(
            "live, the server waits for the answer to its question", skip_second_question
        ),
    ),
)
