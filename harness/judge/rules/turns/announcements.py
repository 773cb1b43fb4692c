"""Rules on a turn's announcements: reply, start, end, each once."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from typing import Any

from harness.judge.base import (
    Monitor,
    Outcomes,
    Violation,
    Witness,
    on,
    on_answer,
    on_sent,
    rule,
)
from harness.judge.rules.shared.state_tracking import (
    ENDINGS,
    INTERRUPTED,
    RUNNING,
    state_after,
    turn_state,
)
from harness.judge.rules.shared.view_queries import (
    completed_on_unknown_thread,
    connection_suffix,
    describe_silence,
    is_failure,
    is_own_turn,
    resumed_between,
    thread_of,
    turn_in,
)
from harness.judge.rules.shared.violations import member, several, wrong
from harness.judge.verdict import Level, Place
from harness.protocol.spec.machines import TURN
from harness.protocol.values import MISSING, dig, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame, Kind
from harness.trace.obligations import Obligation, ObligationKind
from harness.trace.order import came_before
from harness.trace.views import OPENING_METHODS, TurnView, turns_of


@rule("turn.start-reply", title="turn/start is answered with a turn in progress", level=Level.MUST)
class StartReply(Monitor):
    """Judges the turn in a successful reply: status inProgress, items [], error null.

    A reply that comes after the end of its turn is SHOULD: it shows the turn as in progress. Left
    open: a missing error, which counts as null; every other member; a second turn/start that is
    answered with the running turn.
    """

    @on_answer("turn/start")
    def on_turn_start_answer(self, frame: Frame) -> Outcomes:
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
        if broken:
            return [several(subject, (frame,), broken)]
        view, request = self.conversation.turn_of(frame), self.conversation.request_of(frame)
        late = view is not None and view.reply is frame and view.completions
        if view is None or request is None or not late:
            return [Witness(subject, (frame,))]
        if self.trace.before(view.completions[0], request) is True:
            return None
        end, expected = view.completions[0], "the answer to turn/start before the end of its turn"
        actual, places = "turn/completed came first", (_id_in(end), _id_in(frame))
        clauses, level = ("turn-start.answered-in-time",), Level.SHOULD
        return [
            Violation(
                subject, (end, frame), expected, actual, level, clauses=clauses, places=places
            )
        ]


def _id_in(frame: Frame) -> Place:
    """Return the place of the turn's id in a message."""
    return member(frame, "turn", "id").place


@rule("turn.started-announced", title="A started turn is announced", level=Level.MUST)
class StartedAnnounced(Monitor):
    """Judges that turn/start leads to turn/started with the id of the reply.

    The notification may come before or after the reply. If a reply names a turn that had begun
    before (a turn/start during the turn, which is not specified), that counts.
    """

    @on("turn/started")
    def on_turn_started(self, frame: Frame) -> Outcomes:
        return self._witness(self.conversation.turn_of(frame))

    @on_answer("turn/start")
    def on_turn_start_answer(self, frame: Frame) -> Outcomes:
        return self._witness(self.conversation.turn_of(frame))

    def finish(self) -> Outcomes:
        for item in self.owed.open_obligations(ObligationKind.TURN_STARTED):
            suffix = connection_suffix(self.trace, item.frame)
            expected, places = f"turn/started for {item.subject}{suffix}", (_id_in(item.frame),)
            actual = describe_silence(self.trace)
            yield Violation(item.subject, (item.frame,), expected, actual, places=places)

    def _witness(self, turn: TurnView | None) -> Outcomes:
        if turn is None or turn.reply is None or not turn.starts:
            return None
        return [Witness(turn.subject, (turn.reply, turn.starts[0]))]


