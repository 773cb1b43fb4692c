"""The rule on the order of the approval sequence."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from dataclasses import dataclass, field

from harness.judge.base import (
    Outcome,
    Outcomes,
    Violation,
    Witness,
    on,
    on_harness_message,
    on_kind,
    rule,
)
from harness.judge.rules.shared.approval_queries import (
    APPROVING,
    ITEM_TYPES,
    ApprovalMonitor,
    item_of_another_turn,
    question_item,
)
from harness.judge.rules.shared.view_queries import (
    began_here,
    describe_silence,
    item_in,
    request_subject,
)
from harness.judge.rules.shared.violations import member
from harness.judge.verdict import Level
from harness.protocol.spec.machines import APPROVAL
from harness.protocol.values import dig
from harness.trace.correlation import same_id
from harness.trace.frame import Frame, Kind
from harness.trace.order import by_arrival, came_before
from harness.trace.views import ItemView, TurnView

ASK, ANSWER = "server request", "client answer"
RESOLVED, COMPLETED = "serverRequest/resolved", "item/completed"
# The state of an item that has not been started; the machine has no such state.
NOT_STARTED = "not started"
# The requirement that an event at the wrong time breaks.
CLAUSES = {
    ASK: "approval.item-first",
    RESOLVED: "approval.resolved",
    COMPLETED: "approval.completed",
}


@dataclass(slots=True, eq=False)
class Walk:
    """The state of one approval request, and the frames that led to it.

    `early_resolved` is a serverRequest/resolved for it that came before its answer.
    """

    question: Frame
    turn: TurnView
    state: str
    frames: list[Frame] = field(default_factory=list[Frame])
    early_resolved: Frame | None = None


@rule(
    "approval.order",
    title="An approval goes through its sequence in order",
    level=Level.MUST,
    needs=("command-approval",),
)
class ApprovalOrder(ApprovalMonitor):
    """Runs the state machine of "Approval sequence" once for each approval request.

    Item started, asked, answered, `serverRequest/resolved`, item/completed: an event without a
    transition from the current state is a violation, and so is an answered request that is never
    resolved. A second serverRequest/resolved is SHOULD. Its payload is not shown, so it counts for
    any request that it fits. A request that is resolved before the client answered, as by a timeout
    of the server, is SHOULD if its item then ends as declined or failed, and MUST if it is
    completed without approval. Left open: requests of turns whose beginning this client did not
    see, requests answered by an error or an unknown decision, and those whose turn was interrupted
    (also by cancelling another of its requests), failed, overlapped another turn/start or was
    disrupted meanwhile; and everything that another client may have answered.
    """

    def begin(self) -> None:
        super().begin()
        self._walks: list[Walk] = []
        self._last_resolved: Walk | None = None
        # Notifications that may be for several requests, until it is clear for which one.
        self._unassigned_resolved: list[Frame] = []
        # serverRequest/resolved that came while several requests were open and unanswered.
        self._early_resolved: list[Frame] = []
        # The number of requests that are not tracked and may still be resolved.
        self._untracked = 0
        # Items that ended too early without being carried out; their turn may be about to fail.
        self._held_violations: dict[TurnView, list[Violation]] = {}

    @on_kind(Kind.REQUEST)
    def on_request(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        # With a duplicate id, an answer has no certain request (server-request.id-unique).
        confused = [walk for walk in self._walks if same_id(walk.question.id, frame.id)]
        for walk in confused:
            self._drop(walk)
        if (
            confused
            or frame.method not in ITEM_TYPES
            or turn is None
            or turn.completions
            or not question_item(frame)
            or not began_here(self.conversation, turn)
            or item_of_another_turn(self.conversation, question_item(frame), turn)
        ):
            self._untracked += 1
            return None
        item = turn.items.get(question_item(frame))
        walk = Walk(frame, turn, _state_of(item))
        if item is not None and item.starts:
            walk.frames.append(item.starts[-1])
        self._walks.append(walk)
        return self._step(walk, ASK, frame)

    @on_harness_message
    def on_client_answer(self, frame: Frame) -> Outcomes:
        question = self.question_of(frame)
        walk = next((walk for walk in self._walks if walk.question is question), None)
        if walk is None:
            return None
        if not self.answered_decision(walk.question):
            self._drop(walk)
            return None
        return self._step(walk, ANSWER, frame)

    @on("serverRequest/resolved")
    def on_server_request_resolved(self, frame: Frame) -> Outcomes:
        fitting = [walk for walk in self._walks if APPROVAL.next_state(walk.state, RESOLVED)]
        if len(fitting) == 1 and not self._untracked:
            return self._step(fitting[0], RESOLVED, frame)
        if fitting:
            self._unassigned_resolved.append(frame)
        elif self._untracked:
            self._untracked -= 1
        elif self._walks and not any(self.may_be_disturbed(walk.turn) for walk in self._walks):
            return self._judge_early_resolved(frame)
        elif (
            not self._walks
            and self._last_resolved is not None
            and not self.may_be_disturbed(self._last_resolved.turn)
        ):
            return [self._order_violation(self._last_resolved, RESOLVED, frame)]
        return None

    def _judge_early_resolved(self, frame: Frame) -> Outcomes:
        """Judge a serverRequest/resolved for an open request, or a second one."""
        open_walks = [walk for walk in self._walks if _is_open(walk)]
        if self._last_resolved is not None and self._last_resolved in self._walks:
            return self._step(self._last_resolved, RESOLVED, frame)
        overtaken = [walk for walk in open_walks if self._is_cancelled_by_another(walk)]
        if overtaken or not open_walks:
            return self._step((overtaken or self._walks)[0], RESOLVED, frame)
        if len(open_walks) == 1:
            open_walks[0].early_resolved = frame
        else:
            self._early_resolved.append(frame)
        return None

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None:
            return None
        outcomes: list[Outcome] = []
        for walk in [walk for walk in self._walks if _is_about(walk, item)]:
            if self._early_resolved and _is_open(walk):
                walk.early_resolved = self._early_resolved.pop(0)
            if walk.early_resolved is not None:
                outcomes.append(self._withdrawal_violation(walk, walk.early_resolved, frame, item))
                continue
            if self._unassigned_resolved and APPROVAL.next_state(walk.state, RESOLVED):
                outcomes += self._step(walk, RESOLVED, self._unassigned_resolved.pop(0)) or ()
            outcomes += self._step(walk, COMPLETED, frame) or ()
        return outcomes

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        violations = self._held_violations.pop(turn, []) if turn is not None else []
        outcomes: list[Outcome] = [*violations] if turn and turn.status != "failed" else []
        for walk in [walk for walk in self._walks if walk.turn is turn]:
            if self._early_resolved and _is_open(walk):
                walk.early_resolved = self._early_resolved.pop(0)
            if walk.early_resolved is not None:
                outcomes.append(self._withdrawal_violation(walk, walk.early_resolved, frame))
                continue
            # It is not specified whether a request that is then still open is resolved.
            if walk.turn.status != "completed" or APPROVAL.next_state(walk.state, ANSWER):
                self._drop(walk)
        return outcomes

    def finish(self) -> Outcomes:
        for violations in self._held_violations.values():
            yield from violations
        for walk in list(self._walks):
            if self._early_resolved and _is_open(walk):
                walk.early_resolved = self._early_resolved.pop(0)
            if walk.early_resolved is not None:
                yield self._withdrawal_violation(walk, walk.early_resolved, walk.early_resolved)
                continue
            if not APPROVAL.next_state(walk.state, RESOLVED) or self.may_be_disturbed(walk.turn):
                continue
            if self._unassigned_resolved:
                self._unassigned_resolved.pop()
                continue
            yield Violation(
                request_subject(walk.question),
                tuple(walk.frames),
                f"{RESOLVED} for {request_subject(walk.question)}, since it was answered",
                describe_silence(self.trace),
                clauses=("approval.resolved",),
                places=(member(walk.question, "itemId").place,),
            )

    def _step(self, walk: Walk, event: str, frame: Frame) -> Outcomes:
        next_state = APPROVAL.next_state(walk.state, event)
        if next_state is None:
            excused = event != ASK and (
                self.may_be_disturbed(walk.turn) or self._is_cancelled_by_another(walk)
            )
            violations = [] if excused else [self._order_violation(walk, event, frame)]
            self._drop(walk, resolved=event == RESOLVED)
            if event != COMPLETED or item_in(frame).get("status") == "completed":
                return violations
            self._held_violations.setdefault(walk.turn, []).extend(violations)
            return []
        walk.state = next_state
        walk.frames.append(frame)
        if next_state == "resolved":
            self._last_resolved = walk
        if next_state not in APPROVAL.terminal:
            return []
        self._walks.remove(walk)
        return [Witness(request_subject(walk.question), tuple(walk.frames))]

    def _withdrawal_violation(
        self, walk: Walk, resolved: Frame, end: Frame, item: ItemView | None = None
    ) -> Violation:
        """Stop tracking a request that was resolved before its answer, and return its violation.

        The level is MUST only if its item was completed, no other request for that item was
        approved, and the notification cannot be a second one for an earlier request.
        """
        self._walks.remove(walk)
        other_questions = (
            [question for question in self.questions(item) if question is not walk.question]
            if item
            else []
        )
        is_completed = item is not None and item_in(end).get("status") == "completed"
        approved = any(
            self.answered_decision(question) in APPROVING for question in other_questions
        )
        is_certain = (
            self._last_resolved is None or dig(resolved.params, "requestId") == walk.question.id
        )
        level = None if is_completed and is_certain and not approved else Level.SHOULD
        return self._order_violation(walk, RESOLVED, resolved, end, state="asked", level=level)

    def _is_cancelled_by_another(self, walk: Walk) -> bool:
        """Return whether the answer to another request of the turn cancelled it."""
        cancel = self.cancelling_answer(walk.turn)
        return cancel is not None and cancel is not self.conversation.answer_of(walk.question)

    def _drop(self, walk: Walk, *, resolved: bool = False) -> None:
        self._walks.remove(walk)
        if not resolved and APPROVAL.next_state(walk.state, COMPLETED) is None:
            self._untracked += 1

    def _order_violation(
        self,
        walk: Walk,
        event: str,
        *frames: Frame,
        state: str = "",
        level: Level | None = None,
    ) -> Violation:
        is_second, state = walk is self._last_resolved and event == RESOLVED, state or walk.state
        expected = " or ".join(APPROVAL.allowed_events(state))
        if state == NOT_STARTED:
            expected = "item/started"
        item = f"item {question_item(walk.question)} of {walk.turn.subject}"
        return Violation(
            request_subject(walk.question),
            tuple(by_arrival({*walk.frames, *frames})),
            f"{expected or 'nothing more of it'}, since it is: {state} ({item})",
            f"{event} came {'again' if is_second else 'first'}",
            Level.SHOULD if is_second else level,
            clauses=("approval.resolved-once" if is_second else CLAUSES.get(event, ""),),
            places=(member(walk.question, "itemId").place,),
        )


def _is_open(walk: Walk) -> bool:
    """Return whether the request has neither been answered nor resolved."""
    return APPROVAL.next_state(walk.state, ANSWER) is not None and walk.early_resolved is None


def _state_of(item: ItemView | None) -> str:
    """Return the state of an item when approval for it is requested."""
    if item is None or not item.starts:
        return NOT_STARTED
    is_completed = any(came_before(item.starts[-1], frame) for frame in item.completions)
    return "completed" if is_completed else APPROVAL.initial


def _is_about(walk: Walk, item: ItemView) -> bool:
    return walk.turn is item.turn and question_item(walk.question) == item.id
