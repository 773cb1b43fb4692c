"""Rules on the form of single messages ("Message forms")."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import Monitor, Outcomes, Violation, Witness, on_kind, rule
from harness.judge.rules.shared.view_queries import failed
from harness.judge.rules.shared.violations import whole, wrong
from harness.judge.verdict import Level
from harness.protocol.values import MISSING, obj
from harness.trace.difference import literal
from harness.trace.frame import Frame, Kind, why_no_json


@rule(
    "frame.well-formed", title="Every message has one of the forms of a message", level=Level.MUST
)
class WellFormed(Monitor):
    """Judges each line of the target against the four message forms ("Message forms").

    A finding: no JSON, no object, no known form; a request whose id is no number; params or a
    result that are no object. Left open: the form of answers that report failure (not shown: an
    `error` without an id, any other member beside an id, also beside `result: null`), missing or
    null params (the shape rules speak of those), extra members such as `jsonrpc`, and lines that
    our own transport cut or saw cut off by the end of the stream: those say nothing of the form.
    """

    _witnessed = False

    @on_kind(Kind.MALFORMED)
    def on_malformed(self, frame: Frame) -> Outcomes:
        if frame.damage or "error" in obj(frame.json):
            return None
        keys = literal(", ".join(obj(frame.json)) or "none")[1:-1]
        what = f"JSON of no known form (its members: {keys})"
        if frame.json is MISSING:
            what = f"a line that is no JSON ({why_no_json(frame.raw)})"
        expected = "a request (method, id), a response (id, result) or a notification (method)"
        subject, actual = f"connection {frame.connection}", f"{what}: {frame.text(160)}"
        return [Violation(subject, (frame,), expected, actual)]

    @on_kind(Kind.NOTIFICATION)
    def notification(self, frame: Frame) -> Outcomes:
        params = frame.json.get("params")
        if params is None or isinstance(params, dict):
            return None
        return self._wrong(frame, "params", "an object")

    @on_kind(Kind.REQUEST)
    def on_request(self, frame: Frame) -> Outcomes:
        if isinstance(frame.id, bool) or not isinstance(frame.id, int | float):
            return self._wrong(frame, "id", "a number")
        return self.notification(frame) or self._good(frame)

    @on_kind(Kind.RESPONSE)
    def on_response(self, frame: Frame) -> Outcomes:
        if failed(frame) or isinstance(frame.result, dict):
            return self._good(frame)
        return self._wrong(frame, "result", "an object")

    @on_kind(Kind.ERROR)
    def on_error(self, frame: Frame) -> Outcomes:
        return self._good(frame)

    def _good(self, frame: Frame) -> Outcomes:
        if self._witnessed or self.setup:
            return None
        self._witnessed = True
        return [Witness(f"connection {frame.connection}", (frame,))]

    def _wrong(self, frame: Frame, key: str, expected: str) -> Outcomes:
        return [wrong(f"connection {frame.connection}", (frame,), whole(frame, key), expected)]
