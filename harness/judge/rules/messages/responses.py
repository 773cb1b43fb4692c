"""Rules on answers: the request of each, and that each request gets one.

The form of error answers is not shown, so any counts as an answer.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import json

from harness.judge.base import (
    Monitor,
    Outcomes,
    Violation,
    Witness,
    on_answer,
    on_harness_message,
    on_kind,
    rule,
)
from harness.judge.rules.shared.empty_replies import empty_reply
from harness.judge.rules.shared.view_queries import (
    connection_suffix,
    describe_silence,
    format_value,
    request_subject,
)
from harness.judge.rules.shared.violations import root_member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import MISSING, dig, obj, text
from harness.trace.correlation import as_id, same_id
from harness.trace.difference import literal
from harness.trace.frame import Frame, Kind
from harness.trace.obligations import ObligationKind
from harness.trace.order import frames_before

# Stability of methods that are not operations of the specification, or not stable.
_NOT_BINDING = ("silent", "under-development")

# The number of messages before an answer that are searched for its possible ids.
MAX_MESSAGES_SEARCHED = 500


@rule("response.known-id", title="An answer carries the id of a request", level=Level.MUST)
class KnownId(Monitor):
    """Judges that each answer's id is that of a request sent before on its connection.

    The id keeps its type: 1 and "1" differ ("Message forms" rule 1). Left open: errors with a null
    id (the only way to answer a line whose id cannot be read); and, once the harness has sent
    something malformed on purpose, errors with any id, results with an id that occurred in it, and
    results with any id if it had no readable id, such as part of a message. If a trace begins late,
    also an id that is not an integer above that of the first request: its request may be missing.
    """

    def begin(self) -> None:
        self._raw_sent = False
        self._raw_ids: list[object] = []
        self._first_id: object = None

    @on_harness_message
    def on_client_message(self, frame: Frame) -> Outcomes:
        if self._first_id is None and frame.kind is Kind.REQUEST:
            self._first_id = frame.id
        if frame.deliberate:
            self._raw_sent = True
            self._raw_ids.append(obj(frame.json).get("id", MISSING))
        return None

    @on_kind(Kind.RESPONSE, Kind.ERROR)
    def on_response(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is not None:
            return [Witness(request_subject(request), (request, frame))]
        if frame.kind is Kind.ERROR and (frame.id is None or self._raw_sent):
            return None
        is_first = frame.connection == self.trace.frames[0].connection
        if self.trace.begins_late and is_first and not self._is_after_the_first(frame):
            return None
        if MISSING in self._raw_ids or any(_echoes(frame.id, raw) for raw in self._raw_ids):
            return None
        return [
            wrong(
                f"answer id {format_value(frame.id)}",
                (frame,),
                root_member(frame, "id"),
                f"the id of a request that was sent on this connection{self._sent_ids(frame)}",
            )
        ]

    def _is_after_the_first(self, answer: Frame) -> bool:
        """Return whether an answer's id is above that of the first request in the trace.

        Clients count up, so a request before the beginning of the trace has a lower id.
        """
        first, late = self._first_id, answer.id
        return isinstance(first, int) and isinstance(late, int) and late > first

    def _sent_ids(self, frame: Frame) -> str:
        """Return a description of the ids sent before a frame, with their types."""
        last = frames_before(self.trace, frame, MAX_MESSAGES_SEARCHED)
        ids = [literal(message.id) for message in last if _is_own_request(message)]
        return f", the last of them {', '.join(ids[-3:])}" if ids else "; none was sent"


def _echoes(answer_id: object, sent_id: object) -> bool:
    """Return whether an answer repeats an id that the harness sent, even an invalid one."""
    if as_id(sent_id) is None:
        return json.dumps(answer_id) == json.dumps(sent_id)
    return same_id(answer_id, sent_id) or _same_double(answer_id, sent_id)


def _same_double(first: object, second: object) -> bool:
    """Return whether two numbers are equal as doubles, like 10^30 and 1e+30."""
    numbers = [as_id(value) for value in (first, second)]
    try:
        one, other = (float(number) for number in numbers if isinstance(number, int | float))
    except (OverflowError, ValueError):
        return False  # too large for a double, or not two numbers
    return one == other


def _is_own_request(frame: Frame) -> bool:
    return frame.kind is Kind.REQUEST and not frame.from_target


@rule("response.once", title="A request is answered once", level=Level.MUST)
class AnsweredOnce(Monitor):
    """Judges that no second answer comes to a request ("Endpoints": a request is answered by one).

    Left open: the content of the two; a second error counts like a second result. Requests that
    were malformed on purpose are not judged.
    """

    def begin(self) -> None:
        self._answers: dict[Frame, Frame] = {}

    @on_kind(Kind.RESPONSE, Kind.ERROR)
    def on_response(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or request.deliberate:
            return None
        first = self._answers.setdefault(request, frame)
        subject = request_subject(request)
        if first is frame:
            return [Witness(subject, (request, frame))]
        frames = (request, first, frame)
        second = root_member(frame, "error" if frame.kind is Kind.ERROR else "result")
        actual, places = f"a second answer, {second}", (second.place,)
        return [Violation(subject, frames, f"one answer to {subject}", actual, places=places)]


@rule("request.answered", title="Every request is answered", level=Level.MUST)
class Answered(Monitor):
    """Judges, at the end of a quiescent trace, that every request has an answer.

    A result and a failure of any form both count. The clause on "every operation" binds for the
    methods of the specification; if a server ignores an unknown method, or one under development,
    it is INFO. Requests that were malformed on purpose are not judged: their treatment is not
    shown.
    """

    @on_kind(Kind.RESPONSE, Kind.ERROR)
    def on_response(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or request.deliberate:
            return None
        return [Witness(request_subject(request), (request, frame))]

    def finish(self) -> Outcomes:
        for item in self.owed.open_obligations(ObligationKind.ANSWER):
            row = self.book.method(item.frame.method)
            binds = row is not None and row.stability not in _NOT_BINDING
            yield Violation(
                request_subject(item.frame),
                (item.frame,),
                f"a result or an error with id {literal(item.frame.id)}"
                f"{connection_suffix(self.trace, item.frame)}",
                describe_silence(self.trace, "no answer"),
                None if binds else Level.INFO,
            )


@rule(
    "response.result-xor-error",
    title="An answer is a result or an error, not both",
    level=Level.INFO,
)
class ResultXorError(Monitor):
    """Judges that no answer holds both a result and an error.

    JSON-RPC requires it. The specification does not show the form of a failure, not even a member
    `error`: INFO. Left open: either member beside a null other one.
    """

    @on_kind(Kind.RESPONSE, Kind.ERROR)
    def on_response(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        subject = request_subject(request) if request else f"answer id {format_value(frame.id)}"
        if frame.error in (MISSING, None) or frame.result in (MISSING, None):
            return [Witness(subject, (frame,))]
        return [both_violation(subject, (frame,))]


def both_violation(subject: str, frames: tuple[Frame, ...]) -> Violation:
    """Return the violation for a last frame that has both a result and an error."""
    members = (root_member(frames[-1], "result"), root_member(frames[-1], "error"))
    actual, places = "; ".join(map(str, members)), tuple(field.place for field in members)
    return Violation(subject, frames, "result or error, not both", actual, places=places)


@rule(
    "response.before-effects",
    title="An answer precedes the notifications that its request causes",
    level=Level.SHOULD,
)
class BeforeEffects(Monitor):
    """Judges that turn/interrupt is answered before the end of the turn that it causes.

    The specification says that the turn's end comes afterwards: SHOULD. For thread/start and
    turn/start it gives no order, so whether their answers come before their notifications is only
    recorded. An end other than `interrupted` may have crossed the request and is not judged.
    """

    @on_answer("thread/start")
    def on_thread_start_answer(self, frame: Frame) -> Outcomes:
        thread = self.conversation.threads.get(text(dig(frame.result, "thread", "id")))
        if thread is None or thread.reply is not frame:
            return None
        return self._order(frame, thread.subject, thread.starts, Level.INFO, "")

    @on_answer("turn/start")
    def on_turn_start_answer(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        request = self.conversation.request_of(frame)
        if turn is None or request is None:
            return None
        # A turn that was running before the request is not an effect of it.
        early_starts = [
            start for start in turn.starts if self.trace.before(start, request) is not True
        ]
        if len(early_starts) < len(turn.starts):
            return None
        clause = "turn-start.response-first"
        return self._order(frame, turn.subject, early_starts, Level.INFO, clause)

    @on_answer("turn/interrupt")
    def on_turn_interrupt_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE:
            return None
        turn = self.conversation.turn_of(request)
        if turn is None or not (turn.starts or turn.reply):
            return None
        if any(self.trace.before(end, request) is True for end in turn.completions):
            return None
        if turn.completions and turn.status != "interrupted":
            return None
        clause = "turn-interrupt.response-first"
        return self._order(frame, turn.subject, turn.completions, Level.SHOULD, clause)

    def _order(
        self, answer: Frame, subject: str, effects: list[Frame], level: Level, clause: str
    ) -> Outcomes:
        if not effects:
            return [Witness(subject, (answer,))]
        expected = f"the answer to id {literal(answer.id)} before {effects[0].method} of {subject}"
        actual = f"{effects[0].method} came first"
        clauses = (clause,) if clause else ()
        return [Violation(subject, (effects[0], answer), expected, actual, level, clauses=clauses)]


@rule("interrupt.reply-empty", title="turn/interrupt is answered with {}", level=Level.MUST)
class InterruptReply(Monitor):
    """Judges that a successful turn/interrupt is answered with an empty object ("turn/interrupt").

    Extra members are not forbidden, so a reply that has any is only recorded as INFO.
    """

    @on_answer("turn/interrupt")
    def on_turn_interrupt_answer(self, frame: Frame) -> Outcomes:
        return empty_reply(self.conversation.request_of(frame), frame)