@rule("turn.started-once", title="A turn is announced once", level=Level.MUST)
class StartedOnce(Monitor):
    """Judges that no second turn/started comes for a turn, for example after turn/steer.

    SHOULD if the client had reopened the thread meanwhile: the specification does not say whether a
    running turn is announced to it. Left open: turns that neither belong to this client nor to a
    thread that it opened.
    """

    @on("turn/started")
    def on_turn_started(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or not is_own_turn(self.conversation, turn):
            return None
        begins = "turn/start"
        state = state_after(TURN, [begins] * (len(turn.starts) - 1))
        if TURN.next_state(state, begins) is not None:
            return [Witness(turn.subject, (frame,))]
        expected = f"one turn/started for {turn.subject}"
        frames = (turn.starts[0], frame)
        places, actual = tuple(map(_id_in, frames)), f"{len(turn.starts)} of them"
        thread = thread_of(self.conversation, turn)
        again = resumed_between(thread, turn.starts[-2], frame)
        level = Level.SHOULD if again else None
        return [Violation(turn.subject, frames, expected, actual, level, places=places)]


@rule(
    "turn.started-carries-reply",
    title="turn/started carries the turn of the reply",
    level=Level.SHOULD,
)
class StartedCarriesReply(Monitor):
    """Judges that the turn in turn/started is in progress, as the reply to turn/start showed it.

    Derived: both show the turn as it begins. Whether there is a turn/started with the id of the
    reply is for turn.started-announced, items and error for the rules on turn objects. Left open:
    turns that this client did not start, a status that is not a string (shapes).
    """

    once = True

    @on("turn/started")
    def on_turn_started(self, frame: Frame) -> Outcomes:
        return self._judge(self.conversation.turn_of(frame))

    @on_answer("turn/start")
    def on_turn_start_answer(self, frame: Frame) -> Outcomes:
        return self._judge(self.conversation.turn_of(frame))

    def _judge(self, turn: TurnView | None) -> Outcomes:
        if turn is None or turn.reply is None or not turn.starts:
            return None
        status = turn_in(turn.starts[0]).get("status")
        if not isinstance(status, str):
            return None
        frames = (turn.reply, turn.starts[0])
        if status == RUNNING:
            return [Witness(turn.subject, frames)]
        field = member(turn.starts[0], "turn", "status")
        return [wrong(turn.subject, frames, field, f"{literal(RUNNING)}, as the turn begins")]


@rule("turn.completed-once", title="A turn ends once", level=Level.MUST)
class CompletedOnce(Monitor):
    """Judges that no second turn/completed comes for a turn, whatever its status.

    Left open: turns that neither belong to this client nor to a thread that it opened.
    """

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or not is_own_turn(self.conversation, turn):
            return None
        if TURN.next_states(turn_state(turn, before=frame)):
            return [Witness(turn.subject, (frame,))]
        actual = f"{len(turn.completions)} of them, the last with status {turn.status}"
        frames = (turn.completions[0], frame)
        places = tuple(member(notification, "turn", "id").place for notification in frames)
        expected = f"one turn/completed for {turn.subject}"
        return [Violation(turn.subject, frames, expected, actual, places=places)]


@rule("turn.completes", title="Every turn ends with turn/completed", level=Level.MUST)
class Completes(Monitor):
    """Judges, at the end of a quiescent trace, that every turn has its turn/completed.

    It is due on each connection for turns that its turn/start began and for those announced on
    threads that it opened and has not left. SHOULD if any client archived the thread during the
    turn: the specification does not say how the turn then ends. SHOULD for a client that opened the
    thread during the turn: this follows from its subscription alone. Left open: traces that ended
    otherwise (closed, timed out, crashed), and a turn whose end names an unknown thread
    (turn.known-thread).
    """

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or not is_own_turn(self.conversation, turn):
            return None
        return [Witness(turn.subject, (frame,))]

    def finish(self) -> Outcomes:
        for item in self.owed.open_obligations(ObligationKind.TURN_COMPLETED):
            turn = self.conversation.turn_of(item.frame)
            if turn is not None and completed_on_unknown_thread(self.conversation, turn):
                continue
            suffix = connection_suffix(self.trace, item.frame)
            expected = f"turn/completed for {item.subject}{suffix}"
            actual, level, place = describe_silence(self.trace), None, _id_in(item.frame)
            if self._came_in_later(item.frame):
                level, place = Level.SHOULD, member(item.frame, "thread", "turns").place
            elif self._was_archived(item):
                level = Level.SHOULD
            yield Violation(item.subject, (item.frame,), expected, actual, level, places=(place,))

    def _came_in_later(self, frame: Frame) -> bool:
        """Return whether the turn is due because this answer showed it as running."""
        request = self.conversation.request_of(frame)
        return request is not None and request.method in OPENING_METHODS

    def _was_archived(self, item: Obligation) -> bool:
        """Return whether any client archived the thread after this one had seen the turn."""
        for request in self.trace.frames:
            if request.kind is not Kind.REQUEST or request.method != "thread/archive":
                continue
            answer = self.trace.pairs.answer_of(request)
            if answer is None or is_failure(answer) or not came_before(item.frame, answer):
                continue
            if text(obj(request.params).get("threadId")) == item.thread:
                return True
        return False


@rule("turn.ids-unique", title="Turns of a thread have different ids", level=Level.MUST)
class TurnIdsUnique(Monitor):
    """Judges that two turns of a thread have two ids ("Turn": unique identifier).

    A finding: a turn/start answered with the id of a turn of its thread that had certainly ended
    before the request was sent, or that the answer which opened the thread shows as ended; and an
    answer that shows two turns of one thread with one id. Left open: ids of turns of different
    threads, since the specification names no scope, and each message names the thread too; a reply
    with the id of a turn that may still have been running (the specification does not cover a
    turn/start then); ids of turns that a rollback of their thread may have dropped.
    """

    def begin(self) -> None:
        self._first_answers: dict[tuple[str, str], Frame] = {}
        self._stored_ids: dict[tuple[str, str], Frame] = {}
        self._ends: dict[tuple[str, str], Frame] = {}
        self._rollbacks: list[Frame] = []

    @on_sent("thread/rollback")
    def on_thread_rollback_sent(self, frame: Frame) -> Outcomes:
        self._rollbacks.append(frame)
        return None

    @on_answer("thread/resume", "thread/fork")
    def on_thread_opened(self, frame: Frame) -> Outcomes:
        thread = obj(dig(frame.result, "thread"))
        for turn in turns_of(thread):
            if turn.get("status") in ENDINGS:
                key = text(thread.get("id")), text(turn.get("id"))
                self._stored_ids.setdefault(key, frame)
        return None

    @on_answer("thread/read", "thread/resume", "thread/fork", "thread/rollback")
    def on_history(self, frame: Frame) -> Outcomes:
        """Judge that no two turns in an answer have the same id."""
        thread = obj(dig(frame.result, "thread"))
        first: dict[str, int] = {}
        for index, turn in enumerate(turns_of(thread)):
            turn_id = text(turn.get("id"))
            if turn_id and first.setdefault(turn_id, index) != index:
                field = member(frame, "thread", "turns", index, "id")
                also = (member(frame, "thread", "turns", first[turn_id], "id"),)
                view = self.conversation.turn_at(text(thread.get("id")), turn_id)
                subject = f"turn {turn_id}" if view is None else view.subject
                expected = "an id that no other turn of the thread has"
                yield wrong(subject, (frame,), field, expected, also=also)

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        key = text(obj(frame.params).get("threadId")), text(turn_in(frame).get("id"))
        self._ends.setdefault(key, frame)
        return None

    @on_answer("turn/start")
    def on_turn_start_answer(self, frame: Frame) -> Outcomes:
        turn_id = text(turn_in(frame).get("id"))
        request = self.conversation.request_of(frame)
        if frame.kind is not Kind.RESPONSE or request is None or not turn_id:
            return None
        key = text(obj(request.params).get("threadId")), turn_id
        if self._may_be_dropped(key):
            for known in (self._first_answers, self._stored_ids, self._ends):
                known.pop(key, None)
        first, stored = self._first_answers.setdefault(key, frame), self._stored_ids.get(key)
        field, subject = member(frame, "turn", "id"), self._subject(frame)
        if first is frame and stored is not None:
            if self.trace.before(stored, request) is not True:
                return None
            expected = "a new id, since the thread had a turn of this one when it was opened"
            return [wrong(subject, (stored, frame), field, expected)]
        if first is frame:
            return [Witness(subject, (frame,))] if len(self._first_answers) > 1 else None
        end = self._ends.get(key)
        if end is None or self.conversation.request_of(first) is request:
            return None
        if self.trace.before(end, request) is True:
            expected = "a new id, since the turn of this one had ended before turn/start was sent"
            return [wrong(subject, (first, frame), field, expected)]
        return None

    def _may_be_dropped(self, key: tuple[str, str]) -> bool:
        """Return whether the turn of this id may be dropped by a rollback.

        The params of a rollback are not shown, so it names its thread anywhere, or may be of any.
        """
        known = self._ends.get(key) or self._stored_ids.get(key)
        return known is not None and any(
            came_before(known, request)
            and (key[0] in obj(request.params).values() or "threadId" not in obj(request.params))
            for request in self._rollbacks
        )

    def _subject(self, frame: Frame) -> str:
        return f"turn {self.conversation.key_of(frame)}"


@rule(
    "turn.interrupt-ends-interrupted",
    title="An interrupted turn ends with status interrupted",
    level=Level.MUST,
)
class InterruptEnds(Monitor):
    """Judges the end of a turn whose turn/interrupt was answered with success.

    The request takes effect somewhere between its sending and its answer, so an end before the
    answer proves nothing unless it is `interrupted`. An end with any other status after a
    successful answer is a finding ("turn/interrupt": afterwards turn/completed, interrupted). Left
    open: rejected interrupts, turns that end interrupted for other reasons, and a request with the
    thread id of another turn, since its target is unclear.
    """

    def begin(self) -> None:
        self._accepted: dict[str, Frame] = {}

    @on_answer("turn/interrupt")
    def on_turn_interrupt_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if frame.kind is not Kind.RESPONSE or request is None:
            return None
        params = obj(request.params)
        ids = text(params.get("threadId")), text(params.get("turnId"))
        turn = self.conversation.turn_at(*ids) if ids[0] else None
        if turn is None:
            return None
        if not turn.completions:
            self._accepted.setdefault(turn.key, frame)
            return None
        crossed = self.trace.before(turn.completions[0], request) is not True
        if turn.status == INTERRUPTED and crossed:
            return [Witness(turn.subject, (request, turn.completions[0], frame))]
        return None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or len(turn.completions) > 1 or turn.key not in self._accepted:
            return None
        frames = (self._accepted[turn.key], frame)
        status = dig(turn_in(frame), "status")
        if status == INTERRUPTED:
            return [Witness(turn.subject, frames)]
        expected = f"{literal(INTERRUPTED)}, since turn/interrupt had been answered with success"
        return [wrong(turn.subject, frames, member(frame, "turn", "status"), expected)]
