"""Rules on the approval policy: whether approval is requested, and what runs before.

The specification does not say which operations are untrusted, so no rule judges the policy
untrusted.
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
from harness.judge.rules.shared.execution_evidence import (
    DIFF,
    exit_code,
    had_output_before,
    is_only_writer,
    shows_change,
)
from harness.judge.rules.shared.policies import PolicyMonitor, policy_of
from harness.judge.rules.shared.view_queries import began_here, item_in, request_subject
from harness.judge.rules.shared.violations import absent, member, unexpected_member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import text
from harness.trace.frame import Frame, Kind
from harness.trace.order import came_before
from harness.trace.views import ItemView, TurnView

# Exit codes of a shell for a command that it could not start.
_NOT_STARTED_CODES = frozenset({126, 127})
# Names of unspecified server requests that may ask for more permissions.
_PERMISSION = re.compile(r"approval|permission", re.IGNORECASE)


@rule(
    "approval.never-asked",
    title="Under never the client is not asked",
    level=Level.MUST,
    needs=("command-execution",),
)
class NeverAsked(PolicyMonitor):
    """Judges that no approval is requested in a turn under the policy never.

    A witness is a turn with a command or a file change and without an approval request. Left open:
    turns whose policy is uncertain.
    """

    def begin(self) -> None:
        super().begin()
        self._turns_with_questions: set[TurnView] = set()

    @on(*APPROVALS)
    def on_approval(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if frame.kind is not Kind.REQUEST or turn is None or not self.is_under(turn, "never"):
            return None
        self._turns_with_questions.add(turn)
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
        if turn is None or turn in self._turns_with_questions or not self.is_under(turn, "never"):
            return None
        items = [item for item in turn.items.values() if item.type in OPERATIONS]
        completions = [item.completions[0] for item in items if item.completions]
        return [Witness(turn.subject, (completions[0], frame))] if completions else None


@rule(
    "approval.always-asked",
    title="Under on-request the client is always asked",
    level=Level.MUST,
    needs=("command-approval",),
)
class AlwaysAsked(PolicyMonitor):
    """Judges that approval was requested for each operation carried out under on-request.

    Operations are commands and file changes. Carried out means completed, or failed with both
    output and an exit code of its own. An exit code alone is SHOULD, unless it means that the
    command could not start, or was refused: left open. Left open too: turns whose policy is
    uncertain, commands that continue in a process for which approval was requested, and every
    command after an answer that also covers later ones: the specification does not say how far a
    session, a lasting rule or a network rule reaches, across threads too. File changes have no such
    answer: SHOULD. An unknown answer, and one to another kind of permission request, may have
    allowed anything. A command about which an earlier turn asked, and which is declined unasked
    now, is a finding too, unless something else may have ended the turn.
    """

    def begin(self) -> None:
        super().begin()
        self._relaxed_types: set[str] = set()
        # The first question about each command, by thread, command and folder.
        self._asked: dict[tuple[str, str, str], tuple[TurnView, Frame]] = {}
        self._known_processes: set[str] = set()

    @on_harness_message
    def on_client_answer(self, frame: Frame) -> Outcomes:
        question = self.conversation.request_of(frame)
        if question is None or frame.kind not in (Kind.RESPONSE, Kind.ERROR):
            return None
        if question.method not in ITEM_TYPES and not _PERMISSION.search(question.method):
            return None
        decision = self.answered_decision(question) if question.method in ITEM_TYPES else ""
        if decision in LASTING:
            self._relaxed_types.add("commandExecution")
        elif frame.kind is Kind.RESPONSE and not decision:
            self._relaxed_types |= OPERATIONS
        return None

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or item.type not in OPERATIONS or len(item.completions) > 1:
            return None
        shows, questions = item_in(frame), self.questions(item)
        level = _evidence_level(item, shows)
        process = text(shows.get("processId"))
        if questions and process:
            self._known_processes.add(process)
        command = (item.turn.thread_id, text(shows.get("command")), text(shows.get("cwd")))
        if questions and self.is_under(item.turn, "on-request"):
            self._asked.setdefault(command, (item.turn, questions[0]))
        if shows.get("status") == "declined" and not questions:
            return self._judge_denied(item, frame, self._asked.get(command))
        if level is None or not self.is_under(item.turn, "on-request"):
            return None
        if questions:
            return [Witness(item.subject, (questions[0], frame))]
        if item.type in self._relaxed_types or process in self._known_processes:
            return None
        if self._relaxed_types:
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

    def _judge_denied(
        self, item: ItemView, frame: Frame, first_question: tuple[TurnView, Frame] | None
    ) -> Outcomes:
        """Judge a command that was declined unasked, though a turn before asked about it."""
        if (
            first_question is None
            or not first_question[0].completions
            or first_question[0] is item.turn
        ):
            return None
        is_disturbed = self.may_be_disturbed(item.turn) or self.cancelling_answer(item.turn)
        is_alike = self.sandboxes(item.turn) == self.sandboxes(first_question[0])
        if is_disturbed or not is_alike or not self.is_under(item.turn, "on-request"):
            return None
        if item.type in self._relaxed_types:
            return None
        status, command = member(frame, "item", "status"), member(frame, "item", "command")
        return [
            absent(
                item.subject,
                (first_question[1], frame),
                "a request for approval before it, under the approval policy on-request",
                f"declined unasked: {status}",
                command,
                *policy_of(item.turn),
                clauses=(
                    *self.clauses(item.turn, "approval-policy.on-request"),
                    "approval.under-policy",
                ),
            )
        ]


def _evidence_level(item: ItemView, shows: dict[str, Any]) -> Level | None:
    """Return the level of the evidence that an item was carried out, None if there is none."""
    code = exit_code(shows)
    if code is not None and code < 0:
        return None
    if shows.get("status") == "completed":
        return Level.MUST
    if code is None or shows.get("status") == "declined":
        return None
    if item.first_delta is not None:
        return Level.MUST
    return None if code in _NOT_STARTED_CODES else Level.SHOULD


@rule(
    "approval.asks-before-acting",
    title="Nothing runs before the client has answered",
    level=Level.MUST,
    needs=("command-approval",),
)
class AsksBeforeActing(PolicyMonitor):
    """Judges that no part of an item is carried out before its approval request is answered.

    For a command, output before the answer is the evidence. Output before the request may come from
    a failed first try, which the request then is about: MUST under on-request, which always asks,
    else SHOULD. Under on-failure this is normal and not judged. For a file change, its own output
    shows nothing: the tool may announce its plan. If the turn's diff has its lines by then it is
    SHOULD, unless something else may have written them. Left open: turns whose policy is uncertain.
    """

    def begin(self) -> None:
        super().begin()
        self._diffs: dict[TurnView, list[Frame]] = {}

    @on(DIFF)
    def on_diff(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is not None and not turn.completions:
            self._diffs.setdefault(turn, []).append(frame)
        return None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is not None:
            self._diffs.pop(turn, None)
        return None

    @on_harness_message
    def on_client_answer(self, frame: Frame) -> Outcomes:
        question = self.question_of(frame)
        turn = self.conversation.turn_of(question) if question else None
        if question is None or turn is None or not began_here(self.conversation, turn):
            return None
        item = turn.items.get(question_item(question))
        policies = self.policies(turn)
        is_certain = bool(policies) and "on-failure" not in policies and self.has_one_client()
        if item is None or not item.starts or not is_certain:
            return None
        frames, expected = (question, frame), f"{request_subject(question)} answered first"
        if item.type == "fileChange":
            diff_frame = self._diff_of_change(item, question)
            if diff_frame is not None:
                diff, frames = member(diff_frame, "diff"), (question, diff_frame, frame)
                return [unexpected_member(item.subject, frames, diff, expected, level=Level.SHOULD)]
            return [Witness(item.subject, (item.starts[-1], *frames))]
        first_delta = item.first_delta
        if first_delta is None or came_before(first_delta, item.starts[-1]):
            return [Witness(item.subject, (item.starts[-1], *frames))]
        if self.questions(item)[0] is not question:
            return None
        may_be_retry = came_before(first_delta, question) and policies != frozenset({"on-request"})
        level = Level.SHOULD if may_be_retry else None
        frames, delta = (question, first_delta, frame), member(first_delta, "delta")
        return [unexpected_member(item.subject, frames, delta, expected, level=level)]

    def _diff_of_change(self, item: ItemView, question: Frame) -> Frame | None:
        """Return a diff with the lines of a file change whose approval is still open, or None."""
        start = item.starts[-1]
        for diff in self._diffs.get(item.turn, ()):
            if came_before(start, diff) and shows_change(diff, item_in(start)):
                return diff if is_only_writer(self.conversation, item, diff) else None
        return None


@rule(
    "approval.failure-first",
    title="Under on-failure the client is asked after a failure",
    level=Level.SHOULD,
    needs=("command-approval",),
)
class FailureFirst(PolicyMonitor):
    """Judges that approval under on-failure, without a sandbox, is requested only after a failure.

    Derived from the meaning of the policy. A first try need not be visible, and may fail because of
    the sandbox. So only an operation under dangerFullAccess is judged that succeeded once approved:
    nothing had kept it from succeeding before. A witness is one that succeeds without approval.
    Left open: other or uncertain sandboxes; a turn with an earlier failure or an error; an item
    with output before the request, as from a first try.
    """

    def begin(self) -> None:
        super().begin()
        self._failed_turns: set[TurnView] = set()

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item, shows = self.conversation.item_of(frame), item_in(frame)
        if item is None or len(item.completions) > 1:
            return None
        if shows.get("status") not in (None, "completed") or exit_code(shows):
            self._failed_turns.add(item.turn)
        is_done = item.type in OPERATIONS and shows.get("status") == "completed"
        if not is_done or not self._is_judged(item.turn):
            return None
        questions = self.questions(item)
        if not questions:
            return [Witness(item.subject, (frame,))]
        if had_output_before(item, questions[0]) or not self.decisions(item) <= APPROVING:
            return None
        expected = "a failure before the question, under the approval policy on-failure"
        frames, field = (*self.last_exchange(item), frame), member(frame, "item", "status")
        actual = f"nothing had failed, and once approved it went well: {field}"
        item_id = member(questions[0], "itemId")
        return [absent(item.subject, frames, expected, actual, item_id, *policy_of(item.turn))]

    def _is_judged(self, turn: TurnView) -> bool:
        if turn in self._failed_turns or turn.errors or not self.is_under(turn, "on-failure"):
            return False
        return self.sandbox_types(turn) == frozenset({"dangerFullAccess"})


@rule(
    "approval.rejected",
    title="Under reject nothing is approved",
    level=Level.MUST,
    needs=("command-approval",),
)
class Rejected(PolicyMonitor):
    """Judges that under reject no item is carried out on the client's approval.

    An item with an approval request that was accepted and then completed was not rejected. The
    request itself is only recorded: the specification does not show how a rejection proceeds. A
    witness is an item that ends as declined.
    """

    @on(*APPROVALS)
    def on_approval(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if frame.kind is not Kind.REQUEST or not self.is_under(turn, "reject"):
            return None
        expected = "no question, under the approval policy reject"
        subject = request_subject(frame)
        actual = f"{frame.method} about {member(frame, 'itemId')}"
        policy_members = policy_of(turn) if turn is not None else ()
        return [absent(subject, (frame,), expected, actual, *policy_members, level=Level.INFO)]

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or len(item.completions) > 1 or not self.is_under(item.turn, "reject"):
            return None
        status = item_in(frame).get("status")
        if status == "declined":
            return [Witness(item.subject, (frame,))]
        if status != "completed" or not self.decisions(item) & APPROVING:
            return None
        frames = (*self.last_exchange(item), frame)
        field, expected = member(frame, "item", "status"), '"declined", under the policy reject'
        return [wrong(item.subject, frames, field, expected, also=policy_of(item.turn))]
