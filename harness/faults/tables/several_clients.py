"""Faults of a server that treats two clients of one thread unlike.

All of them need a stored trace: what is wrong is seen beside what another client was told.
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

WHY = "a stream is one connection, and cannot tell what another client is told"
RESOLVED = "serverRequest/resolved"
UNSUBSCRIBE = "thread/unsubscribe"

# The thread, the turn, and the item, each "" where a message does not name it.
Names = tuple[str, str, str]


def named(frame: Frame) -> Names:
    """Return the thread, turn and item of a notification or a question."""
    params = obj(frame.params)
    turn_id = text(params.get("turnId")) or text(dig(params, "turn", "id"))
    item_id = text(params.get("itemId")) or text(dig(params, "item", "id"))
    return text(params.get("threadId")), turn_id, item_id


def told(frames: list[Frame], method: str) -> Iterator[Frame]:
    """The notifications of a method."""
    for frame in frames:
        if frame.method == method and frame.from_target and frame.kind is Kind.NOTIFICATION:
            yield frame


def elsewhere(trace: Trace, frame: Frame) -> list[Frame]:
    """The same notification as other clients got it."""
    same = told(trace.frames, frame.method)
    return [
        one for one in same if one.connection != frame.connection and named(one) == named(frame)
    ]


def shared(site: FaultSite, trace: Trace, method: str) -> Iterator[Frame]:
    """The notifications of a method that this client got once, and another one too."""
    mine = list(told(site.frames, method))
    for frame in mine:
        once = sum(named(one) == named(frame) for one in mine) == 1
        others = elsewhere(trace, frame)
        if once and len({one.connection for one in others}) == len(others) > 0:
            yield frame


def first(frames: Iterator[Frame], what: str) -> Frame:
    """The first of some frames. Raises `NotApplied` for none."""
    found = next(frames, None)
    if found is None:
        raise NotApplied(f"no {what}")
    return found


def told_otherwise(method: str, *path: str, to: Any, where: Any) -> StoredOnly:
    """This client is told another value than the others, in place of the value `where`."""

    def make(site: FaultSite, trace: Trace) -> Trace:
        fits = (one for one in shared(site, trace, method) if dig(one.params, *path) == where)
        frame = first(fits, f"{method} with {where} for two clients")
        return change(trace, [frame], lambda message: put(message, ("params", *path), to))

    return StoredOnly(WHY, make)


def decided(trace: Trace, decision: str, status: str) -> list[Frame]:
    """The completions with a status of an item about which each answer was that decision."""
    asked = [
        one
        for one in trace.frames
        if one.method in APPROVALS and one.kind is Kind.REQUEST and one.from_target
    ]
    answers = [one for one in trace.frames if one.kind is Kind.RESPONSE and not one.from_target]
    for name in dict.fromkeys(named(one) for one in asked):
        about = {(one.connection, one.id) for one in asked if named(one) == name}
        given = [one for one in answers if (one.connection, one.id) in about]
        words = {text(dig(one.result, "decision")) for one in given}
        ends = [one for one in told(trace.frames, "item/completed") if named(one) == name]
        right = all(dig(one.params, "item", "status") == status for one in ends)
        if len(about) > 1 and words == {decision} and ends and right:
            return ends
    raise NotApplied(f"no item about which two clients were asked, and one answered {decision}")


def done_otherwise(decision: str, status: str, instead: str) -> StoredOnly:
    """Report the status of another decision than the one made; all clients are told the same."""

    def make(site: FaultSite, trace: Trace) -> Trace:
        ends = decided(trace, decision, status)
        return change(trace, ends, lambda m: put(m, ("params", "item", "status"), instead))

    return StoredOnly(WHY, make)


def resolved_elsewhere(site: FaultSite, trace: Trace) -> Trace:
    """A client that was asked, and that another one answered for, is not told that it is over."""
    here = site.frames[0].connection if site.frames else ""
    answers = _first_answers(trace)
    asked = {
        named(one)
        for one in site.frames
        if one.method in APPROVALS and one.kind is Kind.REQUEST and one.from_target
    }
    left = {name for name, connection in answers.items() if name in asked and connection != here}
    over = {named(one) for one in told(site.frames, "item/completed")}
    gone = list(told(site.frames, RESOLVED))
    if not left & over or not gone:
        raise NotApplied("no question that another client answered first")
    return drop(trace, *gone)


def _first_answers(trace: Trace) -> dict[Names, str]:
    """The connection from which each question was answered first."""
    questions: dict[tuple[str, Any], Names] = {}
    found: dict[Names, str] = {}
    for one in trace.frames:
        if one.from_target and one.kind is Kind.REQUEST and one.method in APPROVALS:
            questions[one.connection, one.id] = named(one)
        elif not one.from_target and one.kind is Kind.RESPONSE:
            name = questions.get((one.connection, one.id))
            if name is not None:
                found.setdefault(name, one.connection)
    return found


def followed(site: FaultSite, trace: Trace) -> Frame:
    """The end of a turn that this client follows from before it began, and another one asked for.

    The other one was told of it too.
    """
    requests = [one for one in site.frames if one.kind is Kind.REQUEST and not one.from_target]
    moving = ("thread/archive", "thread/unarchive", UNSUBSCRIBE)
    if any(one.method in moving for one in trace.frames):
        raise NotApplied("no thread that nobody left")
    for end in shared(site, trace, "turn/completed"):
        thread_id = named(end)[0]
        began = [one for one in told(site.frames, "turn/started") if named(one) == named(end)]
        opened = [
            one
            for one in requests
            if one.method in ("thread/start", "thread/resume")
            and (answer := site.conversation.answer_of(one)) is not None
            and text(dig(answer.result, "thread", "id")) == thread_id
            and began
            and answer.seq < began[0].seq
        ]
        mine = site.turn_of(end)
        if opened and mine is not None and mine.request is None:
            return end
    raise NotApplied("no turn that another client asked for and this one follows")


def kept_back(site: FaultSite, trace: Trace) -> Trace:
    """Nothing of a turn is told to a client that follows the thread."""
    turn = named(followed(site, trace))[:2]
    about = [one for one in site.frames if one.from_target and named(one)[:2] == turn]
    return drop(trace, *about)


def item_kept_back(site: FaultSite, trace: Trace) -> Trace:
    """Nothing of an item is told to a client that follows the thread."""
    turn = named(followed(site, trace))[:2]
    asked = {named(one) for one in site.frames if one.method in APPROVALS}
    ends = (
        one
        for one in shared(site, trace, "item/completed")
        if named(one)[:2] == turn and named(one) not in asked
    )
    name = named(first(ends, "item that two clients are told of"))
    return drop(trace, *(one for one in site.frames if one.from_target and named(one) == name))


def told_to_who_left(site: FaultSite, trace: Trace) -> Trace:
    """A client is told of an item of a thread that it has left."""
    for answer in site.frames:
        request = site.request_of(answer)
        if request is None or request.method != UNSUBSCRIBE:
            continue
        thread_id = text(obj(request.params).get("threadId"))
        later = (
            one
            for one in trace.frames
            if one.from_target
            and one.method in ("item/started", "item/completed")
            and one.seq > answer.seq
            and one.connection != answer.connection
            and named(one)[0] == thread_id
        )
        item = next(later, None)
        back = any(
            one.seq > answer.seq
            and one.kind is Kind.REQUEST
            and not one.from_target
            and one.method != "thread/read"
            for one in site.frames
        )
        if item is not None and not back and dig(answer.result, "status") == "unsubscribed":
            return insert(trace, after=_before(trace, item, answer), message=item.json)
    raise NotApplied("no client that left a thread which another one goes on with")


def _before(trace: Trace, item: Frame, answer: Frame) -> Frame:
    """The last message on the connection of an answer before an item of another connection."""
    mine = [one for one in trace.frames if one.connection == answer.connection]
    return [one for one in mine if one.seq < item.seq][-1]


def stored(make: Callable[[FaultSite, Trace], Trace]) -> StoredOnly:
    """A change that looks at all connections."""
    return StoredOnly(WHY, make)


FAULTS: tuple[Fault, ...] = (
    Fault(
        "ended-otherwise-for-another",
        rule="clients.same-end",
        on="shared-turn",
        reason="A turn ends once, with one status.",
        change=told_otherwise(
            "turn/completed", "turn", "status", to="interrupted", where="completed"
        ),
    ),
    Fault(
        "outcome-differs-for-another",
        rule="clients.same-item",
        on="shared-turn",
        reason="item/completed carries the final item, of which there is one.",
        change=told_otherwise("item/completed", "item", "status", to="failed", where="completed"),
    ),
    Fault(
        "declined-though-a-client-accepted",
        rule="clients.answer-carried-out",
        on="shared-turn",
        reason="accept approves, and nobody denied.",
        change=done_otherwise("accept", "completed", "declined"),
    ),
    Fault(
        "completed-though-a-client-declined",
        rule="clients.answer-carried-out",
        on="shared-denial",
        reason="decline denies, and nobody approved.",
        change=done_otherwise("decline", "declined", "completed"),
    ),
    Fault(
        "resolved-for-who-answered-alone",
        rule="clients.resolved-told",
        on="shared-turn",
        reason="Who was asked and need not answer any more has to be told.",
        change=stored(resolved_elsewhere),
    ),
    Fault(
        "turn-kept-from-a-subscriber",
        rule="clients.subscriber-told",
        on="shared-turn",
        reason="A subscriber is told what happens in the thread.",
        change=stored(kept_back),
    ),
    Fault(
        "item-kept-from-a-subscriber",
        rule="clients.subscriber-told",
        on="shared-turn",
        reason="A subscriber is told what happens in the thread.",
        change=stored(item_kept_back),
    ),
    Fault(
        "told-though-it-has-left",
        rule="clients.left-untold",
        on="left-to-another",
        reason="A client that has left a thread is no subscriber of it.",
        change=stored(told_to_who_left),
    ),
)
