"""Rules on the lasting effect of a decision: whether approval for the same is requested again."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import json
from dataclasses import dataclass
from typing import Any

from harness.judge.base import Outcomes, Violation, Witness, on, rule
from harness.judge.rules.approvals.decisions import APPROVES
from harness.judge.rules.shared.approval_queries import (
    APPROVALS,
    DENYING,
    REMEMBERED,
    question_item,
)
from harness.judge.rules.shared.carried_out import exit_code, printed_before
from harness.judge.rules.shared.settings_in_force import PolicyMonitor
from harness.judge.rules.shared.view_queries import item_in, request_subject
from harness.judge.rules.shared.violations import absent, member
from harness.judge.verdict import Level
from harness.protocol.values import obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame, Kind
from harness.trace.order import came_before
from harness.trace.views import ItemView, TurnView

# Decisions that are about one operation only.
_ONCE = frozenset({"accept", *DENYING})


@dataclass(slots=True, eq=False)
class Remembered:
    """A decision: its item, the approval request, the client's answer."""

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
class SessionRemembered(PolicyMonitor):
    """Judges that the same command in the same folder of the same thread is not asked about again.

    From the completion of the item on whose every question was answered by acceptForSession. It is
    SHOULD after acceptWithExecpolicyAmendment, since what rule that leaves is not shown, and where
    the request gives another reason or has other members: it may ask for something else. In a turn
    that may be under on-request, or under another policy than the one that was asked in, it is
    INFO: "always ask" is what a server then may hold to. Left open: which other commands count as
    the same; a turn that may have another sandbox; an answer that an interrupt may have met, of an
    item that was not completed well; an item that had begun before the answer, or has
    had output, so that a failure may be what is asked about; what an unloading of the thread
    forgets; traces of several clients.
    """

    def begin(self) -> None:
        super().begin()
        self._approved: dict[tuple[str, str], Remembered] = {}
        self._by_item: dict[tuple[str, str, str], Remembered] = {}

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or item.type != "commandExecution" or len(item.completed) > 1:
            return None
        thread_id, shows = item.turn.thread_id, item_in(frame)
        wanted = (thread_id, text(shows.get("command")), text(shows.get("cwd")))
        questions = self.questions(item)
        if not questions:
            before = self._by_item.get(wanted)
            if before is None or not self._still(before):
                return None
            return [Witness(item.subject, (before.question, before.answer, frame))]
        question, answer = questions[-1], self.conversation.answer_of(questions[-1])
        decision = self.decision(question)
        lasts = self.decisions(item) <= frozenset(REMEMBERED)
        status = shows.get("status")
        # An answer that crossed an interrupt may have come too late to count.
        heard = status == "completed" or (status != "declined" and not self.disturbed(item.turn))
        if lasts and answer is not None and heard:
            kept = Remembered(item, question, answer, decision)
            self._approved.setdefault((thread_id, _operation(question)), kept)
            self._by_item.setdefault(wanted, kept)
        return None

    @on(*APPROVALS)
    def on_approval(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        is_question = frame.kind is Kind.REQUEST and "command" in obj(frame.params)
        if turn is None or not is_question:
            return None
        before = self._approved.get((turn.thread_id, _operation(frame)))
        if before is None or not self._still(before) or self._is_other(before, turn, frame):
            return None
        level = Level.MUST if before.decision == "acceptForSession" else Level.SHOULD
        if _wording(before.question) != _wording(frame):
            level = Level.SHOULD
        policies = self.policies(turn)
        if not policies or "on-request" in policies or policies != self.policies(before.item.turn):
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

    def _still(self, before: Remembered) -> bool:
        """Return whether nothing can have unloaded the thread since the approval was requested."""
        thread_id = before.item.turn.thread_id
        return not self.disrupted_since(thread_id, before.question) and self.alone()

    def _is_other(self, before: Remembered, turn: TurnView, frame: Frame) -> bool:
        """Return whether the request may be for something other than what was approved."""
        if (
            self.sandboxes(turn) != self.sandboxes(before.item.turn)
            or len(self.sandboxes(turn)) > 1
        ):
            return True
        item = turn.items.get(question_item(frame))
        if item is None or not item.started:
            return False
        begun = came_before(item.started[0], before.answer)
        return item is before.item or begun or printed_before(item, frame)


@rule(
    "approval.asked-again",
    title="What was accepted once, or denied, is asked about again",
    level=Level.SHOULD,
    needs=("command-approval",),
)
class AskedAgain(PolicyMonitor):
    """Judges that a command which was asked about under untrusted is not run later unasked.

    The same command, folder and thread, after accept, decline or cancel. Derived,
    since to be remembered is what acceptForSession adds to accept, and a denial allows nothing. A
    witness is one that is asked about again. Left open: other policies (approval.always-asked has
    on-request); sandboxes other than dangerFullAccess, since a failure there may have been what was
    asked about; what follows any decision that speaks of later commands too, or one that the text
    does not show; commands that did not end well.
    """

    def begin(self) -> None:
        super().begin()
        self._asked: dict[tuple[str, str, str], Remembered] = {}
        self._allowed = False

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or item.type != "commandExecution" or len(item.completed) > 1:
            return None
        shows, questions = item_in(frame), self.questions(item)
        wanted = (item.turn.thread_id, text(shows.get("command")), text(shows.get("cwd")))
        before = self._asked.get(wanted)
        if questions:
            self._take_in(item, wanted)
            if before is None:
                return None
            return [Witness(item.subject, (before.question, before.answer, questions[0], frame))]
        well = shows.get("status") == "completed" and not exit_code(shows)
        if before is None or self._allowed or not well or not self._is_alike(before, item):
            return None
        expected = f"a question about it, as about {before.item.subject}"
        actual = f"carried out unasked: {member(frame, 'item', 'status')}"
        about, frames = member(before.answer, "decision"), (before.question, before.answer, frame)
        return [absent(item.subject, frames, expected, actual, about)]

    def _take_in(self, item: ItemView, wanted: tuple[str, str, str]) -> None:
        question = self.questions(item)[-1]
        answer = self.conversation.answer_of(question)
        if not self.decisions(item) <= _ONCE or answer is None:
            self._allowed = True
        elif not printed_before(item, self.questions(item)[0]):
            kept = Remembered(item, question, answer, self.decision(question))
            self._asked.setdefault(wanted, kept)

    def _is_alike(self, before: Remembered, item: ItemView) -> bool:
        """Return whether both were under untrusted, with nothing confined."""
        return all(
            self.under(turn, "untrusted")
            and self.sandbox_types(turn) == frozenset({"dangerFullAccess"})
            for turn in (before.item.turn, item.turn)
        )


def _operation(question: Frame) -> str:
    """A command and its folder as one text, whichever way the server writes the command."""
    params = obj(question.params)
    return json.dumps([params.get("command"), params.get("cwd")])


def _wording(question: Frame) -> dict[str, Any]:
    """The members of a request other than ids, as one text."""
    return {name: said for name, said in obj(question.params).items() if not name.endswith("Id")}
