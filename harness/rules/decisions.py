"""Rules on what comes of a decision: an operation runs or does not, its turn goes on or not.

Here: each decision's meaning ("Approval sequence"), seen in the item and its turn. Not here: the
order of the sequence (approvals), whether it was asked at all (policies). Whether a command really
ran shows on disk only: scenarios look there.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import json
from dataclasses import dataclass

from harness.rules.asked import (
    APPROVALS,
    APPROVING,
    DENYING,
    REMEMBERED,
    ApprovalMonitor,
    question_item,
)
from harness.rules.base import Outcomes, Violation, Witness, on, on_own, rule
from harness.rules.policies import policies_of
from harness.rules.subjects import item_in, ours, request_subject
from harness.rules.telling import member, wrong
from harness.rules.verdict import Level
from harness.trace.difference import literal
from harness.trace.frame import Frame, Kind, Origin
from harness.trace.values import obj, text
from harness.trace.views import ItemView

# The clause of each approving decision.
APPROVES = {
    "accept": "approval.accept",
    "acceptForSession": "approval.accept-for-session",
    "acceptWithExecpolicyAmendment": "approval.execpolicy-amendment",
}


class DecidedItem(ApprovalMonitor):
    """A monitor of the first completion of each item that was asked about and decided."""

    def item_decided(self, frame: Frame, meaning: frozenset[str]) -> ItemView | None:
        """The item, if all questions about it were decided in this sense."""
        item = self.conversation.item_of(frame)
        if item is None or len(item.completed) > 1 or not ours(self.conversation, item.turn):
            return None
        decisions = self.decisions(item)
        if not decisions or not decisions <= meaning or not self.alone():
            return None
        return item

    def evidence(self, item: ItemView, frame: Frame) -> tuple[Frame, ...]:
        """The question, our answer, and what came of it."""
        return (*self.last_exchange(item), frame)

    def ended(
        self, item: ItemView, frame: Frame, expected: str, *, clauses: tuple[str, ...] = ()
    ) -> Violation:
        """An item that ended otherwise than our answer wants."""
        frames = self.evidence(item, frame)
        answers = [one for one in frames if one.origin is Origin.HARNESS]
        also = tuple(member(one, "decision") for one in answers)
        where = member(frame, "item", "status")
        return wrong(item.subject, frames, where, expected, also=also, clauses=clauses)


@rule(
    "approval.accepted-runs",
    title="What was approved is not declined",
    level=Level.MUST,
    needs=("command-approval",),
)
class AcceptedRuns(DecidedItem):
    """Judges that an item whose every question was approved does not end as declined.

    accept, acceptForSession and acceptWithExecpolicyAmendment approve by their words. That the
    operation then fails is its own affair. Left open: turns that were interrupted, failed, or
    taken away meanwhile, or in which another question was answered by cancel.
    """

    @on("item/completed")
    def completed(self, frame: Frame) -> Outcomes:
        item = self.item_decided(frame, APPROVING)
        if item is None or self.disturbed(item.turn) or item.turn.key in self._cancelled:
            return None
        status = text(item_in(frame).get("status"))
        if status in ("completed", "failed"):
            return [Witness(item.subject, self.evidence(item, frame))]
        if status != "declined":
            return None
        decision = max(self.decisions(item))
        clauses = (APPROVES[decision], "approval.command-decisions-taken")
        return [self.ended(item, frame, "completed or failed", clauses=clauses)]


@rule(
    "approval.denied-not-run",
    title="What was denied does not run",
    level=Level.MUST,
    needs=("command-approval",),
)
class DeniedNotRun(DecidedItem):
    """Judges that an item whose every question was answered by decline or cancel is not completed.

    `completed` is the status of an operation that was carried out. What else it may say is for
    approval.denied-status.
    """

    @on("item/completed")
    def completed(self, frame: Frame) -> Outcomes:
        item = self.item_decided(frame, DENYING)
        if item is None:
            return None
        status = text(item_in(frame).get("status"))
        if status in ("declined", "failed"):
            return [Witness(item.subject, self.evidence(item, frame))]
        if status != "completed":
            return None
        cancelled = "cancel" in self.decisions(item)
        clauses = ("approval.cancel", "errors.cancel") if cancelled else ("approval.decline",)
        return [self.ended(item, frame, "declined", clauses=clauses)]


@rule(
    "approval.denied-status",
    title="A denied item ends as declined",
    level=Level.SHOULD,
    needs=("command-approval",),
)
class DeniedStatus(DecidedItem):
    """Judges that an item whose every question was answered by decline or cancel ends as declined.

    Derived from the meaning of the decision and the list of item statuses. Left open: `completed`
    (approval.denied-not-run speaks of that), and words that are none of the four.
    """

    @on("item/completed")
    def completed(self, frame: Frame) -> Outcomes:
        item = self.item_decided(frame, DENYING)
        if item is None:
            return None
        status = text(item_in(frame).get("status"))
        frames = self.evidence(item, frame)
        if status == "declined":
            return [Witness(item.subject, frames)]
        if status != "failed":
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

    Left open: turns that met an error, and those that another client may have answered in.
    """

    @on("turn/completed")
    def completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or len(turn.completed) > 1 or not self.alone():
            return None
        cancel = self._cancelled.get(turn.key)
        if cancel is None:
            return None
        if turn.status == "interrupted":
            return [Witness(turn.subject, (cancel, frame))]
        if turn.errors or turn.status not in ("completed", "failed"):
            return None
        where, also = member(frame, "turn", "status"), (member(cancel, "decision"),)
        return [wrong(turn.subject, (cancel, frame), where, "interrupted", also=also)]


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
        self._declined: dict[str, Frame] = {}

    @on_own
    def answered(self, frame: Frame) -> Outcomes:
        question = self.question_of(frame)
        if question is not None and self.decision(question) == "decline":
            self._declined.setdefault(self.conversation.key_of(question), frame)
        return None

    @on("turn/completed")
    def completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or len(turn.completed) > 1 or turn.key in self._cancelled:
            return None
        decline = self._declined.get(turn.key)
        if decline is None or self.disturbed(turn):
            return None
        if turn.status == "completed":
            return [Witness(turn.subject, (decline, frame))]
        if turn.status != "interrupted":
            return None
        where, also = member(frame, "turn", "status"), (member(decline, "decision"),)
        expected = "the end of a turn that went on"
        return [wrong(turn.subject, (decline, frame), where, expected, also=also)]


