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
from harness.trace.trace import End
from harness.trace.views import TurnView

# Requests about a thread that do not affect its turn, by the specification.
_HARMLESS = frozenset(methods_with("leaves-turn-alone"))


@rule(
    "turn.interrupted-when-asked",
    title="A turn is interrupted only on request",
    level=Level.SHOULD,
)
class InterruptedWhenAsked(ApprovalMonitor):
    """Judges that a turn/interrupt named a turn before it ended as interrupted.

    Derived: by the table, only turn/interrupt leads to `interrupted`, and by "Approval sequence"
    cancel; a turn with an error fails. A finding: a turn that no client interrupted, for example if
    an answered interrupt of the previous turn ends the next. Left open: turns that this client did
    not start, or with an approval request that it did not approve (approval.decline-goes-on); any
    request about the thread meanwhile that may end or unload its turn, such as thread/archive,
    thread/unsubscribe, a compaction, a second turn/start, and a turn/interrupt of another turn,
    since its target is unclear; a disconnected client, several connections, a server that ended.
    """

    def begin(self) -> None:
        super().begin()
        self._disturbed_threads: set[str] = set()
        self._doubtful_turns: set[str] = set()
        self._interrupts: dict[str, list[Frame]] = {}
        self._interrupt_answers: dict[Frame, Frame] = {}

    @on_harness_message
    def on_client_message(self, frame: Frame) -> Outcomes:
        question = self.conversation.request_of(frame)
        if frame.kind in (Kind.RESPONSE, Kind.ERROR):
            if question is not None and self.decision(question) in APPROVING:
                self._doubtful_turns.discard(self.conversation.key_of(question))
            return None
        thread_id = text(obj(frame.params).get("threadId"))
        if frame.method == "turn/interrupt":
            self._interrupts.setdefault(thread_id, []).append(frame)
        thread = self.conversation.threads.get(thread_id)
        busy = thread is not None and any(not turn.completions for turn in thread.turns.values())
        if frame.deliberate or (busy and frame.method not in _HARMLESS):
            self._disturbed_threads.add(thread_id)
        return None

    @on_answer("turn/interrupt")
    def on_turn_interrupt_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is not None:
            self._interrupt_answers[request] = frame
        return None

    @on_kind(Kind.REQUEST)
    def on_request(self, frame: Frame) -> Outcomes:
        # Until it is approved: the effect of an open request on its turn is not specified.
        self._doubtful_turns.add(self.conversation.key_of(frame))
        return None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or turn.status != INTERRUPTED or len(turn.completions) > 1:
            return None
        if turn.interrupts:
            return [Witness(turn.subject, (turn.interrupts[0], frame))]
        if turn.reply is None or self._is_uncertain(turn):
            return None
        before = self._interrupts.get(turn.thread_id, [])[-1:]
        expected = "completed or failed, since nobody interrupted this turn"
        frames = (*before, turn.reply, frame)
        return [wrong(turn.subject, frames, member(frame, "turn", "status"), expected)]

    def _is_uncertain(self, turn: TurnView) -> bool:
        if any(
            not self._was_over(interrupt, turn)
            for interrupt in self._interrupts.get(turn.thread_id, [])
        ):
            return True
        meddled = {turn.thread_id, ""} & self._disturbed_threads or {
            turn.key,
            "",
        } & self._doubtful_turns
        return bool(meddled) or turn.key in self._cancelled or self._may_be_ended_otherwise(turn)

    def _may_be_ended_otherwise(self, turn: TurnView) -> bool:
        """Return whether a lost or another client, or the server's end, may have ended the turn."""
        return (
            self.owed.has_lost_client
            or self.trace.end is End.EXITED
            or bool(self.disruptions(turn))
            or not self.has_one_client()
        )

    def _was_over(self, interrupt: Frame, turn: TurnView) -> bool:
        """Return whether a turn/interrupt was answered before the turn's turn/start was sent."""
        answer = self._interrupt_answers.get(interrupt)
        if answer is None or turn.request is None:
            return False
        return self.trace.before(answer, turn.request) is True


@rule(
    "approval.cancel-ends-work",
    title="After cancel the turn begins nothing new",
    level=Level.SHOULD,
    needs=("command-approval",),
)
class CancelEndsWork(ApprovalMonitor):
    """Judges that a turn begins no operation and requests no approval after cancel took effect.

    That is when the canceled item is completed. Derived: cancel interrupts the turn, and an
    interrupted turn is over. Left open: anything before that, turns whose beginning this client did
    not see, and several connections.
    """

    def begin(self) -> None:
        super().begin()
        self._cancel_frames: dict[str, tuple[Frame, ...]] = {}

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is not None and self.decisions(item) == {"cancel"}:
            self._cancel_frames.setdefault(item.turn.key, (*self.last_exchange(item), frame))
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
        if item is None or item.type not in OPERATIONS or item.completions:
            return None
        return self._judge(item.turn, frame, f"{item.subject} begun")

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        cancel_frames = self._cancel_frames.pop(turn.key, None) if turn is not None else None
        if turn is None or cancel_frames is None or not self._can_judge(turn):
            return None
        return [Witness(turn.subject, (*cancel_frames, frame))]

    def _judge(self, turn: TurnView | None, frame: Frame, actual: str) -> Outcomes:
        cancel_frames = self._cancel_frames.get(turn.key) if turn is not None else None
        if turn is None or cancel_frames is None or not self._can_judge(turn):
            return None
        del self._cancel_frames[turn.key]
        expected = f"nothing more of {turn.subject}, since cancel was answered in it"
        places = (
            member(frame, "item", "id").place
            if frame.kind is Kind.NOTIFICATION
            else member(frame, "itemId").place,
        )
        return [Violation(turn.subject, (*cancel_frames, frame), expected, actual, places=places)]

    def _can_judge(self, turn: TurnView) -> bool:
        return began_here(self.conversation, turn) and self.has_one_client()
