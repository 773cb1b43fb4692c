"""Rules on a turn's announcements: reply, start, end, each once.

Here: what turn/start and turn/interrupt promise. Not here: the order of a turn's messages (order),
what turn objects hold (turn_objects), items (items).
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from typing import Any

from harness.rules.base import Monitor, Outcomes, Violation, Witness, on, on_answer, rule
from harness.rules.subjects import never_came, ours, turn_in
from harness.rules.telling import member, several, wrong
from harness.rules.verdict import Level, Place
from harness.rules.walks import INTERRUPTED, RUNNING, turn_state, walked
from harness.spec.machines import TURN
from harness.trace.difference import literal
from harness.trace.frame import Frame, Kind
from harness.trace.owed import Owes
from harness.trace.values import MISSING, dig, obj, text
from harness.trace.views import TurnView


@rule("turn.start-reply", title="turn/start is answered with a turn in progress", level=Level.MUST)
class StartReply(Monitor):
    """Judges the turn in a successful reply: status inProgress, items [], error null.

    Left open: an error that is left out, as null for what is absent; every other member.
    """

    @on_answer("turn/start")
    def reply(self, frame: Frame) -> Outcomes:
        turn = turn_in(frame)
        if frame.kind is not Kind.RESPONSE or not turn:
            return None
        promised: dict[str, Any] = {"status": RUNNING, "items": []}
        broken = [
            (member(frame, "turn", key), literal(right))
            for key, right in promised.items()
            if turn.get(key, MISSING) != right
        ]
        if turn.get("error") is not None:
            broken.append((member(frame, "turn", "error"), "null"))
        subject = f"turn {text(turn.get('id'))}"
        if not broken:
            return [Witness(subject, (frame,))]
        return [several(subject, (frame,), broken)]


def _id_in(frame: Frame) -> Place:
    """Where a message that holds a turn has the id of it."""
    return member(frame, "turn", "id").place


@rule("turn.started-announced", title="A started turn is announced", level=Level.MUST)
class StartedAnnounced(Monitor):
    """Judges that turn/start leads to turn/started with the id of the reply.

    The notification may come before or after the reply. When a reply names a turn that had begun
    before (a turn/start while it was running, on which the text is silent), that counts.
    """

    @on("turn/started")
    def started(self, frame: Frame) -> Outcomes:
        return self._witness(self.conversation.turn_of(frame))

    @on_answer("turn/start")
    def reply(self, frame: Frame) -> Outcomes:
        return self._witness(self.conversation.turns.get(text(turn_in(frame).get("id"))))

    def finish(self) -> Outcomes:
        for item in self.owed.open(Owes.TURN_STARTED):
            expected, places = f"turn/started for {item.subject}", (_id_in(item.frame),)
            actual = never_came(self.trace)
            yield Violation(item.subject, (item.frame,), expected, actual, places=places)

    def _witness(self, turn: TurnView | None) -> Outcomes:
        if turn is None or turn.reply is None or not turn.started:
            return None
        return [Witness(turn.subject, (turn.reply, turn.started[0]))]


@rule("turn.started-once", title="A turn is announced once", level=Level.MUST)
class StartedOnce(Monitor):
    """Judges that no second turn/started comes for a turn, for example after turn/steer.

    Left open: turns that are neither ours nor of a thread that we opened.
    """

    @on("turn/started")
    def started(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or not ours(self.conversation, turn):
            return None
        begins = "turn/start"
        state = walked(TURN, [begins] * (len(turn.started) - 1))
        if TURN.after(state, begins) is not None:
            return [Witness(turn.subject, (frame,))]
        expected = f"one turn/started for {turn.subject}"
        frames = (turn.started[0], frame)
        places, actual = tuple(map(_id_in, frames)), f"{len(turn.started)} of them"
        return [Violation(turn.subject, frames, expected, actual, places=places)]


@rule(
    "turn.started-carries-reply",
    title="turn/started carries the turn of the reply",
    level=Level.SHOULD,
)
class StartedCarriesReply(Monitor):
    """Judges that the turn in turn/started is in progress, as the reply to turn/start showed it.

    Derived from the two: both show the turn as it begins. That there is a turn/started with the id
    of the reply is for turn.started-announced, items and error for the rules on turn objects. Left
    open: turns that this client did not start, a status that is no string (shapes).
    """

    once = True

    @on("turn/started")
    def started(self, frame: Frame) -> Outcomes:
        return self._judge(self.conversation.turn_of(frame))

    @on_answer("turn/start")
    def reply(self, frame: Frame) -> Outcomes:
        return self._judge(self.conversation.turns.get(text(turn_in(frame).get("id"))))

    def _judge(self, turn: TurnView | None) -> Outcomes:
        if turn is None or turn.reply is None or not turn.started:
            return None
        status = turn_in(turn.started[0]).get("status")
        if not isinstance(status, str):
            return None
        frames = (turn.reply, turn.started[0])
        if status == RUNNING:
            return [Witness(turn.subject, frames)]
        where = member(turn.started[0], "turn", "status")
        return [wrong(turn.subject, frames, where, f"{literal(RUNNING)}, as the turn begins")]


@rule("turn.completed-once", title="A turn ends once", level=Level.MUST)
class CompletedOnce(Monitor):
    """Judges that no second turn/completed comes for a turn, whatever its status.

    Left open: turns that are neither ours nor of a thread that we opened.
    """

    @on("turn/completed")
    def completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or not ours(self.conversation, turn):
            return None
        if TURN.ways(turn_state(turn, before=frame)):
            return [Witness(turn.subject, (frame,))]
        actual = f"{len(turn.completed)} of them, the last with status {turn.status}"
        frames = (turn.completed[0], frame)
        places = tuple(member(one, "turn", "status").place for one in frames)
        expected = f"one turn/completed for {turn.subject}"
        return [Violation(turn.subject, frames, expected, actual, places=places)]


@rule("turn.completes", title="Every turn ends with turn/completed", level=Level.MUST)
class Completes(Monitor):
    """Judges, at the end of a quiescent trace, that no turn is without its turn/completed.

    Owed for turns that our turn/start began and for those announced on threads that we opened.
    Left open: traces that ended otherwise (closed, timed out, crashed).
    """

    @on("turn/completed")
    def completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or not ours(self.conversation, turn):
            return None
        return [Witness(turn.subject, (frame,))]

    def finish(self) -> Outcomes:
        for item in self.owed.open(Owes.TURN_COMPLETED):
            expected, places = f"turn/completed for {item.subject}", (_id_in(item.frame),)
            actual = never_came(self.trace)
            yield Violation(item.subject, (item.frame,), expected, actual, places=places)


@rule("turn.ids-unique", title="Turns have different ids", level=Level.MUST)
class TurnIdsUnique(Monitor):
    """Judges that two turns have two ids ("Turn": unique identifier).

    A finding: a turn/start answered with the id of a turn of another thread, or of a turn that had
    certainly ended before the request was sent. Left open: a reply with the id of a turn that may
    still have been running (the text does not say what turn/start does then).
    """

    def begin(self) -> None:
        self._made: dict[str, tuple[Frame, str]] = {}

    @on_answer("turn/start")
    def made(self, frame: Frame) -> Outcomes:
        turn_id = text(turn_in(frame).get("id"))
        request = self.conversation.request_of(frame)
        if frame.kind is not Kind.RESPONSE or request is None or not turn_id:
            return None
        thread_id = text(obj(request.params).get("threadId"))
        first, home = self._made.setdefault(turn_id, (frame, thread_id))
        if first is frame:
            return [Witness(f"turn {turn_id}", (frame,))] if len(self._made) > 1 else None
        if self.conversation.request_of(first) is request:
            return None
        frames = (first, frame)
        where = member(frame, "turn", "id")
        if home != thread_id:
            expected = (
                f"a new id for a turn of thread {thread_id}, since thread {home} has this one"
            )
            return [wrong(f"turn {turn_id}", frames, where, expected)]
        ended = self.conversation.turn(turn_id).completed
        if any(self.trace.before(end, request) is True for end in ended):
            expected = "a new id, since the turn of this one had ended before turn/start was sent"
            return [wrong(f"turn {turn_id}", frames, where, expected)]
        return None


@rule(
    "turn.interrupt-ends-interrupted",
    title="An interrupted turn ends with status interrupted",
    level=Level.MUST,
)
class InterruptEnds(Monitor):
    """Judges the end of a turn whose turn/interrupt was answered with success.

    The request takes effect somewhere between its sending and its answer, so an end that was seen
    before the answer proves nothing unless it is `interrupted`. An end of any other status after a
    successful answer is a finding ("turn/interrupt": afterwards turn/completed, interrupted). Left
    open: refused interrupts, turns that end interrupted for other reasons, and a request that names
    another thread than the turn's: which turn it means is not said.
    """

    def begin(self) -> None:
        self._accepted: dict[str, Frame] = {}

    @on_answer("turn/interrupt")
    def answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if frame.kind is not Kind.RESPONSE or request is None:
            return None
        params = obj(request.params)
        turn = self.conversation.turns.get(text(params.get("turnId")))
        if turn is None or turn.thread_id != text(params.get("threadId")):
            return None
        if not turn.completed:
            self._accepted.setdefault(turn.id, frame)
            return None
        crossed = self.trace.before(turn.completed[0], request) is not True
        if turn.status == INTERRUPTED and crossed:
            return [Witness(turn.subject, (request, turn.completed[0], frame))]
        return None

    @on("turn/completed")
    def completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or len(turn.completed) > 1 or turn.id not in self._accepted:
            return None
        frames = (self._accepted[turn.id], frame)
        status = dig(turn_in(frame), "status")
        if status == INTERRUPTED:
            return [Witness(turn.subject, frames)]
        expected = f"{literal(INTERRUPTED)}, since turn/interrupt had been answered with success"
        return [wrong(turn.subject, frames, member(frame, "turn", "status"), expected)]
