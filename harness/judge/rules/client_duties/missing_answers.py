"""Duty of a client to answer: server requests that were still open when it left."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterable

from harness.judge.base import (
    Monitor,
    Outcomes,
    Side,
    Violation,
    Witness,
    on,
    on_harness_message,
    on_kind,
    on_mark,
    on_sent,
    rule,
)
from harness.judge.rules.client_duties.bare_answers import question_of_bare_answer
from harness.judge.rules.shared.view_queries import request_subject
from harness.judge.rules.shared.violations import root_member
from harness.judge.verdict import Level
from harness.protocol.values import dig, obj, text
from harness.trace.correlation import Id, as_id
from harness.trace.frame import Frame, Kind
from harness.trace.marks import ClientLeft
from harness.trace.trace import Mark

_ANSWERS = (Kind.RESPONSE, Kind.ERROR)
# A client that leaves had time to read and answer a request that was open for this long.
MIN_SECONDS_TO_ANSWER = 1.0


@rule(
    "duty.answers",
    title="The client answers every request of the server",
    level=Level.MUST,
    needs=("command-approval",),
    side=Side.CLIENT,
)
class Answers(Monitor):
    """Judges that every request of the server gets an answer, however late.

    Judged when the client leaves, for requests that had been open for a second, and at the end, if
    the client was certainly at rest: an open request may be waiting for a person. A request that
    was open for less is recorded as INFO: the client may have left before it read it. A request
    ends without an answer when the server reports that it is resolved, that its turn has ended or
    that its thread is closed, and when the client opens a thread again; not by messages that the
    server sends after the client left. INFO too if a stored trace has the request on another
    connection, where a client that came back, or another one, can answer it. An error is an answer
    too, and so is one without content (duty.answer-form). Left open: requests whose id no answer
    can name.
    """

    def begin(self) -> None:
        self._open: dict[Id, Frame] = {}
        # Requests that had been open for less than a second when the client left.
        self._left_early: list[Frame] = []
        self._has_left = False

    @on_kind(Kind.REQUEST)
    def on_request(self, frame: Frame) -> Outcomes:
        identifier = as_id(frame.id)
        if identifier is not None and not self._has_left:
            self._open[identifier] = frame
        return None

    @on_mark(ClientLeft)
    def on_client_left(self, mark: Mark[ClientLeft]) -> Outcomes:
        # A mark of another client comes here too while this connection is the only one judged.
        if not self.owed.client_left:
            return
        for question in self._open.values():
            seconds = mark.at - question.at
            if seconds < MIN_SECONDS_TO_ANSWER:
                self._left_early.append(question)
                actual = (
                    f"the client left {seconds:.2g} s after the request, perhaps without reading it"
                )
                yield self._missing_answer(question, actual, Level.INFO)
                continue
            actual = f"the client left after {seconds:.2g} s without one"
            other = self._same_request_elsewhere(question)
            if other is None:
                yield self._missing_answer(question, actual)
            else:
                actual += f"; connection {other.connection} was asked too"
                yield self._missing_answer(question, actual, Level.INFO, also=(other,))
        self._has_left = True
        self._open.clear()

    @on_harness_message
    def on_client_message(self, frame: Frame) -> Outcomes:
        identifier = as_id(frame.id)
        if identifier is not None and question_of_bare_answer(self.conversation, frame):
            self._open.pop(identifier, None)
        if identifier is None or frame.kind not in _ANSWERS:
            return None
        question = self._open.pop(identifier, None)
        if question is None or frame.deliberate:
            return None
        return [Witness(request_subject(question), (question, frame))]

    @on("serverRequest/resolved")
    def on_server_request_resolved(self, frame: Frame) -> Outcomes:
        # The payload is not shown: it may name an open request, else it may mean any.
        identifier = as_id(obj(frame.params).get("requestId"))
        if identifier is not None and identifier in self._open:
            del self._open[identifier]
        else:
            self._open.clear()
        return None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = text(dig(frame.params, "turn", "id"))
        self._forget(
            key
            for key, question in self._open.items()
            if text(obj(question.params).get("turnId")) in (turn, "")
        )
        return None

    @on("thread/closed")
    def on_thread_closed(self, _: Frame) -> Outcomes:
        self._open.clear()
        return None

    @on_sent("thread/resume", "thread/unsubscribe")
    def on_resume_or_unsubscribe_sent(self, _: Frame) -> Outcomes:
        self._open.clear()
        return None

    def finish(self) -> Outcomes:
        for question in (*self._left_early, *self._open.values()):
            yield self._missing_answer(question, "none came")

    def _same_request_elsewhere(self, question: Frame) -> Frame | None:
        """Return the request about the same item on another connection, None without one."""
        subject = _item_of(question)
        for frame in self.trace.frames:
            if (
                frame.from_target
                and frame.kind is Kind.REQUEST
                and frame.connection != question.connection
                and frame.method == question.method
                and _item_of(frame) == subject
            ):
                return frame
        return None

    def _missing_answer(
        self,
        question: Frame,
        actual: str,
        level: Level | None = None,
        *,
        also: tuple[Frame, ...] = (),
    ) -> Violation:
        subject = request_subject(question)
        return Violation(
            subject,
            (question, *also),
            f"an answer of the client to {subject}",
            actual,
            level,
            clauses=self._clauses(question),
            places=(root_member(question, "id").place,),
        )

    def _clauses(self, question: Frame) -> tuple[str, ...]:
        is_in_book = self.book.method(question.method) is not None
        return ("approval.answer",) if is_in_book else ("rpc.answer-form",)

    def _forget(self, keys: Iterable[Id]) -> None:
        for key in list(keys):
            del self._open[key]


def _item_of(question: Frame) -> tuple[object, ...]:
    """Return the names of the item that a request is about, or all its params without an item."""
    params = obj(question.params)
    item = text(params.get("itemId"))
    if not item:
        return (question.params,)
    return (text(params.get("threadId")), text(params.get("turnId")), item)
