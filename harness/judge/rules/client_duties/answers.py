"""Duties of a client that is asked: it answers each question once, in the right form."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import replace

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
from harness.judge.rules.messages.shapes import shape_violation
from harness.judge.rules.shared.view_queries import request_subject
from harness.judge.rules.shared.violations import (
    absent,
    member,
    root_member,
    unexpected_member,
    wrong,
)
from harness.judge.verdict import Level
from harness.protocol.spec.errors import SchemaError
from harness.protocol.values import MISSING, dig, obj, text, value_at
from harness.trace.correlation import Id, as_id
from harness.trace.frame import Frame, Kind
from harness.trace.marks import ClientLeft
from harness.trace.trace import Mark

_ANSWERS = (Kind.RESPONSE, Kind.ERROR)
_NEEDS = ("command-approval",)
# The code by which a JSON-RPC peer reports a line that it cannot read.
_PARSE_ERROR = -32700
# A client that leaves has had time to answer what it was asked this long before.
MIN_SECONDS_TO_ANSWER = 1.0


def _is_answer(frame: Frame) -> bool:
    return frame.kind in _ANSWERS and not frame.deliberate


class _FirstAnswerRule(Monitor):
    """Base of rules on the first answer to each question."""

    @on_harness_message
    def on_client_message(self, frame: Frame) -> Outcomes:
        question = self.conversation.request_of(frame) if _is_answer(frame) else None
        if question is None or self.conversation.answer_of(question) is not frame:
            return None
        return self.judge_answer(question, frame, request_subject(question))

    @abstractmethod
    def judge_answer(self, question: Frame, frame: Frame, subject: str) -> Outcomes:
        """Judge the first answer to a question."""

    def errors_of(self, question: Frame, frame: Frame) -> list[SchemaError]:
        """Return the schema errors of a result; none if the book does not show the method."""
        if frame.kind is not Kind.RESPONSE or self.book.method(question.method) is None:
            return []
        return self.book.validate_result(question.method, frame.result)


@rule(
    "duty.answer-known",
    title="The client answers only what it was asked",
    level=Level.MUST,
    needs=_NEEDS,
    side=Side.CLIENT,
)
class AnswerKnown(Monitor):
    """Judges that each answer of the client has the id of a request that the server sent.

    The request came before on the same connection, and an id keeps its type: "1" does not answer
    the request 1. Left open: an error with id null, by which a JSON-RPC peer reports an unreadable
    message, and answers with neither result nor error (duty.message-form).
    """

    @on_harness_message
    def on_client_message(self, frame: Frame) -> Outcomes:
        if not _is_answer(frame):
            return None
        question = self.conversation.request_of(frame)
        if question is not None:
            return [Witness(request_subject(question), (question, frame))]
        if frame.kind is Kind.ERROR and (as_id(frame.id) is None or frame.error is MISSING):
            return None
        expected = "the id of a request that the server sent on this connection"
        return [wrong(f"answer to id {frame.id}", (frame,), root_member(frame, "id"), expected)]


@rule(
    "duty.answer-once",
    title="The client answers a request of the server once",
    level=Level.SHOULD,
    needs=_NEEDS,
    side=Side.CLIENT,
)
class AnswerOnce(Monitor):
    """Judges that no request of the server is answered by the client a second time.

    Derived: an answer has the id of a pending request, and after the first answer none is pending.
    An id that the server has used again since is a new request. Left open: which of the two answers
    counts.
    """

    @on_harness_message
    def on_client_message(self, frame: Frame) -> Outcomes:
        question = self.conversation.request_of(frame) if _is_answer(frame) else None
        if question is None:
            return None
        first = self.conversation.answer_of(question)
        subject = request_subject(question)
        if first is None or first is frame or first.deliberate:
            return [Witness(subject, (question, frame))]
        expected = f"one answer to {subject}"
        return [
            unexpected_member(subject, (question, first, frame), root_member(frame, "id"), expected)
        ]


@rule(
    "duty.notification-unanswered",
    title="The client answers no notification",
    level=Level.INFO,
    side=Side.CLIENT,
)
class NotificationUnanswered(Monitor):
    """Records errors of the client that name no request, after a notification of the server.

    A notification has no id, so a client that answers one that it does not know sends an error
    whose id is null. INFO, since such an error does not say which message it is about. Left open:
    parse errors, by which a JSON-RPC peer reports an unreadable line, and errors without the member
    id (duty.message-form).
    """

    once = True

    def begin(self) -> None:
        self._last: Frame | None = None

    @on_kind(Kind.NOTIFICATION)
    def on_notification(self, frame: Frame) -> Outcomes:
        self._last = frame
        return None

    @on_harness_message
    def on_client_message(self, frame: Frame) -> Outcomes:
        if self._last is None or frame.deliberate:
            return None
        subject = f"connection {frame.connection}"
        answers_nothing = frame.kind is Kind.ERROR and as_id(frame.id) is None
        if not answers_nothing or frame.error is MISSING:
            return [Witness(subject, (self._last, frame))]
        if obj(frame.error).get("code") == _PARSE_ERROR:
            return None
        expected = "no answer to a notification, or the id of a request"
        return [wrong(subject, (self._last, frame), root_member(frame, "id"), expected)]


@rule(
    "duty.answer-form",
    title="The client's answer has a result of the shape that was asked for",
    level=Level.MUST,
    needs=_NEEDS,
    side=Side.CLIENT,
)
class AnswerForm(_FirstAnswerRule):
    """Judges the form of the client's first answer: a result or an error, and not both.

    The result of an approval is an object with a decision. Left open: which decision it is
    (duty.decision-known), results of requests that the text does not show, and errors, whose form
    is not shown.
    """

    def judge_answer(self, question: Frame, frame: Frame, subject: str) -> Outcomes:
        frames = (question, frame)
        if frame.result is not MISSING and frame.error is not MISSING:
            expected = "a result or an error, not both"
            return [unexpected_member(subject, frames, root_member(frame, "error"), expected)]
        if frame.result is MISSING and frame.error is MISSING:
            return [wrong(subject, frames, root_member(frame, "result"), "a result, or an error")]
        errors = [
            error
            for error in self.errors_of(question, frame)
            if not _is_wrong_decision(error, frame)
        ]
        if errors:
            violation = shape_violation(subject, frames, member(frame), errors)
            return [replace(violation, clauses=("approval.answer",))]
        return [Witness(subject, frames)]


@rule(
    "duty.decision-known",
    title="The client decides by a word that the text lists for the question",
    level=Level.MUST,
    needs=_NEEDS,
    side=Side.CLIENT,
)
class DecisionKnown(_FirstAnswerRule):
    """Judges the decision of an approval: one of six words for a command, of two for a file change.

    The two lists differ: accept and decline are in both, cancel and the lasting decisions are for
    commands only. Left open: answers without a decision (duty.answer-form), and second answers.
    """

    def judge_answer(self, question: Frame, frame: Frame, subject: str) -> Outcomes:
        is_in_book = self.book.method(question.method) is not None
        if not is_in_book or dig(frame.result, "decision") is MISSING:
            return None
        frames = (question, frame)
        errors = [
            error for error in self.errors_of(question, frame) if _is_wrong_decision(error, frame)
        ]
        if errors:
            return [shape_violation(subject, frames, member(frame), errors)]
        return [Witness(subject, frames)]


def _is_wrong_decision(error: SchemaError, frame: Frame) -> bool:
    """Return whether a decision exists and is wrong, not missing."""
    return error.path[:1] == ("decision",) and value_at(frame.result, error.path) is not MISSING


@rule(
    "duty.answers",
    title="The client answers every request of the server",
    level=Level.MUST,
    needs=_NEEDS,
    side=Side.CLIENT,
)
class Answers(Monitor):
    """Judges that every request of the server gets an answer, however late.

    Judged when the client leaves, for questions that had been open for a second, and at the end, if
    the client was certainly at rest: an open question may be waiting for a person. A question ends
    without an answer when the server reports that it is resolved, that its turn has ended or that
    its thread is closed, and when the client opens a thread again; not by what the server sends
    after the client left. An error is an answer too. Left open: requests whose id no answer can
    name.
    """

    def begin(self) -> None:
        self._open: dict[Id, Frame] = {}
        # Questions that the client left within a second.
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
            else:
                actual = f"the client left after {seconds:.2g} s without one"
                yield self._missing_answer(question, actual)
        self._has_left = True
        self._open.clear()

    @on_harness_message
    def on_client_message(self, frame: Frame) -> Outcomes:
        identifier = as_id(frame.id)
        if identifier is None or frame.kind not in _ANSWERS:
            return None
        question = self._open.pop(identifier, None)
        if question is None or frame.deliberate:
            return None
        return [Witness(request_subject(question), (question, frame))]

    @on("serverRequest/resolved")
    def on_server_request_resolved(self, frame: Frame) -> Outcomes:
        # The payload is not shown: it may name an open question, else it may mean any.
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

    def _missing_answer(self, question: Frame, actual: str) -> Violation:
        subject = request_subject(question)
        expected = f"an answer of the client to {subject}"
        violation = absent(subject, (question,), expected, actual, root_member(question, "id"))
        return replace(violation, clauses=self._clauses(question))

    def _clauses(self, question: Frame) -> tuple[str, ...]:
        is_in_book = self.book.method(question.method) is not None
        return ("approval.answer",) if is_in_book else ("rpc.answer-form",)

    def _forget(self, keys: Iterable[Id]) -> None:
        for key in list(keys):
            del self._open[key]
