"""Rules on the approval sequence: what is asked, about which item, and in which order.

Here: the walk through the machine of the book, and what a request names. Not here: what comes of a
decision (decisions), what the policy wants asked (policies), the form of the request
(server_requests).
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from dataclasses import dataclass, field

from harness.rules.asked import (
    APPROVALS,
    ITEM_TYPES,
    ApprovalMonitor,
    elsewhere,
    question_item,
)
from harness.rules.base import Outcome, Outcomes, Violation, Witness, on, on_kind, on_own, rule
from harness.rules.subjects import began_here, item_in, never_came, request_subject
from harness.rules.telling import member, wrong
from harness.rules.verdict import Level
from harness.spec.machines import APPROVAL
from harness.trace.difference import literal
from harness.trace.frame import Frame, Kind
from harness.trace.values import obj, text
from harness.trace.views import ItemView, TurnView

ASK, ANSWER = "server request", "client answer"
RESOLVED, COMPLETED = "serverRequest/resolved", "item/completed"
# Where an item stands that the machine has no state for: it has not been started.
NOT_STARTED = "not started"
# The requirement that an event out of its place breaks, and the level where it is not MUST.
CLAUSES = {
    ASK: "approval.item-first",
    RESOLVED: "approval.resolved",
    COMPLETED: "approval.completed",
}


@dataclass(slots=True, eq=False)
class Walk:
    """Where one question stands in the machine, and the frames that brought it there."""

    question: Frame
    turn: TurnView
    state: str
    frames: list[Frame] = field(default_factory=list[Frame])


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
    not shown, so it counts for whichever question it fits. Left open: questions of turns whose
    beginning this client did not see, that were answered by an error or a decision that the text
    does not have, or whose turn was interrupted (by cancel as the answer to another of its
    questions, too), failed, or taken away meanwhile; and whatever another client may have answered.
    """

    def begin(self) -> None:
        super().begin()
        self._walks: list[Walk] = []
        self._last: Walk | None = None
        # Notifications that fit several questions, until it shows which one they were of.
        self._loose: list[Frame] = []
        # Questions that are not walked and may yet be resolved.
        self._unwalked = 0

    @on_kind(Kind.REQUEST)
    def asked(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        # Whose answer it will be nobody can say then (server-request.id-unique).
        confused = [walk for walk in self._walks if walk.question.id == frame.id]
        for walk in confused:
            self._drop(walk)
        if (
            confused
            or frame.method not in ITEM_TYPES
            or turn is None
            or turn.completed
            or not question_item(frame)
            or not began_here(self.conversation, turn)
            or elsewhere(self.conversation, question_item(frame), turn)
        ):
            self._unwalked += 1
            return None
        item = turn.items.get(question_item(frame))
        walk = Walk(frame, turn, _state_of(item))
        if item is not None and item.started:
            walk.frames.append(item.started[-1])
        self._walks.append(walk)
        return self._step(walk, ASK, frame)

    @on_own
    def answered(self, frame: Frame) -> Outcomes:
        question = self.question_of(frame)
        walk = next((walk for walk in self._walks if walk.question is question), None)
        if walk is None:
            return None
        if not self.decision(walk.question):
            self._drop(walk)
            return None
        return self._step(walk, ANSWER, frame)

    @on("serverRequest/resolved")
    def resolved(self, frame: Frame) -> Outcomes:
        fitting = [walk for walk in self._walks if APPROVAL.after(walk.state, RESOLVED)]
        if len(fitting) == 1 and not self._unwalked:
            return self._step(fitting[0], RESOLVED, frame)
        if fitting:
            self._loose.append(frame)
        elif self._unwalked:
            self._unwalked -= 1
        elif self._walks and not any(self.disturbed(walk.turn) for walk in self._walks):
            walk = self._last if self._last in self._walks else self._walks[0]
            return self._step(walk, RESOLVED, frame)
        elif not self._walks and self._last is not None and not self.disturbed(self._last.turn):
            return [self._wrong(self._last, RESOLVED, frame)]
        return None

    @on("item/completed")
    def completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None:
            return None
        outcomes: list[Outcome] = []
        for walk in [walk for walk in self._walks if _is_about(walk, item)]:
            if self._loose and APPROVAL.after(walk.state, RESOLVED):
                outcomes += self._step(walk, RESOLVED, self._loose.pop(0)) or ()
            outcomes += self._step(walk, COMPLETED, frame) or ()
        return outcomes

    @on("turn/completed")
    def ended(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        for walk in [walk for walk in self._walks if walk.turn is turn]:
            # Of what becomes of an open question then the text says nothing.
            if walk.turn.status != "completed" or APPROVAL.after(walk.state, ANSWER):
                self._drop(walk)
        return None

    def finish(self) -> Outcomes:
        for walk in self._walks:
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
            outcomes = [] if excused else [self._wrong(walk, event, frame)]
            self._drop(walk, resolved=event == RESOLVED)
            return outcomes
        walk.state = after
        walk.frames.append(frame)
        if after == "resolved":
            self._last = walk
        if after not in APPROVAL.terminal:
            return []
        self._walks.remove(walk)
        return [Witness(request_subject(walk.question), tuple(walk.frames))]

    def _overtaken(self, walk: Walk) -> bool:
        """Whether the turn was cancelled by the answer to another of its questions."""
        cancel = self._cancelled.get(walk.turn.key)
        return cancel is not None and cancel is not self.conversation.answer_of(walk.question)

    def _drop(self, walk: Walk, *, resolved: bool = False) -> None:
        self._walks.remove(walk)
        if not resolved and APPROVAL.after(walk.state, COMPLETED) is None:
            self._unwalked += 1

    def _wrong(self, walk: Walk, event: str, frame: Frame) -> Violation:
        again = walk is self._last and event == RESOLVED
        expected = " or ".join(APPROVAL.allowed(walk.state))
        if walk.state == NOT_STARTED:
            expected = "item/started"
        about = f"item {question_item(walk.question)} of {walk.turn.subject}"
        return Violation(
            request_subject(walk.question),
            tuple(dict.fromkeys((*walk.frames, frame))),
            f"{expected or 'nothing more of it'}, since it is: {walk.state} ({about})",
            f"{event} came {'again' if again else 'first'}",
            Level.SHOULD if again else None,
            clauses=("approval.resolved-once" if again else CLAUSES.get(event, ""),),
            places=(member(walk.question, "itemId").place,),
        )


def _state_of(item: ItemView | None) -> str:
    """Where an item stands when the client is asked about it."""
    if item is None or not item.started:
        return NOT_STARTED
    done = any(frame.seq > item.started[-1].seq for frame in item.completed)
    return "completed" if done else APPROVAL.initial


def _is_about(walk: Walk, item: ItemView) -> bool:
    return walk.turn is item.turn and question_item(walk.question) == item.id


@rule(
    "approval.names-item",
    title="An approval request names thread, turn and item",
    level=Level.MUST,
    needs=("command-approval",),
)
class NamesItem(ApprovalMonitor):
    """Judges that the three ids of an approval request belong together.

    The turn must be one of that thread, and the item not one of another turn. Whether it has been
    started is for approval.order. Left open: turns whose beginning this client did not see, and
    ids that are missing or no strings (shapes).
    """

    @on(*APPROVALS)
    def asked(self, frame: Frame) -> Outcomes:
        named = [text(obj(frame.params).get(key)) for key in ("threadId", "turnId", "itemId")]
        thread = self.conversation.threads.get(named[0])
        turn = self.conversation.turn_of(frame)
        if frame.kind is not Kind.REQUEST or not all(named):
            return None
        if turn is None:
            # Of a thread that was started here every turn has been heard of.
            if thread is None or thread.reply is None:
                return None
            return self._bad(frame, "turnId", f"the id of a turn of {thread.subject}", "threadId")
        if not began_here(self.conversation, turn):
            return None
        if turn.thread_id != named[0]:
            expected = f"{literal(turn.thread_id)}, the thread of {turn.subject}"
            return self._bad(frame, "threadId", expected, "turnId")
        if named[2] in turn.items:
            return [Witness(request_subject(frame), (frame,))]
        other = elsewhere(self.conversation, named[2], turn)
        if other is None:
            return None
        expected = f"the id of an item of {turn.subject}, and this is {other.subject}"
        return self._bad(frame, "itemId", expected, "turnId")

    def _bad(self, frame: Frame, key: str, expected: str, beside: str) -> list[Violation]:
        also = (member(frame, beside),)
        return [wrong(request_subject(frame), (frame,), member(frame, key), expected, also=also)]


@rule(
    "approval.request-of-type",
    title="The request for approval belongs to the type of its item",
    level=Level.MUST,
    needs=("command-approval",),
)
class RequestOfType(ApprovalMonitor):
    """Judges, when an item that was asked about is completed, that the right request was used.

    Commands have one server request and file changes another. Left open: items that never end.
    """

    @on("item/completed")
    def completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or not item.type or len(item.completed) > 1:
            return
        for question in self.questions(item):
            subject, frames = request_subject(question), (question, frame)
            if ITEM_TYPES[question.method] == item.type:
                yield Witness(subject, frames)
            else:
                expected = f"an item of type {ITEM_TYPES[question.method]}"
                asked = f"{expected}, which {question.method} asks about"
                yield wrong(subject, frames, member(frame, "item", "type"), asked)


@rule(
    "approval.final-item",
    title="An item that was asked about ends as completed, failed or declined",
    level=Level.MUST,
    needs=("command-approval",),
)
class FinalItem(ApprovalMonitor):
    """Judges the status in the item/completed of an item that was asked about.

    The three words stand in the text for file changes. For commands it says "the final item", and
    that one still in progress is not final follows: SHOULD. Left open: words that no item has
    (shapes).
    """

    @on("item/completed")
    def completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or not self.questions(item):
            return None
        status = text(item_in(frame).get("status"))
        if status in ("completed", "failed", "declined"):
            return [Witness(item.subject, (frame,))]
        is_file = item.type == "fileChange"
        expected = "one of completed, failed, declined, since it was asked about"
        clause = "approval.file-final-status" if is_file else "approval.completed"
        level = None if is_file else Level.SHOULD
        where = member(frame, "item", "status")
        return [wrong(item.subject, (frame,), where, expected, level=level, clauses=(clause,))]
