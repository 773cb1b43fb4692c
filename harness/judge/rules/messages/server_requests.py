"""Rules on server requests: their form and ids; and that notifications get no answer."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import (
    Monitor,
    Outcomes,
    Witness,
    on,
    on_answer,
    on_harness_message,
    on_kind,
    on_sent,
    rule,
)
from harness.judge.rules.messages.shapes import judge_payload, payload_of
from harness.judge.rules.shared.approval_queries import APPROVALS
from harness.judge.rules.shared.view_queries import request_subject
from harness.judge.rules.shared.violations import member, root_member, unexpected_member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import MISSING
from harness.trace.correlation import Id, as_id
from harness.trace.frame import Frame, Kind
from harness.trace.order import came_before


@rule(
    "shape.server-request",
    title="Server requests have the shape of their method",
    level=Level.MUST,
    needs=("command-approval",),
)
class ServerRequestShape(Monitor):
    """Judges the params of each server request of the book against its schema ("Server requests").

    Null params have none of the shown members. The command and the cwd of an approval request are
    named but not said to be always present: SHOULD if they are missing or null. Left open: methods
    that the book does not know, and params that are otherwise not an object (frame.well-formed
    judges them).
    """

    @on_kind(Kind.REQUEST)
    def on_request(self, frame: Frame) -> Outcomes:
        params = payload_of(frame)
        if self.book.method(frame.method) is None or not isinstance(params, dict):
            return None
        errors = self.book.validate_params(frame.method, params)
        return judge_payload(f"server request {frame.method}", (frame,), member(frame), errors)


@rule(
    "server-request.id-unique",
    title="No two open server requests have one id",
    level=Level.MUST,
    needs=("command-approval",),
)
class IdUnique(Monitor):
    """Judges that a server request does not reuse the id of an open one on its connection.

    Derived: the answer names the request by its id, so it must be unique. An id keeps its type. A
    request is open until it is answered; since serverRequest/resolved and the end of a turn may
    close it without an answer, earlier ids are not judged then. Each thread/resume that is
    unanswered when a request comes, or is sent later, may repeat it once. Left open: an id that is
    reused later, and ids of an illegal type (frame.well-formed).
    """

    def begin(self) -> None:
        self._open: dict[Id, tuple[Frame, int]] = {}
        self._resumes_sent = 0
        self._resumes_answered = 0

    @on_kind(Kind.REQUEST)
    def on_request(self, frame: Frame) -> Outcomes:
        identifier = as_id(frame.id)
        if identifier is None:
            return None
        first, put = self._open.get(identifier, (None, self._resumes_answered))
        subject = request_subject(frame)
        if first is None or put < self._resumes_sent:
            self._open[identifier] = (frame, put if first is None else put + 1)
            return [Witness(subject, (frame,))]
        self._open[identifier] = (frame, put)
        expected = f"an id other than that of {first.method}, which is not answered yet"
        field, also = root_member(frame, "id"), (root_member(first, "id"),)
        return [wrong(subject, (first, frame), field, expected, also=also)]

    @on_harness_message
    def on_client_answer(self, frame: Frame) -> Outcomes:
        identifier = as_id(frame.id)
        if identifier is not None and frame.kind in (Kind.RESPONSE, Kind.ERROR):
            self._open.pop(identifier, None)
        return None

    @on("serverRequest/resolved", "turn/completed", "thread/closed")
    def on_closing_event(self, _: Frame) -> Outcomes:
        self._open.clear()
        return None

    @on_sent("thread/resume")
    def on_thread_resume_sent(self, _: Frame) -> Outcomes:
        self._resumes_sent += 1
        return None

    @on_answer("thread/resume")
    def on_thread_resume_answer(self, _: Frame) -> Outcomes:
        self._resumes_answered += 1
        return None


@rule(
    "method.right-form",
    title="Requests of the server have an id, notifications have none",
    level=Level.MUST,
    needs=("command-approval",),
)
class RightForm(Monitor):
    """Judges that each method listed as a server request comes as one, and notifications likewise.

    Without an id the client cannot answer, and with one it must. Left open: names that the
    specification does not list.
    """

    @on(*APPROVALS)
    def on_approval(self, frame: Frame) -> Outcomes:
        subject = f"method {frame.method}"
        if frame.kind is Kind.REQUEST:
            return [Witness(subject, (frame,))]
        clauses = ("rpc.server-request-form",)
        field, expected = root_member(frame, "id"), "a number, since this is a request"
        return [wrong(subject, (frame,), field, expected, clauses=clauses)]

    @on_kind(Kind.REQUEST)
    def on_request(self, frame: Frame) -> Outcomes:
        if self.book.event(frame.method) is None:
            return None
        return [
            wrong(
                f"method {frame.method}",
                (frame,),
                root_member(frame, "id"),
                "none, since this is a notification",
                clauses=("rpc.notification-no-id",),
            )
        ]


@rule("notification.not-answered", title="Notifications are not answered", level=Level.SHOULD)
class NotAnswered(Monitor):
    """Judges that no answer without a request's id comes to a notification of the harness.

    An answer to a notification can have no id, or null. Such an answer, if the harness has sent a
    notification and nothing malformed, answers just that. A witness is a request that was sent
    after the notification and answered, with no such answer before. SHOULD, since the message forms
    have notifications of the server only. Left open: whether the server knows the notification.
    """

    def begin(self) -> None:
        self._notification: Frame | None = None
        self._deliberate = False

    @on_harness_message
    def on_client_message(self, frame: Frame) -> Outcomes:
        if frame.deliberate or frame.kind is Kind.MALFORMED:
            self._deliberate = True
        elif frame.kind is Kind.NOTIFICATION and self._notification is None:
            self._notification = frame
        return None

    @on_kind(Kind.RESPONSE, Kind.ERROR)
    def on_response(self, frame: Frame) -> Outcomes:
        if self._notification is None or self._deliberate:
            return None
        subject = f"notification {self._notification.method}"
        request = self.conversation.request_of(frame)
        if request is not None and came_before(self._notification, request):
            return [Witness(subject, (self._notification, request, frame))]
        return self._answer_violation(frame, subject) if frame.id is None else None

    @on_kind(Kind.MALFORMED)
    def on_malformed(self, frame: Frame) -> Outcomes:
        if self._notification is None or self._deliberate or frame.id is not MISSING:
            return None
        if frame.error is MISSING and frame.result is MISSING:
            return None
        return self._answer_violation(frame, f"notification {self._notification.method}")

    def _answer_violation(self, frame: Frame, subject: str) -> Outcomes:
        notification = self._notification
        frames = (frame,) if notification is None else (notification, frame)
        field = root_member(frame, "result" if frame.error is MISSING else "error")
        expected = f"no answer to {subject}, since a notification has no id to answer to"
        return [unexpected_member(subject, frames, field, expected)]
