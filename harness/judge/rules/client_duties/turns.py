"""Duties of a client towards turns: it steers and interrupts only known ones."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import Monitor, Outcomes, Side, Witness, on, on_answer, on_sent, rule
from harness.judge.rules.shared.earlier_texts import server_sent_before
from harness.judge.rules.shared.view_queries import request_subject
from harness.judge.rules.shared.violations import member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import obj, text
from harness.trace.frame import Frame, Kind

# The param by which each request names its turn.
_TURN_PARAMS = {"turn/steer": "expectedTurnId", "turn/interrupt": "turnId"}


@rule(
    "duty.turn-known",
    title="The client steers and interrupts only turns that the server reported",
    level=Level.SHOULD,
    side=Side.CLIENT,
)
class TurnKnown(Monitor):
    """Judges that the server had written the id of the turn that is to be steered or interrupted.

    Turn ids come from the server: a client that invents one, or sends another id instead, is always
    refused. SHOULD, since a client may know a turn from a session outside the trace: judged only if
    the server has reported a turn to this connection. Left open: a turn that is over, whose end may
    be on its way to the client, and one of another thread.
    """

    def begin(self) -> None:
        self._has_turn = False

    @on("turn/started")
    def on_turn_started(self, _: Frame) -> Outcomes:
        self._has_turn = True
        return None

    @on_answer("turn/start")
    def on_turn_start_answer(self, frame: Frame) -> Outcomes:
        self._has_turn = self._has_turn or frame.kind is Kind.RESPONSE
        return None

    @on_sent(*_TURN_PARAMS)
    def on_naming_sent(self, frame: Frame) -> Outcomes:
        name = _TURN_PARAMS[frame.method]
        turn = text(obj(frame.params).get(name))
        if (
            frame.deliberate
            or not self._has_turn
            or not isinstance(obj(frame.params).get(name), str)
        ):
            return None
        subject = request_subject(frame)
        if turn and server_sent_before(self.trace, frame, turn):
            return [Witness(subject, (frame,))]
        return [wrong(subject, (frame,), member(frame, name), "a turn that the server reported")]
