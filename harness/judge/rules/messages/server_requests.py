"""Rules on any server request: form and id; and that no notification is answered."""
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
from harness.judge.rules.messages.shapes import judged, payload_of
from harness.judge.rules.shared.approval_queries import APPROVALS
from harness.judge.rules.shared.view_queries import request_subject
from harness.judge.rules.shared.violations import instead, member, whole, wrong
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

    Params that are null have none of the members that are shown. The command and the cwd of a
    question are named and not said to be always there: SHOULD where they are missing or null. Left
    open: methods that the book does not know, and params that are no object otherwise
    (frame.well-formed speaks of those).
    """

    @on_kind(Kind.REQUEST)
    def on_request(self, frame: Frame) -> Outcomes:
        params = payload_of(frame)
        if self.book.method(frame.method) is None or not isinstance(params, dict):
            return None
        errors = self.book.validate_params(frame.method, params)
        return judged(f"server request {frame.method}", (frame,), member(frame), errors)


@rule(
    "server-request.id-unique",
    title="No two open server requests have one id",
    level=Level.MUST,
    needs=("command-approval",),
)
class IdUnique(Monitor):
    """Judges that a server request's id is not that of one that is still open on its connection.

    Derived: the answer names the request by its id, so it must be one request. An id keeps its
    type. Open is what has not been answered; since serverRequest/resolved and the end of a turn
    may close a question without an answer, ids from before those are not judged. Each thread/resume
    that is not answered when a question comes, or is sent later, may put it once more. Left open:
    an id that is used again later, and ids of no legal type (frame.well-formed).
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
        where, also = whole(frame, "id"), (whole(first, "id"),)
        return [wrong(subject, (first, frame), where, expected, also=also)]

    @on_harness_message
    def answered(self, frame: Frame) -> Outcomes:
        identifier = as_id(frame.id)
        if identifier is not None and frame.kind in (Kind.RESPONSE, Kind.ERROR):
            self._open.pop(identifier, None)
        return None

    @on("serverRequest/resolved", "turn/completed", "thread/closed")
    def closed(self, _: Frame) -> Outcomes:
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
    """Judges that what the text lists as a server request is one, and a notification too.

    Without an id nobody can answer, and with one somebody must. Left open: names that the text
    does not list.
    """

    @on(*APPROVALS)
    def on_approval(self, frame: Frame) -> Outcomes:
        subject = f"method {frame.method}"
        if frame.kind is Kind.REQUEST:
            return [Witness(subject, (frame,))]
        clauses = ("rpc.server-request-form",)
        where, expected = whole(frame, "id"), "a number, since this is a request"
        return [wrong(subject, (frame,), where, expected, clauses=clauses)]

    @on_kind(Kind.REQUEST)
    def on_request(self, frame: Frame) -> Outcomes:
        if self.book.event(frame.method) is None:
            return None
        return [
            wrong(
                f"method {frame.method}",
                (frame,),
                whole(frame, "id"),
                "none, since this is a notification",
                clauses=("rpc.notification-no-id",),
            )
        ]


@rule("notification.not-answered", title="Notifications are not answered", level=Level.SHOULD)
class NotAnswered(Monitor):
    """Judges that no answer without a request's id comes to a notification of ours.

    An answer to a notification can have no id, or null. Such an answer, where the harness has sent
    a notification and nothing malformed, answers just that. A witness is a request that was sent
    after the notification and answered, with nothing of the kind before. SHOULD, since the forms
    have notifications of the server only. Left open: whether the server knows the notification.
    """

    def begin(self) -> None:
        self._told: Frame | None = None
        self._deliberate = False

    @on_harness_message
    def harness_message(self, frame: Frame) -> Outcomes:
        if frame.deliberate or frame.kind is Kind.MALFORMED:
            self._deliberate = True
        elif frame.kind is Kind.NOTIFICATION and self._told is None:
            self._told = frame
        return None

    @on_kind(Kind.RESPONSE, Kind.ERROR)
    def on_response(self, frame: Frame) -> Outcomes:
        if self._told is None or self._deliberate:
            return None
        subject = f"notification {self._told.method}"
        request = self.conversation.request_of(frame)
        if request is not None and came_before(self._told, request):
            return [Witness(subject, (self._told, request, frame))]
        return self._answered(frame, subject) if frame.id is None else None

    @on_kind(Kind.MALFORMED)
    def on_malformed(self, frame: Frame) -> Outcomes:
        if self._told is None or self._deliberate or frame.id is not MISSING:
            return None
        if frame.error is MISSING and frame.result is MISSING:
            return None
        return self._answered(frame, f"notification {self._told.method}")

    def _answered(self, frame: Frame, subject: str) -> Outcomes:
        told = self._told
        frames = (frame,) if told is None else (told, frame)
        where = whole(frame, "result" if frame.error is MISSING else "error")
        expected = f"no answer to {subject}, since a notification has no id to answer to"
        return [instead(subject, frames, where, expected)]
