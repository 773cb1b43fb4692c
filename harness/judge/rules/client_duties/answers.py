"""Duties of a client in its answers to server requests: one for each, in the right form."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from abc import abstractmethod
from dataclasses import replace

from harness.judge.base import (
    Monitor,
    Outcomes,
    Side,
    Violation,
    Witness,
    on_harness_message,
    on_kind,
    rule,
)
from harness.judge.rules.client_duties.bare_answers import question_of_bare_answer
from harness.judge.rules.messages.shapes import shape_violation
from harness.judge.rules.shared.view_queries import request_subject
from harness.judge.rules.shared.violations import member, root_member, unexpected_member, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.errors import SchemaError
from harness.protocol.values import MISSING, dig, obj, value_at
from harness.trace.correlation import as_id
from harness.trace.difference import literal
from harness.trace.frame import Frame, Kind

_ANSWERS = (Kind.RESPONSE, Kind.ERROR)
_NEEDS = ("command-approval",)
_FORM = ("rpc.answer-form",)
# The code by which a JSON-RPC peer reports a line that it cannot read.
_PARSE_ERROR = -32700


def _is_answer(frame: Frame) -> bool:
    return frame.kind in _ANSWERS and not frame.deliberate


class _FirstAnswerRule(Monitor):
    """Base of rules on the first answer to each server request."""

    @on_harness_message
    def on_client_message(self, frame: Frame) -> Outcomes:
        question = self.conversation.request_of(frame) if _is_answer(frame) else None
        if question is None or self.conversation.answer_of(question) is not frame:
            return None
        return self.judge_answer(question, frame, request_subject(question))

    @abstractmethod
    def judge_answer(self, question: Frame, frame: Frame, subject: str) -> Outcomes:
        """Judge the first answer to a server request, `question`."""

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
        subject, field = f"answer to id {frame.id}", root_member(frame, "id")
        meant = self._question_of_other_type(frame)
        if meant is None:
            expected = "the id of a request that the server sent on this connection"
            return [wrong(subject, (frame,), field, expected)]
        expected = f"{literal(meant.id)}, {_type_name(meant.id)}, as in {meant.method}"
        violation = wrong(subject, (frame,), field, expected)
        return [replace(violation, actual=f"{field}, {_type_name(frame.id)}")]

    def _question_of_other_type(self, answer: Frame) -> Frame | None:
        """Return the server request whose id is equal but for its type, None if there is none."""
        for question in self.conversation.requests:
            is_like = (
                str(question.id) == str(answer.id) and question.connection == answer.connection
            )
            if question.from_target and is_like:
                return question
        return None


def _type_name(identifier: object) -> str:
    return "a string" if isinstance(identifier, str) else "a number"


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
        field = root_member(frame, "id")
        violation = unexpected_member(
            subject, (question, first, frame), field, f"one answer to {subject}"
        )
        return [replace(violation, actual=f"a second answer ({field})")]


@rule(
    "duty.notification-unanswered",
    title="The client answers no notification",
    level=Level.INFO,
    side=Side.CLIENT,
)
class NotificationUnanswered(Monitor):
    """Records errors of the client that name no request, after a notification of the server.

    A notification has no id, so a client that answers one that it does not know sends an error
    whose id is null. INFO, since such an error does not say which message it is about: the
    notification is shown only if the error names its method, or if no other came since the client's
    last message. Left open: parse errors, by which a JSON-RPC peer reports an unreadable line, and
    errors without the member id (duty.message-form).
    """

    once = True

    def begin(self) -> None:
        # Notifications since the last message of the client.
        self._unread: list[Frame] = []
        self._by_method: dict[str, Frame] = {}

    @on_kind(Kind.NOTIFICATION)
    def on_notification(self, frame: Frame) -> Outcomes:
        self._unread.append(frame)
        self._by_method[frame.method] = frame
        return None

    @on_harness_message
    def on_client_message(self, frame: Frame) -> Outcomes:
        candidates, self._unread = self._unread, []
        if not self._by_method or frame.deliberate:
            return None
        subject = f"connection {frame.connection}"
        answers_nothing = frame.kind is Kind.ERROR and as_id(frame.id) is None
        if not answers_nothing or frame.error is MISSING:
            return [Witness(subject, (frame,))]
        if obj(frame.error).get("code") == _PARSE_ERROR:
            return None
        answered = self._notification_named_by(frame)
        if answered is None and len(candidates) == 1:
            answered = candidates[0]
        expected = "no answer to a notification, or the id of a request"
        if answered is None:
            field = root_member(frame, "id")
            violation = wrong(subject, (frame,), field, expected)
            actual = f"{field}, which does not say which message it is about"
            return [replace(violation, actual=actual)]
        return [wrong(subject, (answered, frame), root_member(frame, "id"), expected)]

    def _notification_named_by(self, error: Frame) -> Frame | None:
        """Return the last notification of the longest method named in the error, or None."""
        words = str(error.error)
        named = [frame for method, frame in self._by_method.items() if method in words]
        return max(named, key=lambda frame: len(frame.method), default=None)


@rule(
    "duty.answer-form",
    title="The client's answer has a result of the shape that was asked for",
    level=Level.MUST,
    needs=_NEEDS,
    side=Side.CLIENT,
)
class AnswerForm(_FirstAnswerRule):
    """Judges the form of the client's first answer: a result or an error, and not both.

    The result of an approval is an object with a decision. The result of a request that is not
    specified is an object too, as all specified results are: SHOULD. Left open: which decision it
    is (duty.decision-known), the members of other results, and errors, whose form is not shown.
    """

    @on_harness_message
    def on_client_message(self, frame: Frame) -> Outcomes:
        question = question_of_bare_answer(self.conversation, frame)
        if question is not None:
            return [_without_content(question, frame)]
        return super().on_client_message(frame)

    def judge_answer(self, question: Frame, frame: Frame, subject: str) -> Outcomes:
        frames = (question, frame)
        if frame.result is not MISSING and frame.error is not MISSING:
            field, expected = root_member(frame, "error"), "a result or an error, not both"
            return [unexpected_member(subject, frames, field, expected, clauses=_FORM)]
        if frame.result is MISSING and frame.error is MISSING:
            return [_without_content(question, frame)]
        is_in_book = self.book.method(question.method) is not None
        if frame.kind is Kind.RESPONSE and not is_in_book and not isinstance(frame.result, dict):
            field, clauses = root_member(frame, "result"), ("rpc.answer-result",)
            level = Level.SHOULD
            return [wrong(subject, frames, field, "an object", level=level, clauses=clauses)]
        errors = [
            error
            for error in self.errors_of(question, frame)
            if not _is_wrong_decision(error, frame)
        ]
        if errors:
            violation = shape_violation(subject, frames, member(frame), errors)
            return [replace(violation, clauses=("approval.answer",))]
        return [Witness(subject, frames)]


def _without_content(question: Frame, answer: Frame) -> Violation:
    subject, field = request_subject(question), root_member(answer, "result")
    return wrong(subject, (question, answer), field, "a result, or an error", clauses=_FORM)


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
