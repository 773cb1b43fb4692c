"""Rules on the form of single messages ("Message forms")."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import Monitor, Outcomes, Violation, Witness, on_kind, rule
from harness.judge.rules.shared.view_queries import is_failure
from harness.judge.rules.shared.violations import root_member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import MISSING, obj
from harness.trace.difference import literal
from harness.trace.frame import Frame, Kind, json_error

# The requirements on the three forms.
_REQUEST = "rpc.server-request-form"
_RESPONSE = "rpc.response-form"
_NOTIFICATION = "rpc.notification-form"
_FORMS = (_REQUEST, _RESPONSE, _NOTIFICATION)


@rule(
    "frame.well-formed", title="Every message has one of the forms of a message", level=Level.MUST
)
class WellFormed(Monitor):
    """Judges each line of the target against the four message forms ("Message forms").

    A violation is a line that is not JSON, not an object or of unknown form; a request whose id is
    not a number; params or a result that are not an object. Left open: the form of failure answers
    (not shown: an `error` without an id, any other member beside an id, also beside `result:
    null`), missing or null params (see the shape rules), extra members such as `jsonrpc`, and lines
    that the harness's transport cut or saw cut off by the end of the stream: they do not show the
    form.
    """

    _witnessed = False

    @on_kind(Kind.MALFORMED)
    def on_malformed(self, frame: Frame) -> Outcomes:
        if frame.damage or "error" in obj(frame.json):
            return None
        keys = literal(", ".join(obj(frame.json)) or "none")[1:-1]
        form = f"JSON of no known form (its members: {keys})"
        if frame.json is MISSING:
            form = f"a line that is not JSON ({json_error(frame.raw)})"
        expected = "a request (method, id), a response (id, result) or a notification (method)"
        subject, actual = f"connection {frame.connection}", f"{form}: {frame.text(160)}"
        is_object = isinstance(frame.json, dict)
        clauses = _FORMS if is_object else ("rpc.json-object",)
        return [Violation(subject, (frame,), expected, actual, clauses=clauses)]

    @on_kind(Kind.NOTIFICATION)
    def on_notification(self, frame: Frame) -> Outcomes:
        return self._judge_params(frame, _NOTIFICATION)

    @on_kind(Kind.REQUEST)
    def on_request(self, frame: Frame) -> Outcomes:
        if isinstance(frame.id, bool) or not isinstance(frame.id, int | float):
            return self._wrong(frame, "id", "a number", _REQUEST)
        return self._judge_params(frame, _REQUEST) or self._good(frame)

    @on_kind(Kind.RESPONSE)
    def on_response(self, frame: Frame) -> Outcomes:
        if is_failure(frame) or isinstance(frame.result, dict):
            return self._good(frame)
        return self._wrong(frame, "result", "an object", _RESPONSE)

    @on_kind(Kind.ERROR)
    def on_error(self, frame: Frame) -> Outcomes:
        return self._good(frame)

    def _good(self, frame: Frame) -> Outcomes:
        if self._witnessed or self.setup:
            return None
        self._witnessed = True
        return [Witness(f"connection {frame.connection}", (frame,))]

    def _judge_params(self, frame: Frame, clause: str) -> Outcomes:
        params = frame.json.get("params")
        if params is None or isinstance(params, dict):
            return None
        return self._wrong(frame, "params", "an object", clause)

    def _wrong(self, frame: Frame, key: str, expected: str, clause: str) -> Outcomes:
        subject, field = f"connection {frame.connection}", root_member(frame, key)
        return [wrong(subject, (frame,), field, expected, clauses=(clause,))]
