"""Rules on the effect of a decision: an operation runs or not, its turn continues or not.

Whether a command really ran can only be seen on disk; scenarios check that.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import Outcomes, Violation, Witness, on, on_harness_message, rule
from harness.judge.rules.shared.approval_queries import (
    APPROVING,
    DENYING,
    ApprovalMonitor,
    asks_for_network,
    question_item,
)
from harness.judge.rules.shared.carried_out import (
    DIFF,
    exit_code,
    only_writer,
    printed_before,
    prints,
    shows_change,
)
from harness.judge.rules.shared.settings_in_force import PolicyMonitor
from harness.judge.rules.shared.view_queries import is_own_turn, item_in
from harness.judge.rules.shared.violations import Member, instead, member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import text
from harness.trace.frame import Frame, Origin
from harness.trace.order import came_before
from harness.trace.views import ItemView, TurnView

# The clause of each approving decision.
APPROVES = {
    "accept": "approval.accept",
    "acceptForSession": "approval.accept-for-session",
    "acceptWithExecpolicyAmendment": "approval.execpolicy-amendment",
}


class DecidedItem(PolicyMonitor):
    """A monitor of the first completion of each item for which approval was decided."""

    def item_decided(self, frame: Frame, meaning: frozenset[str]) -> ItemView | None:
        """The item, if all decisions about it are among these."""
        item = self.conversation.item_of(frame)
        if item is None or len(item.completed) > 1 or not is_own_turn(self.conversation, item.turn):
            return None
        decisions = self.decisions(item)
        if not decisions or not decisions <= meaning or not self.alone():
            return None
        return item

    def evidence(self, item: ItemView, frame: Frame) -> tuple[Frame, ...]:
        """The request, the client's answer, and the item's completion."""
        return (*self.last_exchange(item), frame)

    def ended(
        self,
        item: ItemView,
        frame: Frame,
        expected: str,
        *,
        level: Level | None = None,
        clauses: tuple[str, ...] = (),
    ) -> Violation:
        """The violation for an item that ended otherwise than the client's answer demands."""
        frames = self.evidence(item, frame)
        answers = [one for one in frames if one.origin is Origin.HARNESS]
        also = tuple(member(one, "decision") for one in answers)
        where = member(frame, "item", "status")
        return wrong(item.subject, frames, where, expected, level=level, also=also, clauses=clauses)


@rule(
    "approval.accepted-runs",
    title="What was approved is not declined",
    level=Level.MUST,
    needs=("command-approval",),
)
class AcceptedRuns(DecidedItem):
    """Judges that an item whose every question was approved does not end as declined.

    accept, acceptForSession and acceptWithExecpolicyAmendment approve by their words. That the
    operation then fails is its own affair. Where the policy is not known it is SHOULD: under reject
    a server may ask, and then reject whatever the answer is. Left open: turns that may be under
    reject, that were interrupted, fail, or were taken away meanwhile, or met by another turn/start,
    or in which another question was answered by cancel; questions that the server had resolved
    before the answer.
    """

    def begin(self) -> None:
        super().begin()
        # The answer may have come when the turn was about to fail.
        self._held: dict[TurnView, list[Violation]] = {}

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.item_decided(frame, APPROVING)
        if item is None or self.disturbed(item.turn) or self.cancelled(item.turn):
            return None
        policies = self.policies(item.turn)
        status = text(item_in(frame).get("status"))
        if status in ("completed", "failed"):
            return [Witness(item.subject, self.evidence(item, frame))]
        if status != "declined" or "reject" in policies:
            return None
        decision = max(self.decisions(item))
        clauses = (APPROVES[decision], "approval.command-decisions-taken")
        level = None if policies else Level.SHOULD
        found = self.ended(item, frame, "completed or failed", level=level, clauses=clauses)
        self._held.setdefault(item.turn, []).append(found)
        return None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        held = self._held.pop(turn, []) if turn is not None else []
        return held if turn is not None and turn.status != "failed" else None

    def finish(self) -> Outcomes:
        for held in self._held.values():
            yield from held


