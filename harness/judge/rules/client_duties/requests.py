"""Duties of a client in what it asks: the form of a request, its id, its method."""
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
from harness.judge.rules.shared.view_queries import request_subject
from harness.judge.rules.shared.violations import instead, whole, wrong
from harness.judge.verdict import Level
from harness.protocol.values import MISSING, obj
from harness.trace.correlation import Id, as_id
from harness.trace.difference import literal
from harness.trace.frame import Frame, Kind, why_no_json

_CLIENTS = "client-to-server"
_HANDSHAKE = ("initialize", "initialized")
_REMOTE = "skills/remote/"


@rule(
    "duty.message-form",
    title="Every message of the client has one of the forms of a message",
    level=Level.MUST,
    side=Side.CLIENT,
)
class MessageForm(Monitor):
    """Judges each line of the client: a request, an answer or a notification, as a JSON object.

    A finding: no JSON, no object, no known form; a request whose id no answer could name (null, an
    array, true); params that are no object. Left open: ids that are strings (duty.id-number),
    params that are null or not there (duty.params-complete says which are needed), extra members
    such as jsonrpc, and lines that were cut off by the end of the connection.
    """

    @on_harness_message
    def sent(self, frame: Frame) -> Outcomes:
        if frame.deliberate:
            return None
        subject = f"connection {frame.connection}"
        if frame.kind is Kind.MALFORMED or self._has_no_method(frame):
            return None if frame.damage else [self._formless(subject, frame)]
        if frame.kind is Kind.REQUEST and as_id(frame.id) is None:
            return [wrong(subject, (frame,), whole(frame, "id"), "a number")]
        params = obj(frame.json).get("params")
        if params is not None and not isinstance(params, dict):
            return [wrong(subject, (frame,), whole(frame, "params"), "an object")]
        return [Witness(subject, (frame,))]

    def _has_no_method(self, frame: Frame) -> bool:
        """Return whether it is of the form of no answer that the client could give.

        Then its method was lost.
        """
        says_nothing = frame.error is MISSING and frame.result is MISSING
        return says_nothing and frame.kind is Kind.ERROR and not self.conversation.request_of(frame)

    def _formless(self, subject: str, frame: Frame) -> Violation:
        keys = literal(", ".join(obj(frame.json)) or "none")[1:-1]
        what = f"JSON of no known form (its members: {keys})"
        if frame.json is MISSING:
            what = f"a line that is no JSON ({why_no_json(frame.raw)})"
        expected = "a request (method, id, params), an answer (id, result) or a notification"
        return Violation(subject, (frame,), expected, f"{what}: {frame.text(160)}")


@rule(
    "duty.id-number",
    title="The ids of the client's requests are numbers",
    level=Level.INFO,
    side=Side.CLIENT,
)
class IdNumber(Monitor):
    """Records requests whose id is a string, once for each connection.

    The form of a request has a number as its id. The text also speaks of JSON-RPC, which has
    strings too, and many servers take them: so it is no more than recorded. Left open: ids that are
    neither (duty.message-form).
    """

    once = True

    @on_harness_message
    def sent(self, frame: Frame) -> Outcomes:
        if frame.deliberate or frame.kind is not Kind.REQUEST:
            return None
        subject = f"connection {frame.connection}"
        if isinstance(frame.id, str):
            return [wrong(subject, (frame,), whole(frame, "id"), "a number")]
        return None if as_id(frame.id) is None else [Witness(subject, (frame,))]


@rule(
    "duty.id-free",
    title="No request of the client has the id of one that waits for its answer",
    level=Level.SHOULD,
    side=Side.CLIENT,
)
class IdFree(Monitor):
    """Judges that a request's id is not that of a request of the client that is still unanswered.

    Derived: the response names its request by the id alone, so that nobody could tell which of the
    two it is for. Each connection has ids of its own, and an id keeps its type. Left open: an id
    that is used again after the answer.
    """

    def begin(self) -> None:
        self._open: dict[Id, Frame] = {}

    @on_harness_message
    def sent(self, frame: Frame) -> Outcomes:
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
        where, also = whole(frame, "id"), (whole(first, "id"),)
        return [wrong(subject, (first, frame), where, expected, also=also)]

    @on_kind(Kind.RESPONSE, Kind.ERROR)
    def on_response(self, frame: Frame) -> Outcomes:
        identifier = as_id(frame.id)
        if identifier is not None:
            self._open.pop(identifier, None)
        return None


