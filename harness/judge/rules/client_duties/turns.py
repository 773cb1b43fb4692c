"""Duties of a client towards turns: it interrupts known ones, and steers the running one."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import Monitor, Outcomes, Side, Witness, on, on_answer, on_sent, rule
from harness.judge.rules.shared.approval_queries import DISRUPTING
from harness.judge.rules.shared.earlier_texts import turn_sent_before
from harness.judge.rules.shared.view_queries import request_subject
from harness.judge.rules.shared.violations import member, root_member, unexpected_member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import dig, obj, text
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
    """Judges that the server had written that id as a turn's before the client sent it.

    Turn ids come from the server: a client that invents one, or sends the id of a thread or an item
    instead, is always refused. SHOULD, since a client may know a turn from a session outside the
    trace: judged only if the server has reported a turn to this connection. Left open: a turn that
    is over, whose end may be on its way to the client, and one of another thread.
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
        if turn and turn_sent_before(self.trace, frame, turn):
            return [Witness(subject, (frame,))]
        return [wrong(subject, (frame,), member(frame, name), "a turn that the server reported")]


@rule(
    "duty.running-turn-steered",
    title="The client adds to a running turn by turn/steer",
    level=Level.INFO,
    side=Side.CLIENT,
)
class RunningTurnSteered(Monitor):
    """Records a turn/start on a thread in which the client's own turn is still running.

    The specification has turn/steer for input to a running turn, and does not define turn/start
    then: a server may reject, queue or merge it. Left open: a turn whose end the server has
    written, of which the client has requested the interrupt, that another client started, or of a
    thread that the client has opened again, left or changed since.
    """

    def begin(self) -> None:
        # The reply to the turn/start of each running turn, by thread.
        self._running: dict[str, Frame] = {}
        self._ended: set[str] = set()

    @on_answer("turn/start")
    def on_turn_start_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        turn = text(dig(frame.result, "turn", "id"))
        if request is not None and turn and turn not in self._ended:
            self._running[text(obj(request.params).get("threadId"))] = frame
        return None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = text(dig(frame.params, "turn", "id"))
        self._ended.add(turn)
        for thread, reply in list(self._running.items()):
            if text(dig(reply.result, "turn", "id")) == turn:
                del self._running[thread]
        return None

    @on("thread/closed")
    @on_sent("turn/interrupt", *DISRUPTING)
    def on_thread_disturbed(self, frame: Frame) -> Outcomes:
        thread = text(obj(frame.params).get("threadId"))
        for name in [thread] if thread else list(self._running):
            self._running.pop(name, None)
        return None

    @on_sent("turn/start")
    def on_turn_start_sent(self, frame: Frame) -> Outcomes:
        if frame.deliberate:
            return None
        subject = request_subject(frame)
        reply = self._running.get(text(obj(frame.params).get("threadId")))
        if reply is None:
            return [Witness(subject, (frame,))]
        turn = text(dig(reply.result, "turn", "id"))
        expected = f"turn/steer, since {turn} of this thread is running"
        return [unexpected_member(subject, (reply, frame), root_member(frame, "method"), expected)]
