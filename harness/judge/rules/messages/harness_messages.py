"""Rules on the harness's own messages, so that a target is never blamed for them."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from dataclasses import replace

from harness.judge.base import (
    Monitor,
    Outcomes,
    Violation,
    Witness,
    on_harness_message,
    on_kind,
    rule,
)
from harness.judge.rules.messages.responses import both_violation
from harness.judge.rules.messages.shapes import shape_violation
from harness.judge.rules.shared.view_queries import request_subject
from harness.judge.rules.shared.violations import member, root_member, unexpected_member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import MISSING
from harness.trace.correlation import Id, as_id
from harness.trace.frame import Frame, Kind


@rule("harness.own-frame", title="The harness's own messages are right", level=Level.MUST)
class OwnFrame(Monitor):
    """Judges the harness's own messages: well-formed, and with params that fit the book's schemas.

    A violation blames the harness (verdict ERROR): a server must not be judged by a wrong request.
    Left open: messages that a scenario made wrong on purpose, methods that the book does not know
    or whose params it does not show, and answers to server requests (harness.own-answer).
    """

    @on_harness_message
    def on_client_message(self, frame: Frame) -> Outcomes:
        if frame.deliberate:
            return None
        if frame.kind is Kind.MALFORMED:
            expected, actual = "one of the four message forms", frame.text(160)
            return _blame_harness(Violation("own message", (frame,), expected, actual))
        if frame.kind is not Kind.REQUEST or self.book.method(frame.method) is None:
            return None
        errors = self.book.validate_params(frame.method, frame.params)
        if errors:
            violation = shape_violation(f"own {frame.method}", (frame,), member(frame), errors)
            return [replace(violation, blame_harness=True, clauses=())]
        return [Witness(f"own {frame.method}", (frame,))]


@rule(
    "harness.own-answer",
    title="The harness's own answers are right",
    level=Level.MUST,
    needs=("command-approval",),
)
class OwnAnswer(Monitor):
    """Judges the harness's answers to server requests: one per request, in its form.

    The id is that of a request that came on this connection, with its type; the result has the
    shape that the book shows for the method, so a decision is one of those listed. A violation
    blames the harness (verdict ERROR). Left open: answers that a scenario made wrong on purpose,
    results of methods that the book does not know, errors as answers, whose form is not shown, and
    requests whose id no answer can name.
    """

    @on_harness_message
    def on_client_message(self, frame: Frame) -> Outcomes:
        if frame.deliberate or frame.kind not in (Kind.RESPONSE, Kind.ERROR):
            return None
        question = self.conversation.request_of(frame)
        if question is None:
            if as_id(frame.id) is None:
                return None
            expected = "the id of a request that the server sent on this connection"
            return _blame_harness(wrong("own answer", (frame,), root_member(frame, "id"), expected))
        subject, frames = f"own answer to {question.method}", (question, frame)
        first = self.conversation.answer_of(question)
        if first is not None and first.deliberate:
            return None
        if first is not None and first is not frame:
            expected = f"one answer to {request_subject(question)}"
            shown_frames = (question, first, frame)
            return _blame_harness(
                unexpected_member(subject, shown_frames, root_member(frame, "id"), expected)
            )
        if frame.result is not MISSING and frame.error is not MISSING:
            return _blame_harness(both_violation(subject, frames))
        if frame.result is MISSING and frame.error is MISSING:
            return _blame_harness(
                wrong(subject, frames, root_member(frame, "result"), "a result, or an error")
            )
        if frame.kind is Kind.RESPONSE and self.book.method(question.method) is not None:
            errors = self.book.validate_result(question.method, frame.result)
            if errors:
                shown_frames = shape_violation(subject, frames, member(frame), errors)
                return [replace(shown_frames, blame_harness=True)]
        return [Witness(subject, frames)]


@rule(
    "harness.own-request-id", title="The harness's own requests have distinct ids", level=Level.MUST
)
class OwnRequestId(Monitor):
    """Judges that no request of the harness reuses the id of an unanswered one.

    Otherwise an answer would be ambiguous. A violation blames the harness (verdict ERROR). Left
    open: messages that a scenario made wrong on purpose, an id that is reused later, and invalid
    ids (trace.correlation).
    """

    def begin(self) -> None:
        self._open: dict[Id, Frame] = {}

    @on_harness_message
    def on_client_message(self, frame: Frame) -> Outcomes:
        if frame.deliberate or frame.kind is not Kind.REQUEST:
            return None
        identifier = as_id(frame.id)
        if identifier is None:
            return None
        first = self._open.get(identifier)
        self._open[identifier] = frame
        if first is None:
            return [Witness("own request ids", (frame,))]
        expected = f"an id other than that of {first.method}, which is not answered yet"
        field, also = root_member(frame, "id"), (root_member(first, "id"),)
        return _blame_harness(wrong("own request ids", (first, frame), field, expected, also=also))

    @on_kind(Kind.RESPONSE, Kind.ERROR)
    def on_response(self, frame: Frame) -> Outcomes:
        identifier = as_id(frame.id)
        if identifier is not None:
            self._open.pop(identifier, None)
        return None


def _blame_harness(violation: Violation) -> list[Violation]:
    return [replace(violation, blame_harness=True)]
