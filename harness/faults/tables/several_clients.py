"""Faults of a server that treats two clients of one thread differently.

All of them need a stored trace: only the other client's notifications show the fault.
"""

from collections.abc import Callable, Iterator
from typing import Any

from harness.faults.base import Fault, NotApplied, StoredOnly
from harness.faults.operators import put
from harness.faults.site import APPROVALS, FaultSite
from harness.faults.stored import change, drop, insert
from harness.protocol.values import dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.trace import Trace

WHY = "a stream is one connection, and does not show the other client"
RESOLVED = "serverRequest/resolved"
UNSUBSCRIBE = "thread/unsubscribe"

# The ids of a thread, a turn and an item, each "" if a message does not name it.
Names = tuple[str, str, str]


def ids_of(frame: Frame) -> Names:
    """Return the ids of thread, turn and item in a notification or an approval request."""
    params = obj(frame.params)
    turn_id = text(params.get("turnId")) or text(dig(params, "turn", "id"))
    item_id = text(params.get("itemId")) or text(dig(params, "item", "id"))
    return text(params.get("threadId")), turn_id, item_id


def notifications(frames: list[Frame], method: str) -> Iterator[Frame]:
    """Yield the notifications of a method from the target."""
    for frame in frames:
        if frame.method == method and frame.from_target and frame.kind is Kind.NOTIFICATION:
            yield frame


def elsewhere(trace: Trace, frame: Frame) -> list[Frame]:
    """Return the same notification on other connections."""
    same = notifications(trace.frames, frame.method)
    return [
        copy
        for copy in same
        if copy.connection != frame.connection and ids_of(copy) == ids_of(frame)
    ]


def shared_notifications(site: FaultSite, trace: Trace, method: str) -> Iterator[Frame]:
    """Yield the notifications of a method that this client and others each got exactly once."""
    own_frames = list(notifications(site.frames, method))
    for frame in own_frames:
        once = sum(ids_of(f) == ids_of(frame) for f in own_frames) == 1
        copies = elsewhere(trace, frame)
        if once and len({copy.connection for copy in copies}) == len(copies) > 0:
            yield frame


def first_frame(frames: Iterator[Frame], description: str) -> Frame:
    """Return the first of some frames. Raises `NotApplied` if there is none."""
    frame = next(frames, None)
    if frame is None:
        raise NotApplied(f"no {description}")
    return frame


def replace_for_one(method: str, *path: str, new: Any, old: Any) -> StoredOnly:
    """Return a change of the value `old` to `new` for this client only."""

    def make(site: FaultSite, trace: Trace) -> Trace:
        fits = (f for f in shared_notifications(site, trace, method) if dig(f.params, *path) == old)
        frame = first_frame(fits, f"{method} with {old} for two clients")
        return change(trace, [frame], lambda message: put(message, ("params", *path), new))

    return StoredOnly(WHY, make)


def completions_decided_as(trace: Trace, decision: str, status: str) -> list[Frame]:
    """Return each item/completed, with this status, of the first item that clients decided alike.

    Several approvals of it were requested, and each answer that came has this decision. Raises
    `NotApplied` if there is none.
    """
    questions = [
        f
        for f in trace.frames
        if f.method in APPROVALS and f.kind is Kind.REQUEST and f.from_target
    ]
    answers = [
        frame for frame in trace.frames if frame.kind is Kind.RESPONSE and not frame.from_target
    ]
    for name in dict.fromkeys(ids_of(question) for question in questions):
        question_ids = {
            (question.connection, question.id) for question in questions if ids_of(question) == name
        }
        decisions = [answer for answer in answers if (answer.connection, answer.id) in question_ids]
        words = {text(dig(answer.result, "decision")) for answer in decisions}
        ends = [
            other
            for other in notifications(trace.frames, "item/completed")
            if ids_of(other) == name
        ]
        right = all(dig(end.params, "item", "status") == status for end in ends)
        if len(question_ids) > 1 and words == {decision} and ends and right:
            return ends
    raise NotApplied(f"no item about which two clients were asked, and one answered {decision}")


def replace_status(decision: str, status: str, instead: str) -> StoredOnly:
    """Return a change: all clients get the status of another decision than the one made."""

    def make(site: FaultSite, trace: Trace) -> Trace:
        ends = completions_decided_as(trace, decision, status)
        return change(trace, ends, lambda m: put(m, ("params", "item", "status"), instead))

    return StoredOnly(WHY, make)


def drop_resolved(site: FaultSite, trace: Trace) -> Trace:
    """Drop each serverRequest/resolved if another client answered an approval request first."""
    own_connection = site.frames[0].connection if site.frames else ""
    answers = _first_answers(trace)
    questions = {
        ids_of(f)
        for f in site.frames
        if f.method in APPROVALS and f.kind is Kind.REQUEST and f.from_target
    }
    answered_elsewhere = {
        name
        for name, connection in answers.items()
        if name in questions and connection != own_connection
    }
    completed = {ids_of(frame) for frame in notifications(site.frames, "item/completed")}
    dropped = list(notifications(site.frames, RESOLVED))
    if not answered_elsewhere & completed or not dropped:
        raise NotApplied("no question that another client answered first")
    return drop(trace, *dropped)


def _first_answers(trace: Trace) -> dict[Names, str]:
    """Return the connection from which each approval request was answered first."""
    questions: dict[tuple[str, Any], Names] = {}
    connections: dict[Names, str] = {}
    for frame in trace.frames:
        if frame.from_target and frame.kind is Kind.REQUEST and frame.method in APPROVALS:
            questions[frame.connection, frame.id] = ids_of(frame)
        elif not frame.from_target and frame.kind is Kind.RESPONSE:
            name = questions.get((frame.connection, frame.id))
            if name is not None:
                connections.setdefault(name, frame.connection)
    return connections


