"""Rules on the effect of a decision: an operation runs or not, its turn continues or not.

Only the disk shows whether a command really ran; scenarios check that.
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
from harness.judge.rules.shared.execution_evidence import (
    DIFF,
    exit_code,
    had_output_before,
    is_only_writer,
    prints_expected_output,
    shows_change,
)
from harness.judge.rules.shared.policies import PolicyMonitor
from harness.judge.rules.shared.view_queries import is_own_turn, item_in
from harness.judge.rules.shared.violations import Member, member, unexpected_member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import text
from harness.trace.frame import Frame, Origin
from harness.trace.order import came_before
from harness.trace.views import ItemView, TurnView

# The clause of each approving decision.
APPROVAL_CLAUSES = {
    "accept": "approval.accept",
    "acceptForSession": "approval.accept-for-session",
    "acceptWithExecpolicyAmendment": "approval.execpolicy-amendment",
}


class DecidedItem(PolicyMonitor):
    """Base of rules on the first completion of each item for which approval was decided."""

    def decided_item(self, frame: Frame, meaning: frozenset[str]) -> ItemView | None:
        """Return the item of its first item/completed if all decisions about it are in `meaning`.

        None otherwise, and if there are no decisions or several clients.
        """
        item = self.conversation.item_of(frame)
        if (
            item is None
            or len(item.completions) > 1
            or not is_own_turn(self.conversation, item.turn)
        ):
            return None
        decisions = self.decisions(item)
        if not decisions or not decisions <= meaning or not self.has_one_client():
            return None
        return item

    def evidence(self, item: ItemView, frame: Frame) -> tuple[Frame, ...]:
        """Return the request, the client's answer, and the item's completion."""
        return (*self.last_exchange(item), frame)

    def end_violation(
        self,
        item: ItemView,
        frame: Frame,
        expected: str,
        *,
        level: Level | None = None,
        clauses: tuple[str, ...] = (),
    ) -> Violation:
        """Return the violation for an item whose end contradicts the client's answer."""
        frames = self.evidence(item, frame)
        answers = [shown_frame for shown_frame in frames if shown_frame.origin is Origin.HARNESS]
        also = tuple(member(client_answer, "decision") for client_answer in answers)
        field = member(frame, "item", "status")
        return wrong(item.subject, frames, field, expected, level=level, also=also, clauses=clauses)


@rule(
    "approval.accepted-runs",
    title="An approved operation is not declined",
    level=Level.MUST,
    needs=("command-approval",),
)
class AcceptedRuns(DecidedItem):
    """Judges that an item does not end as declined if every approval request about it was approved.

    accept, acceptForSession and acceptWithExecpolicyAmendment approve. The operation may still
    fail. SHOULD if the policy is unknown: under reject a server may ask and then reject, whatever
    the answer. Left open: turns that may be under reject, that were interrupted, failed or were
    disrupted (as by thread/unsubscribe), that overlapped another turn/start, or in which another
    approval was answered by cancel; requests that the server had resolved before the answer.
    """

    def begin(self) -> None:
        super().begin()
        # The answer may have come when the turn was about to fail.
        self._held: dict[TurnView, list[Violation]] = {}

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.decided_item(frame, APPROVING)
        if item is None or self.may_be_disturbed(item.turn) or self.cancelling_answer(item.turn):
            return None
        policies = self.policies(item.turn)
        status = text(item_in(frame).get("status"))
        if status in ("completed", "failed"):
            return [Witness(item.subject, self.evidence(item, frame))]
        if status != "declined" or "reject" in policies:
            return None
        decision = max(self.decisions(item))
        clauses = (APPROVAL_CLAUSES[decision], "approval.command-decisions-taken")
        level = None if policies else Level.SHOULD
        violation = self.end_violation(
            item, frame, "completed or failed", level=level, clauses=clauses
        )
        self._held.setdefault(item.turn, []).append(violation)
        return None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        violations = self._held.pop(turn, []) if turn is not None else []
        return violations if turn is not None and turn.status != "failed" else None

    def finish(self) -> Outcomes:
        for violations in self._held.values():
            yield from violations


