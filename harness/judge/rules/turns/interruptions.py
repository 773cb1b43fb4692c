"""Rules on the causes and the effects of an interruption."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import (
    Outcomes,
    Violation,
    Witness,
    on,
    on_answer,
    on_harness_message,
    on_kind,
    rule,
)
from harness.judge.rules.shared.approval_queries import (
    APPROVALS,
    APPROVING,
    OPERATIONS,
    ApprovalMonitor,
)
from harness.judge.rules.shared.state_tracking import INTERRUPTED
from harness.judge.rules.shared.view_queries import began_here
from harness.judge.rules.shared.violations import member, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.effects import methods_with
from harness.protocol.values import obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.marks import Closed
from harness.trace.trace import End
from harness.trace.views import TurnView

# Requests about a thread that, by what the text says of them, leave its turn alone.
_HARMLESS = frozenset(methods_with("leaves-turn-alone"))


@rule(
    "turn.interrupted-when-asked",
    title="A turn is interrupted only when that was asked for",
    level=Level.SHOULD,
)
class InterruptedWhenAsked(ApprovalMonitor):
    """Judges that a turn which ends as interrupted was named by a turn/interrupt before its end.

    Derived: the table has turn/interrupt as the one way to `interrupted`, and cancel is the other;
    a turn that meets an error fails. A finding: one that nobody interrupted, as when an interrupt
    of the turn before, which was answered then, ends the next. Left open: turns that this client
    did not start, or in which it answered a question otherwise than by an approval
    (approval.decline-goes-on), or not at all; any request about the thread meanwhile that may end
    or unload its turn, such as thread/archive, thread/unsubscribe, a compaction, a second
    turn/start, and a turn/interrupt of another turn, since which one it means is not said; a client
    that left, several connections, a server that ended.
    """

    def begin(self) -> None:
        super().begin()
        self._meddled: set[str] = set()
        self._doubtful: set[str] = set()
        self._interrupts: dict[str, list[Frame]] = {}
        self._answered: dict[Frame, Frame] = {}

    @on_harness_message
    def harness_message(self, frame: Frame) -> Outcomes:
        question = self.conversation.request_of(frame)
        if frame.kind in (Kind.RESPONSE, Kind.ERROR):
            if question is not None and self.decision(question) in APPROVING:
                self._doubtful.discard(self.conversation.key_of(question))
            return None
        thread_id = text(obj(frame.params).get("threadId"))
        if frame.method == "turn/interrupt":
            self._interrupts.setdefault(thread_id, []).append(frame)
        thread = self.conversation.threads.get(thread_id)
        busy = thread is not None and any(not turn.completed for turn in thread.turns.values())
        if frame.deliberate or (busy and frame.method not in _HARMLESS):
            self._meddled.add(thread_id)
        return None

    @on_answer("turn/interrupt")
    def on_turn_interrupt_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is not None:
            self._answered[request] = frame
        return None

    @on_kind(Kind.REQUEST)
    def on_request(self, frame: Frame) -> Outcomes:
        # Until it is approved: what an open question does to its turn the text does not say.
        self._doubtful.add(self.conversation.key_of(frame))
        return None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or turn.status != INTERRUPTED or len(turn.completed) > 1:
            return None
        if turn.interrupts:
            return [Witness(turn.subject, (turn.interrupts[0], frame))]
        if turn.reply is None or self._open(turn):
            return None
        before = self._interrupts.get(turn.thread_id, [])[-1:]
        expected = "completed or failed, since nobody interrupted this turn"
        frames = (*before, turn.reply, frame)
        return [wrong(turn.subject, frames, member(frame, "turn", "status"), expected)]

    def _open(self, turn: TurnView) -> bool:
        if any(not self._was_over(one, turn) for one in self._interrupts.get(turn.thread_id, [])):
            return True
        meddled = {turn.thread_id, ""} & self._meddled or {turn.key, ""} & self._doubtful
        return bool(meddled) or turn.key in self._cancelled or self._taken(turn)

    def _taken(self, turn: TurnView) -> bool:
        """Return whether we, another client or the end of the server took the turn away."""
        return (
            bool(self.trace.marks_of(Closed))
            or self.trace.end is End.EXITED
            or bool(self.disruptions(turn))
            or not self.alone()
        )

    def _was_over(self, interrupt: Frame, turn: TurnView) -> bool:
        """Return whether a turn/interrupt was answered before the turn was asked for."""
        answer = self._answered.get(interrupt)
        if answer is None or turn.request is None:
            return False
        return self.trace.before(answer, turn.request) is True


@rule(
    "approval.cancel-ends-work",
    title="After cancel nothing new of the turn is begun",
    level=Level.SHOULD,
    needs=("command-approval",),
)
class CancelEndsWork(ApprovalMonitor):
    """Judges that no operation is begun, and nobody asked, in a turn after cancel took effect.

    It has when the item that it was answered for is completed. Derived: cancel interrupts the turn,
    and an interrupted turn is over. Left open: what was begun or asked before that, turns whose
    beginning this client did not see, and several connections.
    """

    def begin(self) -> None:
        super().begin()
        self._over: dict[str, tuple[Frame, ...]] = {}

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is not None and self.decisions(item) == {"cancel"}:
            self._over.setdefault(item.turn.key, (*self.last_exchange(item), frame))
        return None

    @on(*APPROVALS)
    def on_approval(self, frame: Frame) -> Outcomes:
        if frame.kind is not Kind.REQUEST:
            return None
        turn = self.conversation.turn_of(frame)
        return self._judge(turn, frame, f"asked by {frame.method}")

    @on("item/started")
    def on_item_started(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or item.type not in OPERATIONS or item.completed:
            return None
        return self._judge(item.turn, frame, f"{item.subject} begun")

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        over = self._over.pop(turn.key, None) if turn is not None else None
        if turn is None or over is None or not self._judged(turn):
            return None
        return [Witness(turn.subject, (*over, frame))]

    def _judge(self, turn: TurnView | None, frame: Frame, actual: str) -> Outcomes:
        over = self._over.get(turn.key) if turn is not None else None
        if turn is None or over is None or not self._judged(turn):
            return None
        del self._over[turn.key]
        expected = f"nothing more of {turn.subject}, since cancel was answered in it"
        places = (
            member(frame, "item", "id").place
            if frame.kind is Kind.NOTIFICATION
            else member(frame, "itemId").place,
        )
        return [Violation(turn.subject, (*over, frame), expected, actual, places=places)]

    def _judged(self, turn: TurnView) -> bool:
        return began_here(self.conversation, turn) and self.alone()