def followed_turn_end(site: FaultSite, trace: Trace) -> Frame:
    """Return the end of a turn that another client started while this one followed the thread.

    The other client got it too. Raises `NotApplied` if there is none.
    """
    requests = [
        other for other in site.frames if other.kind is Kind.REQUEST and not other.from_target
    ]
    moving = ("thread/archive", "thread/unarchive", UNSUBSCRIBE)
    if any(frame.method in moving for frame in trace.frames):
        raise NotApplied("no thread that nobody left")
    for end in shared_notifications(site, trace, "turn/completed"):
        thread_id = ids_of(end)[0]
        began = [f for f in notifications(site.frames, "turn/started") if ids_of(f) == ids_of(end)]
        opened = [
            request
            for request in requests
            if request.method in ("thread/start", "thread/resume")
            and (answer := site.conversation.answer_of(request)) is not None
            and text(dig(answer.result, "thread", "id")) == thread_id
            and began
            and answer.seq < began[0].seq
        ]
        own_turn = site.turn_of(end)
        if opened and own_turn is not None and own_turn.request is None:
            return end
    raise NotApplied("no turn that another client asked for and this one follows")


def keep_turn_back(site: FaultSite, trace: Trace) -> Trace:
    """Drop all messages of a turn for a client that follows the thread."""
    turn = ids_of(followed_turn_end(site, trace))[:2]
    turn_frames = [
        frame for frame in site.frames if frame.from_target and ids_of(frame)[:2] == turn
    ]
    return drop(trace, *turn_frames)


def keep_item_back(site: FaultSite, trace: Trace) -> Trace:
    """Drop all messages of an item for a client that follows the thread."""
    turn = ids_of(followed_turn_end(site, trace))[:2]
    questions = {ids_of(frame) for frame in site.frames if frame.method in APPROVALS}
    ends = (
        f
        for f in shared_notifications(site, trace, "item/completed")
        if ids_of(f)[:2] == turn and ids_of(f) not in questions
    )
    name = ids_of(first_frame(ends, "item that two clients are told of"))
    return drop(
        trace, *(other for other in site.frames if other.from_target and ids_of(other) == name)
    )


def notify_departed(site: FaultSite, trace: Trace) -> Trace:
    """Send an item's notification to a client that has left the thread."""
    for answer in site.frames:
        request = site.request_of(answer)
        if request is None or request.method != UNSUBSCRIBE:
            continue
        thread_id = text(obj(request.params).get("threadId"))
        later = (
            f
            for f in trace.frames
            if f.from_target
            and f.method in ("item/started", "item/completed")
            and f.seq > answer.seq
            and f.connection != answer.connection
            and ids_of(f)[0] == thread_id
        )
        item = next(later, None)
        is_back = any(
            frame.seq > answer.seq
            and frame.kind is Kind.REQUEST
            and not frame.from_target
            and frame.method != "thread/read"
            for frame in site.frames
        )
        if item is not None and not is_back and dig(answer.result, "status") == "unsubscribed":
            return insert(trace, after=_before(trace, item, answer), message=item.json)
    raise NotApplied("no client that left a thread which another one goes on with")


def _before(trace: Trace, item: Frame, answer: Frame) -> Frame:
    """Return the last message on an answer's connection before an item on another one."""
    own_frames = [f for f in trace.frames if f.connection == answer.connection]
    return [frame for frame in own_frames if frame.seq < item.seq][-1]


def stored_change(make: Callable[[FaultSite, Trace], Trace]) -> StoredOnly:
    """Return a change that looks at all connections."""
    return StoredOnly(WHY, make)


FAULTS: tuple[Fault, ...] = (
    Fault(
        "ended-otherwise-for-another",
        rule="clients.same-end",
        on="shared-turn",
        reason="A turn ends once, with one status.",
        change=replace_for_one(
            "turn/completed", "turn", "status", new="interrupted", old="completed"
        ),
    ),
    Fault(
        "outcome-differs-for-another",
        rule="clients.same-item",
        on="shared-turn",
        reason="item/completed carries the final item, of which there is one.",
        change=replace_for_one("item/completed", "item", "status", new="failed", old="completed"),
    ),
    Fault(
        "declined-though-a-client-accepted",
        rule="clients.answer-carried-out",
        on="shared-turn",
        reason="accept approves, and nobody denied.",
        change=replace_status("accept", "completed", "declined"),
    ),
    Fault(
        "completed-though-a-client-declined",
        rule="clients.answer-carried-out",
        on="shared-denial",
        reason="decline denies, and nobody approved.",
        change=replace_status("decline", "declined", "completed"),
    ),
    Fault(
        "resolved-for-who-answered-alone",
        rule="clients.resolved-told",
        on="shared-turn",
        reason="Who was asked and need not answer any more has to be told.",
        change=stored_change(drop_resolved),
    ),
    Fault(
        "turn-kept-from-a-subscriber",
        rule="clients.subscriber-told",
        on="shared-turn",
        reason="A subscriber is told what happens in the thread.",
        change=stored_change(keep_turn_back),
    ),
    Fault(
        "item-kept-from-a-subscriber",
        rule="clients.subscriber-told",
        on="shared-turn",
        reason="A subscriber is told what happens in the thread.",
        change=stored_change(keep_item_back),
    ),
    Fault(
        "told-though-it-has-left",
        rule="clients.left-untold",
        on="left-to-another",
        reason="A client that has left a thread is no subscriber of it.",
        change=stored_change(notify_departed),
    ),
)