@rule(
    "duty.method-known",
    title="Methods of the client that the specification does not give are recorded",
    level=Level.INFO,
    side=Side.CLIENT,
)
class MethodKnown(Monitor):
    """Records requests and notifications of the client that the text does not name, once each.

    A server need not have them. The text speaks of methods that it does not show, and the handshake
    (initialize, initialized) is an open point, so it fails nobody. Left open: names of the server's
    requests and notifications (duty.right-direction).
    """

    once = True

    @on_harness_message
    def sent(self, frame: Frame) -> Outcomes:
        if frame.deliberate or frame.kind not in (Kind.REQUEST, Kind.NOTIFICATION):
            return None
        method = frame.method
        if self.book.event(method) is not None:
            return None
        subject = f"method {method}"
        if method in _HANDSHAKE or self.book.method(method) is not None:
            return [Witness(subject, (frame,))]
        expected = "the name of an operation of the specification"
        return [wrong(subject, (frame,), whole(frame, "method"), expected)]


@rule(
    "duty.right-direction",
    title="The client sends none of the server's requests and notifications",
    level=Level.SHOULD,
    side=Side.CLIENT,
)
class RightDirection(Monitor):
    """Judges that the client sends nothing that by its name is the server's to send.

    The forms have server requests and the listed notifications go from the server to the client;
    what a server does with one that comes to it is not shown. Left open: names that the text does
    not list (duty.method-known).
    """

    @on_harness_message
    def sent(self, frame: Frame) -> Outcomes:
        if frame.deliberate or frame.kind not in (Kind.REQUEST, Kind.NOTIFICATION):
            return None
        row, event = self.book.method(frame.method), self.book.event(frame.method)
        subject = f"method {frame.method}"
        if event is None and row is None:
            return None
        if event is None and row is not None and row.direction == _CLIENTS:
            return [Witness(subject, (frame,))]
        expected = f"{frame.method} from the server alone"
        return [instead(subject, (frame,), whole(frame, "method"), expected)]


@rule(
    "duty.request-has-id",
    title="What the client asks for has an id",
    level=Level.MUST,
    side=Side.CLIENT,
)
class RequestHasId(Monitor):
    """Judges that the client sends the operations of the text as requests, not as notifications.

    Without an id there is nothing that the response could name, so that the client does not learn
    what became of it. Left open: initialize, whose form is not shown, and names that the text does
    not list.
    """

    @on_harness_message
    def sent(self, frame: Frame) -> Outcomes:
        row = self.book.method(frame.method)
        if frame.deliberate or row is None or row.direction != _CLIENTS:
            return None
        if frame.method in _HANDSHAKE:
            return None
        subject = f"method {frame.method}"
        if frame.kind is Kind.NOTIFICATION:
            return [wrong(subject, (frame,), whole(frame, "id"), "a number")]
        return [Witness(subject, (frame,))] if frame.kind is Kind.REQUEST else None


@rule(
    "duty.handshake-first",
    title="Where the client shakes hands, it does so first and once",
    level=Level.INFO,
    side=Side.CLIENT,
)
class HandshakeFirst(Monitor):
    """Records an initialize that comes after another message of its connection, or a second one.

    The text does not name the handshake; servers that have it refuse what comes before it. Left
    open: clients that never send initialize, and whether they wait for its answer.
    """

    def begin(self) -> None:
        self._first: Frame | None = None
        self._greeted: Frame | None = None

    @on_harness_message
    def sent(self, frame: Frame) -> Outcomes:
        first = self._first
        self._first = first or frame
        if frame.deliberate or frame.method != "initialize" or frame.kind is not Kind.REQUEST:
            return None
        subject, again = f"connection {frame.connection}", self._greeted
        self._greeted = frame
        if again is not None:
            expected = "one initialize on a connection"
            return [instead(subject, (again, frame), whole(frame, "method"), expected)]
        if first is not None:
            expected = "initialize before anything else on this connection"
            return [instead(subject, (first, frame), whole(first, "method"), expected)]
        return [Witness(subject, (frame,))]


@rule(
    "duty.remote-skills",
    title="The client leaves the methods for remote skills alone",
    level=Level.SHOULD,
    needs=("skills",),
    side=Side.CLIENT,
)
class RemoteSkills(Monitor):
    """Judges that the client calls none of the methods that are under development.

    The text tells production clients to leave them alone; whether a client is one cannot be seen,
    so this weighs SHOULD. A witness is a request of the listed skills by a method that is ready.
    Left open: everything about what those methods do.
    """

    @on_harness_message
    def sent(self, frame: Frame) -> Outcomes:
        if frame.deliberate or not frame.method.startswith("skills/"):
            return None
        subject = f"method {frame.method}"
        if not frame.method.startswith(_REMOTE):
            return [Witness(subject, (frame,))]
        expected = "no method that is under development"
        return [instead(subject, (frame,), whole(frame, "method"), expected)]
