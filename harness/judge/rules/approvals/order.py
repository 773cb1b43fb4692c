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
from harness.judge.rules.shared.view_queries import began_here, item_in, never_came, request_subject
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
# The state of an item that has not been started, for which the machine has none.
NOT_STARTED = "not started"
# The requirement that an event at the wrong time breaks, and its level where it is not MUST.
CLAUSES = {
    ASK: "approval.item-first",
    RESOLVED: "approval.resolved",
    COMPLETED: "approval.completed",
}


@dataclass(slots=True, eq=False)
class Walk:
    """The state of one approval request, and the frames that led to it.

    `early` is a serverRequest/resolved for it that came before its answer.
    """

    question: Frame
    turn: TurnView
    state: str
    frames: list[Frame] = field(default_factory=list[Frame])
    early: Frame | None = None


@rule(
    "approval.order",
    title="An approval goes through its sequence in order",
    level=Level.MUST,
    needs=("command-approval",),
)
class ApprovalOrder(ApprovalMonitor):
    """Walks the machine of "Approval sequence" once for each approval request.

    Item started, asked, answered, `serverRequest/resolved`, item/completed: an event for which the
    table has no row in that state is a finding, and so is an answered question that is never
    resolved. That it is resolved a second time is SHOULD. The payload of serverRequest/resolved is
    not shown, so it counts for whichever question it fits. A question that is resolved before we
    answered, as by a time-out of the server's own, is SHOULD where its item then ends as declined
    or failed; that it is completed, which nobody approved, is MUST. Left open: questions of turns
    whose beginning this client did not see, that were answered by an error or a decision that the
    text does not have, or whose turn was interrupted (by cancel as the answer to another of its
    questions, too), failed, met by another turn/start, or taken away meanwhile; and whatever
    another client may have answered.
    """

    def begin(self) -> None:
        super().begin()
        self._walks: list[Walk] = []
        self._last: Walk | None = None
        # Notifications that may be for several requests, until it is clear which one they are for.
        self._loose: list[Frame] = []
        # Those that came while several requests were open and none of them was answered.
        self._early: list[Frame] = []
        # The number of requests that are not tracked and may still be resolved.
        self._untracked = 0
        # Items that ended too early without being carried out: their turn may be about to fail.
        self._held: dict[TurnView, list[Violation]] = {}

    @on_kind(Kind.REQUEST)
    def on_request(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        # Then it cannot be known which request an answer is for (server-request.id-unique).
        confused = [walk for walk in self._walks if same_id(walk.question.id, frame.id)]
        for walk in confused:
            self._drop(walk)
        if (
            confused
            or frame.method not in ITEM_TYPES
            or turn is None
            or turn.completed
            or not question_item(frame)
            or not began_here(self.conversation, turn)
            or item_of_another_turn(self.conversation, question_item(frame), turn)
        ):
            self._untracked += 1
            return None
        item = turn.items.get(question_item(frame))
        walk = Walk(frame, turn, _state_of(item))
        if item is not None and item.started:
            walk.frames.append(item.started[-1])
        self._walks.append(walk)
        return self._step(walk, ASK, frame)

    @on_harness_message
    def answered(self, frame: Frame) -> Outcomes:
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
        fitting = [walk for walk in self._walks if APPROVAL.after(walk.state, RESOLVED)]
        if len(fitting) == 1 and not self._untracked:
            return self._step(fitting[0], RESOLVED, frame)
        if fitting:
            self._loose.append(frame)
        elif self._untracked:
            self._untracked -= 1
        elif self._walks and not any(self.disturbed(walk.turn) for walk in self._walks):
            return self._too_soon(frame)
        elif not self._walks and self._last is not None and not self.disturbed(self._last.turn):
            return [self._wrong(self._last, RESOLVED, frame)]
        return None

    def _too_soon(self, frame: Frame) -> Outcomes:
        """A serverRequest/resolved for an open request, or a second one for a resolved request."""
        asked = [walk for walk in self._walks if _is_open(walk)]
        if self._last is not None and self._last in self._walks:
            return self._step(self._last, RESOLVED, frame)
        overtaken = [walk for walk in asked if self._overtaken(walk)]
        if overtaken or not asked:
            return self._step((overtaken or self._walks)[0], RESOLVED, frame)
        if len(asked) == 1:
            asked[0].early = frame
        else:
            self._early.append(frame)
        return None

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None:
            return None
        outcomes: list[Outcome] = []
        for walk in [walk for walk in self._walks if _is_about(walk, item)]:
            if self._early and _is_open(walk):
                walk.early = self._early.pop(0)
            if walk.early is not None:
                outcomes.append(self._withdrew(walk, walk.early, frame, item))
                continue
            if self._loose and APPROVAL.after(walk.state, RESOLVED):
                outcomes += self._step(walk, RESOLVED, self._loose.pop(0)) or ()
            outcomes += self._step(walk, COMPLETED, frame) or ()
        return outcomes

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        held = self._held.pop(turn, []) if turn is not None else []
        outcomes: list[Outcome] = [*held] if turn and turn.status != "failed" else []
        for walk in [walk for walk in self._walks if walk.turn is turn]:
            if self._early and _is_open(walk):
                walk.early = self._early.pop(0)
            if walk.early is not None:
                outcomes.append(self._withdrew(walk, walk.early, frame))
                continue
            # The text does not say what then becomes of an open request.
            if walk.turn.status != "completed" or APPROVAL.after(walk.state, ANSWER):
                self._drop(walk)
        return outcomes

    def finish(self) -> Outcomes:
        for held in self._held.values():
            yield from held
        for walk in list(self._walks):
            if self._early and _is_open(walk):
                walk.early = self._early.pop(0)
            if walk.early is not None:
                yield self._withdrew(walk, walk.early, walk.early)
                continue
            if not APPROVAL.after(walk.state, RESOLVED) or self.disturbed(walk.turn):
                continue
            if self._loose:
                self._loose.pop()
                continue
            yield Violation(
                request_subject(walk.question),
                tuple(walk.frames),
                f"{RESOLVED} for {request_subject(walk.question)}, since it was answered",
                never_came(self.trace),
                clauses=("approval.resolved",),
                places=(member(walk.question, "itemId").place,),
            )

    def _step(self, walk: Walk, event: str, frame: Frame) -> Outcomes:
        after = APPROVAL.after(walk.state, event)
        if after is None:
            excused = event != ASK and (self.disturbed(walk.turn) or self._overtaken(walk))
            found = [] if excused else [self._wrong(walk, event, frame)]
            self._drop(walk, resolved=event == RESOLVED)
            if event != COMPLETED or item_in(frame).get("status") == "completed":
                return found
            self._held.setdefault(walk.turn, []).extend(found)
            return []
        walk.state = after
        walk.frames.append(frame)
        if after == "resolved":
            self._last = walk
        if after not in APPROVAL.terminal:
            return []
        self._walks.remove(walk)
        return [Witness(request_subject(walk.question), tuple(walk.frames))]

    def _withdrew(
        self, walk: Walk, early: Frame, end: Frame, item: ItemView | None = None
    ) -> Violation:
        """Judge a request that was resolved without an answer, by how its item ended.

        If another request was resolved before, this may have been a second one for that.
        """
        self._walks.remove(walk)
        others = [one for one in self.questions(item) if one is not walk.question] if item else []
        done = item is not None and item_in(end).get("status") == "completed"
        approved = any(self.answered_decision(one) in APPROVING for one in others)
        certain = self._last is None or dig(early.params, "requestId") == walk.question.id
        level = None if done and certain and not approved else Level.SHOULD
        return self._wrong(walk, RESOLVED, early, end, state="asked", level=level)

    def _overtaken(self, walk: Walk) -> bool:
        """Return whether the answer to another request of the turn cancelled it."""
        cancel = self.cancelled(walk.turn)
        return cancel is not None and cancel is not self.conversation.answer_of(walk.question)

    def _drop(self, walk: Walk, *, resolved: bool = False) -> None:
        self._walks.remove(walk)
        if not resolved and APPROVAL.after(walk.state, COMPLETED) is None:
            self._untracked += 1

    def _wrong(
        self,
        walk: Walk,
        event: str,
        *frames: Frame,
        state: str = "",
        level: Level | None = None,
    ) -> Violation:
        again, state = walk is self._last and event == RESOLVED, state or walk.state
        expected = " or ".join(APPROVAL.allowed(state))
        if state == NOT_STARTED:
            expected = "item/started"
        about = f"item {question_item(walk.question)} of {walk.turn.subject}"
        return Violation(
            request_subject(walk.question),
            tuple(by_arrival({*walk.frames, *frames})),
            f"{expected or 'nothing more of it'}, since it is: {state} ({about})",
            f"{event} came {'again' if again else 'first'}",
            Level.SHOULD if again else level,
            clauses=("approval.resolved-once" if again else CLAUSES.get(event, ""),),
            places=(member(walk.question, "itemId").place,),
        )


def _is_open(walk: Walk) -> bool:
    """Return whether the request has neither been answered nor resolved."""
    return APPROVAL.after(walk.state, ANSWER) is not None and walk.early is None


def _state_of(item: ItemView | None) -> str:
    """The state of an item when approval for it is requested."""
    if item is None or not item.started:
        return NOT_STARTED
    done = any(came_before(item.started[-1], frame) for frame in item.completed)
    return "completed" if done else APPROVAL.initial


def _is_about(walk: Walk, item: ItemView) -> bool:
    return walk.turn is item.turn and question_item(walk.question) == item.id
