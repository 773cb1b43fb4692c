"""Duties of a client in its requests: their form, their id, their method."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

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
from harness.judge.rules.shared.view_queries import request_subject
from harness.judge.rules.shared.violations import root_member, unexpected_member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import MISSING, obj
from harness.trace.correlation import Id, as_id
from harness.trace.difference import literal
from harness.trace.frame import Frame, Kind, json_error

_CLIENTS = "client-to-server"
_HANDSHAKE = ("initialize", "initialized")
_REMOTE = "skills/remote/"
_REQUEST_FORM = ("rpc.request-form",)


@rule(
    "duty.message-form",
    title="Every message of the client has one of the forms of a message",
    level=Level.MUST,
    side=Side.CLIENT,
)
class MessageForm(Monitor):
    """Judges each line of the client: a request, an answer or a notification, as a JSON object.

    A violation is a line that is not JSON, not an object or of unknown form; a request whose id no
    answer could name (null, an array, true); params of a request that are not an object. SHOULD: no
    params at all in a request that the specification shows, and params of a notification that are
    not an object, since its form is shown only for the server's. Left open: ids that are strings
    (duty.id-number), notifications without params, answers without content (duty.answer-form),
    extra members such as jsonrpc, and lines that were cut off by the end of the connection.
    """

    @on_harness_message
    def on_client_message(self, frame: Frame) -> Outcomes:
        if frame.deliberate or question_of_bare_answer(self.conversation, frame):
            return None
        subject = f"connection {frame.connection}"
        if frame.kind is Kind.MALFORMED or self._has_no_method(frame):
            return None if frame.damage else [self._form_violation(subject, frame)]
        if frame.kind is Kind.REQUEST and as_id(frame.id) is None:
            field = root_member(frame, "id")
            return [wrong(subject, (frame,), field, "a number", clauses=_REQUEST_FORM)]
        return [self._params_violation(subject, frame) or Witness(subject, (frame,))]

    def _params_violation(self, subject: str, frame: Frame) -> Violation | None:
        """Return the violation of params that are not an object; None if they are right."""
        params = obj(frame.json).get("params", MISSING)
        if isinstance(params, dict) or frame.kind not in (Kind.REQUEST, Kind.NOTIFICATION):
            return None
        level, clauses = Level.MUST, _REQUEST_FORM
        if frame.kind is Kind.NOTIFICATION:
            level, clauses = Level.SHOULD, ("rpc.client-notification-form",)
        elif params is MISSING:
            level, clauses = Level.SHOULD, ("rpc.request-params",)
        is_shown = self.book.method(frame.method) is not None
        if params is MISSING and (frame.kind is Kind.NOTIFICATION or not is_shown):
            return None
        field = root_member(frame, "params")
        return wrong(subject, (frame,), field, "an object", level=level, clauses=clauses)

    def _has_no_method(self, frame: Frame) -> bool:
        """Return whether a message has no method, result or error, and answers no request."""
        says_nothing = frame.error is MISSING and frame.result is MISSING
        return says_nothing and frame.kind is Kind.ERROR and not self.conversation.request_of(frame)

    def _form_violation(self, subject: str, frame: Frame) -> Violation:
        expected = "a request (method, id, params), an answer (id, result) or a notification"
        clauses = ("rpc.json-object",)
        if frame.json is MISSING:
            actual = f"a line that is not JSON ({json_error(frame.raw)})"
        elif not obj(frame.json) and frame.json != {}:
            actual = "JSON that is not an object"
        else:
            keys = literal(", ".join(obj(frame.json)) or "none")[1:-1]
            actual = f"JSON of no known form (its members: {keys})"
            is_answer = frame.error is not MISSING or frame.result is not MISSING
            clauses = ("rpc.answer-form",) if is_answer else _REQUEST_FORM
        actual = f"{actual}: {frame.text(160)}"
        return Violation(subject, (frame,), expected, actual, clauses=clauses)


@rule(
    "duty.id-number",
    title="The ids of the client's requests are numbers",
    level=Level.INFO,
    side=Side.CLIENT,
)
class IdNumber(Monitor):
    """Records requests whose id is a string, once for each connection.

    A request's form has a number as its id. The specification also speaks of JSON-RPC, which allows
    strings, and many servers accept them, so this is only recorded. Left open: ids that are neither
    (duty.message-form).
    """

    once = True

    @on_harness_message
    def on_client_message(self, frame: Frame) -> Outcomes:
        if frame.deliberate or frame.kind is not Kind.REQUEST:
            return None
        subject = f"connection {frame.connection}"
        if isinstance(frame.id, str):
            return [wrong(subject, (frame,), root_member(frame, "id"), "a number")]
        return None if as_id(frame.id) is None else [Witness(subject, (frame,))]


@rule(
    "duty.id-free",
    title="No request of the client has the id of one that waits for its answer",
    level=Level.SHOULD,
    side=Side.CLIENT,
)
class IdFree(Monitor):
    """Judges that a request does not reuse the id of an unanswered request of the client.

    Derived: the response names its request by the id alone, so it would be ambiguous. Each
    connection has ids of its own, and an id keeps its type. Left open: an id that is reused after
    the answer.
    """

    def begin(self) -> None:
        self._open: dict[Id, Frame] = {}

    @on_harness_message
    def on_client_message(self, frame: Frame) -> Outcomes:
        identifier = as_id(frame.id)
        if frame.kind is not Kind.REQUEST or identifier is None:
            return None
        first = self._open.get(identifier)
        self._open[identifier] = frame
        subject = request_subject(frame)
        if frame.deliberate:
            return None
        if first is None:
            return [Witness(subject, (frame,))]
        expected = f"an id other than that of {first.method}, which is not answered yet"
        field, also = root_member(frame, "id"), (root_member(first, "id"),)
        return [wrong(subject, (first, frame), field, expected, also=also)]

    @on_kind(Kind.RESPONSE, Kind.ERROR)
    def on_response(self, frame: Frame) -> Outcomes:
        identifier = as_id(frame.id)
        if identifier is not None:
            self._open.pop(identifier, None)
        return None


@rule(
    "duty.method-known",
    title="Methods of the client outside the specification are recorded",
    level=Level.INFO,
    side=Side.CLIENT,
)
class MethodKnown(Monitor):
    """Records requests and notifications of the client that are not specified, once each.

    A server need not know them. The specification mentions methods that it does not show, and the
    handshake (initialize, initialized) is an open point, so this never fails a client. Left open:
    names of the server's requests and notifications (duty.right-direction).
    """

    once = True

    @on_harness_message
    def on_client_message(self, frame: Frame) -> Outcomes:
        if frame.deliberate or frame.kind not in (Kind.REQUEST, Kind.NOTIFICATION):
            return None
        method = frame.method
        if self.book.event(method) is not None:
            return None
        subject = f"method {method}"
        if method in _HANDSHAKE or self.book.method(method) is not None:
            return [Witness(subject, (frame,))]
        expected = "the name of an operation of the specification"
        return [wrong(subject, (frame,), root_member(frame, "method"), expected)]


@rule(
    "duty.right-direction",
    title="The client sends none of the server's requests and notifications",
    level=Level.SHOULD,
    side=Side.CLIENT,
)
class RightDirection(Monitor):
    """Judges that the client sends no message that only the server may send.

    Server requests and the listed notifications go from the server to the client; the reaction of a
    server to one is not specified. Left open: names that the specification does not list
    (duty.method-known).
    """

    @on_harness_message
    def on_client_message(self, frame: Frame) -> Outcomes:
        if frame.deliberate or frame.kind not in (Kind.REQUEST, Kind.NOTIFICATION):
            return None
        row, event = self.book.method(frame.method), self.book.event(frame.method)
        subject = f"method {frame.method}"
        if event is None and row is None:
            return None
        if event is None and row is not None and row.direction == _CLIENTS:
            return [Witness(subject, (frame,))]
        expected = f"{frame.method} from the server alone"
        return [unexpected_member(subject, (frame,), root_member(frame, "method"), expected)]


@rule(
    "duty.request-has-id",
    title="The client's requests have an id",
    level=Level.MUST,
    side=Side.CLIENT,
)
class RequestHasId(Monitor):
    """Judges that the client sends the specified operations as requests, not as notifications.

    Without an id the response could not name it, so the client would not learn the outcome. Left
    open: initialize, whose form is not shown, and names that the specification does not list.
    """

    @on_harness_message
    def on_client_message(self, frame: Frame) -> Outcomes:
        row = self.book.method(frame.method)
        if frame.deliberate or row is None or row.direction != _CLIENTS:
            return None
        if frame.method in _HANDSHAKE:
            return None
        subject = f"method {frame.method}"
        if frame.kind is Kind.NOTIFICATION:
            return [wrong(subject, (frame,), root_member(frame, "id"), "a number")]
        return [Witness(subject, (frame,))] if frame.kind is Kind.REQUEST else None


@rule(
    "duty.remote-skills",
    title="The client leaves the methods for remote skills alone",
    level=Level.SHOULD,
    needs=("skills",),
    side=Side.CLIENT,
)
class RemoteSkills(Monitor):
    """Judges that the client calls none of the methods that are under development.

    The specification tells production clients not to use them; whether a client is one cannot be
    seen: SHOULD. A witness is a request by a skills method that is ready. Left open: everything
    about the effects of those methods.
    """

    @on_harness_message
    def on_client_message(self, frame: Frame) -> Outcomes:
        if frame.deliberate or not frame.method.startswith("skills/"):
            return None
        subject = f"method {frame.method}"
        if not frame.method.startswith(_REMOTE):
            return [Witness(subject, (frame,))]
        expected = "no method that is under development"
        return [unexpected_member(subject, (frame,), root_member(frame, "method"), expected)]
