"""Rules on the lasting effect of a decision: whether the same approval is requested again."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import json
from dataclasses import dataclass
from typing import Any

from harness.judge.base import Outcomes, Violation, Witness, on, rule
from harness.judge.rules.approvals.decisions import APPROVAL_CLAUSES
from harness.judge.rules.shared.approval_queries import (
    APPROVALS,
    DENYING,
    REMEMBERED,
    question_item,
)
from harness.judge.rules.shared.execution_evidence import exit_code, had_output_before
from harness.judge.rules.shared.policies import PolicyMonitor
from harness.judge.rules.shared.view_queries import item_in, request_subject
from harness.judge.rules.shared.violations import absent, member
from harness.judge.verdict import Level
from harness.protocol.values import obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame, Kind
from harness.trace.order import came_before
from harness.trace.views import ItemView, TurnView

# Decisions about one operation only.
_ONE_TIME_DECISIONS = frozenset({"accept", *DENYING})


@dataclass(slots=True, eq=False)
class Remembered:
    """A decision: its item, the approval request, the client's answer."""

    item: ItemView
    question: Frame
    answer: Frame
    decision: str


@rule(
    "approval.session-remembered",
    title="An operation approved for the session is not asked about again",
    level=Level.MUST,
    needs=("command-approval",),
)
class SessionRemembered(PolicyMonitor):
    """Judges that no approval is requested again for the same command, folder and thread.

    Judged from the completion of the item for which every request was answered acceptForSession.
    SHOULD after acceptWithExecpolicyAmendment, since the resulting rule is not shown, and if the
    request gives another reason or has other members: it may ask for something else. INFO in a turn
    that may be under on-request, or under another policy than before: a server may then follow
    "always ask". Left open: which other commands count as the same; a turn that may have another
    sandbox; an answer that may have crossed an interrupt, for an item that did not complete well;
    an item that began before the answer, or has had output, so that the request may follow a
    failure; threads that were unloaded since; traces of several clients.
    """

    def begin(self) -> None:
        super().begin()
        self._approved: dict[tuple[str, str], Remembered] = {}
        self._by_item: dict[tuple[str, str, str], Remembered] = {}

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or item.type != "commandExecution" or len(item.completions) > 1:
            return None
        thread_id, shows = item.turn.thread_id, item_in(frame)
        key = (thread_id, text(shows.get("command")), text(shows.get("cwd")))
        questions = self.questions(item)
        if not questions:
            decision_before = self._by_item.get(key)
            if decision_before is None or not self._is_still_remembered(decision_before):
                return None
            return [
                Witness(item.subject, (decision_before.question, decision_before.answer, frame))
            ]
        question, answer = questions[-1], self.conversation.answer_of(questions[-1])
        decision = self.decision(question)
        lasts = self.decisions(item) <= frozenset(REMEMBERED)
        status = shows.get("status")
        # An answer that crossed an interrupt may have come too late to count.
        is_in_time = status == "completed" or (
            status != "declined" and not self.may_be_disturbed(item.turn)
        )
        if lasts and answer is not None and is_in_time:
            remembered = Remembered(item, question, answer, decision)
            self._approved.setdefault((thread_id, _operation_key(question)), remembered)
            self._by_item.setdefault(key, remembered)
        return None

    @on(*APPROVALS)
    def on_approval(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        is_question = frame.kind is Kind.REQUEST and "command" in obj(frame.params)
        if turn is None or not is_question:
            return None
        remembered = self._approved.get((turn.thread_id, _operation_key(frame)))
        if (
            remembered is None
            or not self._is_still_remembered(remembered)
            or self._may_be_for_something_else(remembered, turn, frame)
        ):
            return None
        level = Level.MUST if remembered.decision == "acceptForSession" else Level.SHOULD
        if _members_without_ids(remembered.question) != _members_without_ids(frame):
            level = Level.SHOULD
        policies = self.policies(turn)
        if (
            not policies
            or "on-request" in policies
            or policies != self.policies(remembered.item.turn)
        ):
            level = Level.INFO
        clause = APPROVAL_CLAUSES[remembered.decision]
        return [
            Violation(
                request_subject(frame),
                (remembered.question, remembered.answer, frame),
                f"no question about {literal(obj(frame.params).get('command'))}: "
                f"{remembered.decision} was answered to it before, for {remembered.item.subject}",
                f"{frame.method} asks about it again",
                level,
                clauses=(clause,),
                places=(
                    member(remembered.question, "command").place,
                    member(remembered.answer, "decision").place,
                    member(frame, "command").place,
                ),
            )
        ]

    def _is_still_remembered(self, remembered: Remembered) -> bool:
        """Return whether nothing can have unloaded the thread since the approval was requested."""
        thread_id = remembered.item.turn.thread_id
        return (
            not self.was_disrupted_since(thread_id, remembered.question) and self.has_one_client()
        )

    def _may_be_for_something_else(
        self, remembered: Remembered, turn: TurnView, frame: Frame
    ) -> bool:
        """Return whether the request may be for something other than the approved command."""
        if (
            self.sandboxes(turn) != self.sandboxes(remembered.item.turn)
            or len(self.sandboxes(turn)) > 1
        ):
            return True
        item = turn.items.get(question_item(frame))
        if item is None or not item.starts:
            return False
        began_before = came_before(item.starts[0], remembered.answer)
        return item is remembered.item or began_before or had_output_before(item, frame)


@rule(
    "approval.asked-again",
    title="An operation accepted once, or denied, is asked about again",
    level=Level.SHOULD,
    needs=("command-approval",),
)
class AskedAgain(PolicyMonitor):
    """Judges that a command that needed approval under untrusted does not run later without one.

    It is the same command, folder and thread, after accept, decline or cancel. Derived:
    acceptForSession means accept and remember, and a denial allows nothing. A witness is a command
    with a second approval request. Left open: other policies (approval.always-asked covers
    on-request); sandboxes other than dangerFullAccess, since the request may have followed a
    failure there; everything after a decision that also covers later commands, or an unknown one;
    commands that failed.
    """

    def begin(self) -> None:
        super().begin()
        self._remembered: dict[tuple[str, str, str], Remembered] = {}
        self._has_lasting_allowance = False

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or item.type != "commandExecution" or len(item.completions) > 1:
            return None
        shows, questions = item_in(frame), self.questions(item)
        key = (item.turn.thread_id, text(shows.get("command")), text(shows.get("cwd")))
        remembered = self._remembered.get(key)
        if questions:
            self._remember(item, key)
            if remembered is None:
                return None
            return [
                Witness(item.subject, (remembered.question, remembered.answer, questions[0], frame))
            ]
        succeeded = shows.get("status") == "completed" and not exit_code(shows)
        if (
            remembered is None
            or self._has_lasting_allowance
            or not succeeded
            or not self._is_alike(remembered, item)
        ):
            return None
        expected = f"a question about it, as about {remembered.item.subject}"
        actual = f"carried out unasked: {member(frame, 'item', 'status')}"
        decision_member = member(remembered.answer, "decision")
        frames = (remembered.question, remembered.answer, frame)
        return [absent(item.subject, frames, expected, actual, decision_member)]

    def _remember(self, item: ItemView, key: tuple[str, str, str]) -> None:
        question = self.questions(item)[-1]
        answer = self.conversation.answer_of(question)
        if not self.decisions(item) <= _ONE_TIME_DECISIONS or answer is None:
            self._has_lasting_allowance = True
        elif not had_output_before(item, self.questions(item)[0]):
            remembered = Remembered(item, question, answer, self.decision(question))
            self._remembered.setdefault(key, remembered)

    def _is_alike(self, remembered: Remembered, item: ItemView) -> bool:
        """Return whether both turns were under untrusted, without a sandbox."""
        return all(
            self.is_under(turn, "untrusted")
            and self.sandbox_types(turn) == frozenset({"dangerFullAccess"})
            for turn in (remembered.item.turn, item.turn)
        )


def _operation_key(question: Frame) -> str:
    """Return a command and its folder as JSON text; either may have any form."""
    params = obj(question.params)
    return json.dumps([params.get("command"), params.get("cwd")])


def _members_without_ids(question: Frame) -> dict[str, Any]:
    """Return the members of a request whose names do not end in "Id"."""
    return {name: value for name, value in obj(question.params).items() if not name.endswith("Id")}