@rule(
    "approval.denied-not-run",
    title="A denied operation does not run",
    level=Level.MUST,
    needs=("command-approval",),
)
class DeniedNotRun(DecidedItem):
    """Judges that no part of an item runs if all its approval requests were declined or cancelled.

    It ran if it ends as completed; if a command has output after the answer and exit code 0, or its
    item has output that it certainly prints; or if the turn's diff has the lines of a file change
    that nothing else can have written. Output alone, or exit code 0 alone, may report the denial:
    SHOULD. A command with output before the request was running already, and the request may be for
    a further permission; so may one that names a network: completion is SHOULD then, the rest is
    left open. Under on-failure the request follows a try that failed, and a command may end as
    completed with the exit code of that try: left open if it is not 0. approval.denied-status
    judges other statuses.
    """

    def begin(self) -> None:
        super().begin()
        self._denied: dict[TurnView, list[ItemView]] = {}

    @on_harness_message
    def on_client_answer(self, frame: Frame) -> Outcomes:
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
            if not decisions <= DENYING or not item.starts or not self.has_one_client():
                continue
            has_change = shows_change(frame, item_in(item.starts[-1]))
            if has_change and is_only_writer(self.conversation, item, frame):
                self._denied[item.turn] = [
                    denied_item
                    for denied_item in self._denied[item.turn]
                    if denied_item is not item
                ]
                return [self._run_violation(item, frame, member(frame, "diff"), Level.MUST)]
        return None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is not None:
            self._denied.pop(turn, None)
        return None

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.decided_item(frame, DENYING)
        if item is None:
            return None
        status = text(item_in(frame).get("status"))
        questions = self.questions(item)
        ran_before = had_output_before(item, questions[0]) or any(map(asks_for_network, questions))
        if status == "completed" and self._shows_failed_try(item, frame):
            return None
        if status == "completed":
            level = Level.SHOULD if ran_before else None
            return [
                self.end_violation(
                    item, frame, "declined", level=level, clauses=self._clauses(item)
                )
            ]
        if status not in ("declined", "failed"):
            return None
        sign = None if ran_before else self._evidence_of_run(item, frame)
        if sign is None:
            return [Witness(item.subject, self.evidence(item, frame))]
        return [self._run_violation(item, frame, *sign)]

    def _shows_failed_try(self, item: ItemView, frame: Frame) -> bool:
        """Return whether a completed command may show the try that failed before the request."""
        failed = exit_code(item_in(frame)) not in (None, 0)
        return (
            item.type == "commandExecution" and failed and "on-failure" in self.policies(item.turn)
        )

    def _evidence_of_run(self, item: ItemView, frame: Frame) -> tuple[Member, Level] | None:
        """Return evidence that a denied command ran, and its level; None if there is none."""
        if item.type != "commandExecution":
            return None
        shows, last = item_in(frame), item.last_delta
        answer = self.conversation.answer_of(self.questions(item)[-1])
        has_late_output = last is not None and answer is not None and came_before(answer, last)
        succeeded = exit_code(shows) == 0
        if prints_expected_output(shows) and (succeeded or has_late_output):
            return member(frame, "item", "aggregatedOutput"), Level.MUST
        if last is not None and has_late_output:
            return member(last, "delta"), Level.MUST if succeeded else Level.SHOULD
        return (member(frame, "item", "exitCode"), Level.SHOULD) if succeeded else None

    def _run_violation(self, item: ItemView, frame: Frame, sign: Member, level: Level) -> Violation:
        decision = max(self.decisions(item))
        frames = tuple(dict.fromkeys((*self.last_exchange(item), sign.frame, frame)))
        expected = f"nothing of {item.subject} carried out, since {decision} was answered"
        clauses = self._clauses(item)
        return unexpected_member(item.subject, frames, sign, expected, level=level, clauses=clauses)

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
    """Judges that an item ends as declined if every approval request was declined or cancelled.

    Derived from the meaning of the decision and the list of item statuses. Left open: `completed`
    (approval.denied-not-run judges it), words that are none of the four, and `failed` if the
    request may have followed a failure: under on-failure, or after a first output.
    """

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.decided_item(frame, DENYING)
        if item is None:
            return None
        status = text(item_in(frame).get("status"))
        frames = self.evidence(item, frame)
        if status == "declined":
            return [Witness(item.subject, frames)]
        policies = self.policies(item.turn)
        tried = "on-failure" in policies or had_output_before(item, self.questions(item)[0])
        if status != "failed" or tried:
            return None
        return [self.end_violation(item, frame, "declined")]


@rule(
    "approval.cancel-interrupts",
    title="cancel interrupts the turn",
    level=Level.MUST,
    needs=("command-approval",),
)
class CancelInterrupts(ApprovalMonitor):
    """Judges that a turn with an approval that was answered by cancel ends as interrupted.

    A failed turn is SHOULD: it may have failed before the answer came. Left open: turns with an
    error, and those in which another client may have answered.
    """

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or len(turn.completions) > 1 or not self.has_one_client():
            return None
        cancel = self.cancelling_answer(turn)
        if cancel is None:
            return None
        if turn.status == "interrupted":
            return [Witness(turn.subject, (cancel, frame))]
        if turn.errors or turn.status not in ("completed", "failed"):
            return None
        field, also = member(frame, "turn", "status"), (member(cancel, "decision"),)
        level = Level.SHOULD if turn.status == "failed" else None
        frames = (cancel, frame)
        return [wrong(turn.subject, frames, field, "interrupted", level=level, also=also)]


@rule(
    "approval.decline-goes-on",
    title="After decline the turn goes on",
    level=Level.SHOULD,
    needs=("command-approval",),
)
class DeclineGoesOn(ApprovalMonitor):
    """Judges that a turn in which operations were declined does not end as interrupted.

    Derived: cancel means deny and also interrupt the turn. Left open: turns that were interrupted
    or disrupted, had an error or failed, and those with a cancel.
    """

    def begin(self) -> None:
        super().begin()
        self._declined: dict[TurnView, Frame] = {}

    @on_harness_message
    def on_client_answer(self, frame: Frame) -> Outcomes:
        question = self.question_of(frame)
        turn = self.conversation.turn_of(question) if question is not None else None
        if question is not None and turn is not None and self.decision(question) == "decline":
            self._declined.setdefault(turn, frame)
        return None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or len(turn.completions) > 1 or self.cancelling_answer(turn):
            return None
        decline = self._declined.get(turn)
        if decline is None or self.may_be_disturbed(turn):
            return None
        if turn.status == "completed":
            return [Witness(turn.subject, (decline, frame))]
        if turn.status != "interrupted":
            return None
        field, also = member(frame, "turn", "status"), (member(decline, "decision"),)
        expected = "the end of a turn that went on"
        return [wrong(turn.subject, (decline, frame), field, expected, also=also)]