@dataclass(slots=True, eq=False)
class Remembered:
    """An approval that speaks of later operations too: the item it was given for, our answer."""

    item: ItemView
    question: Frame
    answer: Frame
    decision: str


@rule(
    "approval.session-remembered",
    title="What was approved for the session is not asked again",
    level=Level.MUST,
    needs=("command-approval",),
)
class SessionRemembered(ApprovalMonitor):
    """Judges that the same command in the same folder of the same thread is not asked about again.

    From the completion of the item on that was approved with acceptForSession; after
    acceptWithExecpolicyAmendment it is SHOULD, since what rule that leaves is not shown. In a turn
    that may be under on-request it is INFO: "always ask" is what a server then may hold to. Which
    other commands count as the same is open, and so is what an unloading of the thread forgets.
    """

    def begin(self) -> None:
        super().begin()
        self._approved: dict[tuple[str, str], Remembered] = {}
        self._by_item: dict[tuple[str, str, str], Remembered] = {}

    @on("item/completed")
    def completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or item.type != "commandExecution" or len(item.completed) > 1:
            return None
        thread_id, shows = item.turn.thread_id, item_in(frame)
        wanted = (thread_id, text(shows.get("command")), text(shows.get("cwd")))
        questions = self.questions(item)
        if not questions:
            before = self._by_item.get(wanted)
            if before is None or not self._still(thread_id):
                return None
            return [Witness(item.subject, (before.question, before.answer, frame))]
        question, answer = questions[-1], self.conversation.answer_of(questions[-1])
        decision = self.decision(question)
        if decision in REMEMBERED and answer is not None and shows.get("status") != "declined":
            kept = Remembered(item, question, answer, decision)
            self._approved.setdefault((thread_id, _operation(question)), kept)
            self._by_item.setdefault(wanted, kept)
        return None

    @on(*APPROVALS)
    def asked(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        is_question = frame.kind is Kind.REQUEST and "command" in obj(frame.params)
        if turn is None or not is_question:
            return None
        before = self._approved.get((turn.thread_id, _operation(frame)))
        if before is None or not self._still(turn.thread_id):
            return None
        if turn is before.item.turn and question_item(frame) == before.item.id:
            return None
        level = None if before.decision == "acceptForSession" else Level.SHOULD
        policies = policies_of(self.conversation, turn)
        if not policies or "on-request" in policies:
            level = Level.INFO
        clause = APPROVES[before.decision]
        return [
            Violation(
                request_subject(frame),
                (before.question, before.answer, frame),
                f"no question about {literal(obj(frame.params).get('command'))}: "
                f"{before.decision} was answered to it before, for {before.item.subject}",
                f"{frame.method} asks about it again",
                level,
                clauses=(clause,),
                places=(
                    member(before.question, "command").place,
                    member(before.answer, "decision").place,
                    member(frame, "command").place,
                ),
            )
        ]

    def _still(self, thread_id: str) -> bool:
        return thread_id not in self._taken_away and self.alone()


def _operation(question: Frame) -> str:
    """A command and its folder as one text, however the server writes the command."""
    params = obj(question.params)
    return json.dumps([params.get("command"), params.get("cwd")])