@rule(
    "approval.denied-not-run",
    title="What was denied does not run",
    level=Level.MUST,
    needs=("command-approval",),
)
class DeniedNotRun(DecidedItem):
    """Judges that nothing is carried out of an item whose questions were all declined or cancelled.

    It was, where it ends as completed; where a command has output after the answer and exit code 0,
    or in its item what it certainly prints; where the diff of the turn has the lines of a file
    change, which nothing else can have written. Output alone, or exit code 0 alone, may be how a
    server tells of the denial: SHOULD. A command that had output before the question was running
    already, and may be asked about for what it wants besides, as may one whose request names a
    network: that it is completed then is SHOULD, the rest is left open. What else its status may
    say is for approval.denied-status.
    """

    def begin(self) -> None:
        super().begin()
        self._denied: dict[TurnView, list[ItemView]] = {}

    @on_harness_message
    def answered(self, frame: Frame) -> Outcomes:
        question = self.question_of(frame)
        turn = self.conversation.turn_of(question) if question is not None else None
        item = turn.items.get(question_item(question)) if turn and question is not None else None
        if item is not None and item.type == "fileChange":
            self._denied.setdefault(item.turn, []).append(item)
        return None

    @on(DIFF)
    def on_diff(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        for item in self._denied.get(turn, ()) if turn is not None else ():
            decisions = self.decisions(item)
            if not decisions <= DENYING or not item.started or not self.alone():
                continue
            shown = shows_change(frame, item_in(item.started[-1]))
            if shown and only_writer(self.conversation, item, frame):
                self._denied[item.turn] = [
                    one for one in self._denied[item.turn] if one is not item
                ]
                return [self._done(item, frame, member(frame, "diff"), Level.MUST)]
        return None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is not None:
            self._denied.pop(turn, None)
        return None

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.item_decided(frame, DENYING)
        if item is None:
            return None
        status = text(item_in(frame).get("status"))
        questions = self.questions(item)
        ran_before = printed_before(item, questions[0]) or any(map(asks_for_network, questions))
        if status == "completed":
            level = Level.SHOULD if ran_before else None
            return [self.ended(item, frame, "declined", level=level, clauses=self._clauses(item))]
        if status not in ("declined", "failed"):
            return None
        sign = None if ran_before else self._sign(item, frame)
        if sign is None:
            return [Witness(item.subject, self.evidence(item, frame))]
        return [self._done(item, frame, *sign)]

    def _sign(self, item: ItemView, frame: Frame) -> tuple[Member, Level] | None:
        """Return evidence that a denied command ran, and its level; None if there is none."""
        if item.type != "commandExecution":
            return None
        shows, last = item_in(frame), item.last_delta
        answer = self.conversation.answer_of(self.questions(item)[-1])
        late = last is not None and answer is not None and came_before(answer, last)
        well = exit_code(shows) == 0
        if prints(shows) and (well or late):
            return member(frame, "item", "aggregatedOutput"), Level.MUST
        if last is not None and late:
            return member(last, "delta"), Level.MUST if well else Level.SHOULD
        return (member(frame, "item", "exitCode"), Level.SHOULD) if well else None

    def _done(self, item: ItemView, frame: Frame, sign: Member, level: Level) -> Violation:
        decision = max(self.decisions(item))
        frames = tuple(dict.fromkeys((*self.last_exchange(item), sign.frame, frame)))
        expected = f"nothing of {item.subject} carried out, since {decision} was answered"
        clauses = self._clauses(item)
        return instead(item.subject, frames, sign, expected, level=level, clauses=clauses)

    def _clauses(self, item: ItemView) -> tuple[str, ...]:
        cancelled = "cancel" in self.decisions(item)
        return ("approval.cancel", "errors.cancel") if cancelled else ("approval.decline",)


@rule(
    "approval.denied-status",
    title="A denied item ends as declined",
    level=Level.SHOULD,
    needs=("command-approval",),
)
class DeniedStatus(DecidedItem):
    """Judges that an item whose every question was answered by decline or cancel ends as declined.

    Derived from the meaning of the decision and the list of item statuses. Left open: `completed`
    (approval.denied-not-run speaks of that), words that are none of the four, and `failed` where a
    failure may be what the client was asked about: under on-failure, or after a first output.
    """

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.item_decided(frame, DENYING)
        if item is None:
            return None
        status = text(item_in(frame).get("status"))
        frames = self.evidence(item, frame)
        if status == "declined":
            return [Witness(item.subject, frames)]
        policies = self.policies(item.turn)
        tried = "on-failure" in policies or printed_before(item, self.questions(item)[0])
        if status != "failed" or tried:
            return None
        return [self.ended(item, frame, "declined")]


@rule(
    "approval.cancel-interrupts",
    title="cancel interrupts the turn",
    level=Level.MUST,
    needs=("command-approval",),
)
class CancelInterrupts(ApprovalMonitor):
    """Judges that a turn in which a question was answered by cancel ends as interrupted.

    One that fails is SHOULD: it may have done so before the answer came. Left open: turns that met
    an error, and those that another client may have answered in.
    """

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or len(turn.completed) > 1 or not self.alone():
            return None
        cancel = self.cancelled(turn)
        if cancel is None:
            return None
        if turn.status == "interrupted":
            return [Witness(turn.subject, (cancel, frame))]
        if turn.errors or turn.status not in ("completed", "failed"):
            return None
        where, also = member(frame, "turn", "status"), (member(cancel, "decision"),)
        level = Level.SHOULD if turn.status == "failed" else None
        frames = (cancel, frame)
        return [wrong(turn.subject, frames, where, "interrupted", level=level, also=also)]


@rule(
    "approval.decline-goes-on",
    title="After decline the turn goes on",
    level=Level.SHOULD,
    needs=("command-approval",),
)
class DeclineGoesOn(ApprovalMonitor):
    """Judges that a turn in which operations were declined does not end as interrupted.

    Derived: to interrupt the turn is what cancel adds to deny. Left open: turns that were
    interrupted, taken away, met an error or failed, and those with a cancel.
    """

    def begin(self) -> None:
        super().begin()
        self._declined: dict[TurnView, Frame] = {}

    @on_harness_message
    def answered(self, frame: Frame) -> Outcomes:
        question = self.question_of(frame)
        turn = self.conversation.turn_of(question) if question is not None else None
        if question is not None and turn is not None and self.decision(question) == "decline":
            self._declined.setdefault(turn, frame)
        return None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or len(turn.completed) > 1 or self.cancelled(turn):
            return None
        decline = self._declined.get(turn)
        if decline is None or self.disturbed(turn):
            return None
        if turn.status == "completed":
            return [Witness(turn.subject, (decline, frame))]
        if turn.status != "interrupted":
            return None
        where, also = member(frame, "turn", "status"), (member(decline, "decision"),)
        expected = "the end of a turn that went on"
        return [wrong(turn.subject, (decline, frame), where, expected, also=also)]
