"""Rules on the approval policy: whether approval is requested, and what is done before.

The text does not show which operations are untrusted, so no rule judges the policy untrusted.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import re
from typing import Any

from harness.judge.base import Outcomes, Witness, on, on_harness_message, rule
from harness.judge.rules.shared.approval_queries import (
    APPROVALS,
    APPROVING,
    ITEM_TYPES,
    LASTING,
    OPERATIONS,
    question_item,
)
from harness.judge.rules.shared.carried_out import (
    DIFF,
    exit_code,
    only_writer,
    printed_before,
    shows_change,
)
from harness.judge.rules.shared.settings_in_force import PolicyMonitor, policy_of
from harness.judge.rules.shared.view_queries import began_here, item_in, request_subject
from harness.judge.rules.shared.violations import absent, instead, member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import text
from harness.trace.frame import Frame, Kind
from harness.trace.order import came_before
from harness.trace.views import ItemView, TurnView

# The exit codes of a shell for a command that it could not start.
_NOT_BEGUN = frozenset({126, 127})
# Server requests that the text does not have and that may ask for more permissions.
_PERMISSION = re.compile(r"approval|permission", re.IGNORECASE)


@rule(
    "approval.never-asked",
    title="Under never the client is not asked",
    level=Level.MUST,
    needs=("command-execution",),
)
class NeverAsked(PolicyMonitor):
    """Judges that no approval is requested in a turn under the policy never.

    A witness is a turn with a command or a file change and without a question. Left open: turns
    whose policy is not certain.
    """

    def begin(self) -> None:
        super().begin()
        self._asked: set[TurnView] = set()

    @on(*APPROVALS)
    def on_approval(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if frame.kind is not Kind.REQUEST or turn is None or not self.under(turn, "never"):
            return None
        self._asked.add(turn)
        return [
            absent(
                request_subject(frame),
                (frame,),
                f"no question in {turn.subject}, under the approval policy never",
                f"{frame.method} about {member(frame, 'itemId')}",
                *policy_of(turn),
                clauses=self.clauses(turn, "approval-policy.never"),
            )
        ]

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or turn in self._asked or not self.under(turn, "never"):
            return None
        items = [item for item in turn.items.values() if item.type in OPERATIONS]
        done = [item.completed[0] for item in items if item.completed]
        return [Witness(turn.subject, (done[0], frame))] if done else None


@rule(
    "approval.always-asked",
    title="Under on-request the client is always asked",
    level=Level.MUST,
    needs=("command-approval",),
)
class AlwaysAsked(PolicyMonitor):
    """Judges that each command and file change carried out under on-request was asked about.

    Carried out: completed, or failed with both output and an exit code of its own. Where an exit
    code alone tells, it is SHOULD: one of a command that could not be begun, or was refused before,
    is left open. So are turns whose policy is not certain, commands that go on in a process which
    was asked about, and every command after an answer that speaks of later ones too: how far a
    session, a lasting rule or a network rule reaches is not shown, other threads included. File
    changes have no such answer, so there it is SHOULD. An answer that the text does not show, and
    one to another kind of question, may have allowed anything.
    """

    def begin(self) -> None:
        super().begin()
        self._relaxed: set[str] = set()
        self._processes: set[str] = set()

    @on_harness_message
    def answered(self, frame: Frame) -> Outcomes:
        question = self.conversation.request_of(frame)
        if question is None or frame.kind not in (Kind.RESPONSE, Kind.ERROR):
            return None
        if question.method not in ITEM_TYPES and not _PERMISSION.search(question.method):
            return None
        decision = self.answered_decision(question) if question.method in ITEM_TYPES else ""
        if decision in LASTING:
            self._relaxed.add("commandExecution")
        elif frame.kind is Kind.RESPONSE and not decision:
            self._relaxed |= OPERATIONS
        return None

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or item.type not in OPERATIONS or len(item.completed) > 1:
            return None
        shows, questions = item_in(frame), self.questions(item)
        level = _carried_out(item, shows)
        process = text(shows.get("processId"))
        if questions and process:
            self._processes.add(process)
        if level is None or not self.under(item.turn, "on-request"):
            return None
        if questions:
            return [Witness(item.subject, (questions[0], frame))]
        if item.type in self._relaxed or process in self._processes:
            return None
        if self._relaxed:
            level = Level.SHOULD
        return [
            absent(
                item.subject,
                (frame,),
                "a request for approval before it, under the approval policy on-request",
                f"carried out unasked: {member(frame, 'item', 'status')}",
                *policy_of(item.turn),
                level=level,
                clauses=(
                    *self.clauses(item.turn, "approval-policy.on-request"),
                    "approval.under-policy",
                ),
            )
        ]


def _carried_out(item: ItemView, shows: dict[str, Any]) -> Level | None:
    """The level of the evidence that a completed item was carried out, None for no evidence."""
    code = exit_code(shows)
    if code is not None and code < 0:
        return None
    if shows.get("status") == "completed":
        return Level.MUST
    if code is None or shows.get("status") == "declined":
        return None
    if item.first_delta is not None:
        return Level.MUST
    return None if code in _NOT_BEGUN else Level.SHOULD


@rule(
    "approval.asks-before-acting",
    title="Nothing is done before the client has answered",
    level=Level.MUST,
    needs=("command-approval",),
)
class AsksBeforeActing(PolicyMonitor):
    """Judges that nothing of an item is done before the question about it is answered.

    Of a command that is its output, which then is of something that ran unapproved. Where it came
    before the question, a first try may have failed and be what the client is asked about: MUST
    under on-request alone, which always asks, else SHOULD. Under on-failure this is how it goes,
    so that it is not judged. Of a file change its own output shows nothing: the tool may tell what
    it is about to do. That the diff of the turn has its lines by then is SHOULD, unless something
    else may have written them. Left open: turns whose policy is not certain.
    """

    def begin(self) -> None:
        super().begin()
        self._diffs: dict[TurnView, list[Frame]] = {}

    @on(DIFF)
    def on_diff(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is not None and not turn.completed:
            self._diffs.setdefault(turn, []).append(frame)
        return None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is not None:
            self._diffs.pop(turn, None)
        return None

    @on_harness_message
    def answered(self, frame: Frame) -> Outcomes:
        question = self.question_of(frame)
        turn = self.conversation.turn_of(question) if question else None
        if question is None or turn is None or not began_here(self.conversation, turn):
            return None
        item = turn.items.get(question_item(question))
        policies = self.policies(turn)
        known = bool(policies) and "on-failure" not in policies and self.alone()
        if item is None or not item.started or not known:
            return None
        frames, expected = (question, frame), f"{request_subject(question)} answered first"
        if item.type == "fileChange":
            shown = self._shown(item, question)
            if shown is not None:
                diff, frames = member(shown, "diff"), (question, shown, frame)
                return [instead(item.subject, frames, diff, expected, level=Level.SHOULD)]
            return [Witness(item.subject, (item.started[-1], *frames))]
        early = item.first_delta
        if early is None or came_before(early, item.started[-1]):
            return [Witness(item.subject, (item.started[-1], *frames))]
        if self.questions(item)[0] is not question:
            return None
        tried = came_before(early, question) and policies != frozenset({"on-request"})
        level = Level.SHOULD if tried else None
        frames, delta = (question, early, frame), member(early, "delta")
        return [instead(item.subject, frames, delta, expected, level=level)]

    def _shown(self, item: ItemView, question: Frame) -> Frame | None:
        """A diff with the lines of a file change for which approval is still open."""
        begun = item.started[-1]
        for diff in self._diffs.get(item.turn, ()):
            if came_before(begun, diff) and shows_change(diff, item_in(begun)):
                return diff if only_writer(self.conversation, item, diff) else None
        return None


@rule(
    "approval.failure-first",
    title="Under on-failure the client is asked after a failure",
    level=Level.SHOULD,
    needs=("command-approval",),
)
class FailureFirst(PolicyMonitor):
    """Judges that what was asked about under on-failure, with nothing confined, had failed before.

    Derived from the meaning of the policy. A first try need not show, and may fail for the sandbox
    alone. So only an operation under dangerFullAccess is judged, which then was approved and went
    well: nothing had kept it from doing so before. A witness is one that goes well unasked. Left
    open: another sandbox, or one that is not certain; a turn in which something failed before, or
    with an error; an item with output before the question, as of a first try.
    """

    def begin(self) -> None:
        super().begin()
        self._failed: set[TurnView] = set()

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item, shows = self.conversation.item_of(frame), item_in(frame)
        if item is None or len(item.completed) > 1:
            return None
        if shows.get("status") not in (None, "completed") or exit_code(shows):
            self._failed.add(item.turn)
        is_done = item.type in OPERATIONS and shows.get("status") == "completed"
        if not is_done or not self._judged(item.turn):
            return None
        questions = self.questions(item)
        if not questions:
            return [Witness(item.subject, (frame,))]
        if printed_before(item, questions[0]) or not self.decisions(item) <= APPROVING:
            return None
        expected = "a failure before the question, under the approval policy on-failure"
        frames, where = (*self.last_exchange(item), frame), member(frame, "item", "status")
        actual = f"nothing had failed, and once approved it went well: {where}"
        asked = member(questions[0], "itemId")
        return [absent(item.subject, frames, expected, actual, asked, *policy_of(item.turn))]

    def _judged(self, turn: TurnView) -> bool:
        if turn in self._failed or turn.errors or not self.under(turn, "on-failure"):
            return False
        return self.sandbox_types(turn) == frozenset({"dangerFullAccess"})


@rule(
    "approval.rejected",
    title="Under reject nothing is approved",
    level=Level.MUST,
    needs=("command-approval",),
)
class Rejected(PolicyMonitor):
    """Judges that under reject no item is carried out on the client's word.

    An item that was asked about, accepted and completed was not rejected. That it is asked at all
    is recorded only: how a rejection goes is not shown. A witness is an item that ends as declined.
    """

    @on(*APPROVALS)
    def on_approval(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if frame.kind is not Kind.REQUEST or not self.under(turn, "reject"):
            return None
        expected = "no question, under the approval policy reject"
        subject, actual = (
            request_subject(frame),
            f"{frame.method} about {member(frame, 'itemId')}",
        )
        about = policy_of(turn) if turn is not None else ()
        return [absent(subject, (frame,), expected, actual, *about, level=Level.INFO)]

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or len(item.completed) > 1 or not self.under(item.turn, "reject"):
            return None
        status = item_in(frame).get("status")
        if status == "declined":
            return [Witness(item.subject, (frame,))]
        if status != "completed" or not self.decisions(item) & APPROVING:
            return None
        frames = (*self.last_exchange(item), frame)
        where, expected = member(frame, "item", "status"), '"declined", under the policy reject'
        return [wrong(item.subject, frames, where, expected, also=policy_of(item.turn))]
