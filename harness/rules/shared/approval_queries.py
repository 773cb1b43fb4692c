"""What the rules on approvals ask of the view: who is asked, what was decided, what crossed it.

Here: names of the two approval requests and of decisions, and `ApprovalMonitor`, which knows what
else of ours may have ended a turn meanwhile. Not here: any rule.

A trace has our answer where it was recorded, which is before it was sent. So what of the server
stands before it was certainly written before it; what stands after it may have been, and is judged
as if it had not.
"""

from typing import Final

from harness.judge.base import Monitor, Outcomes, on, on_answer, on_own, on_sent
from harness.spec.effects import methods_with
from harness.trace.frame import Frame, Kind
from harness.trace.marks import Closed
from harness.trace.order import came_before, earliest
from harness.trace.values import dig, obj, text
from harness.trace.views import Conversation, ItemView, TurnView

# Which type of item each approval request belongs to ("Server requests").
ITEM_TYPES: Final = {
    "item/commandExecution/requestApproval": "commandExecution",
    "item/fileChange/requestApproval": "fileChange",
}
APPROVALS: Final = tuple(ITEM_TYPES)
OPERATIONS: Final = frozenset(ITEM_TYPES.values())

# What "Approval sequence" says of each decision: it approves, or it denies. A rule of the network
# policy is neither by its words.
APPROVING: Final = frozenset({"accept", "acceptForSession", "acceptWithExecpolicyAmendment"})
DENYING: Final = frozenset({"decline", "cancel"})
# Those that speak of later operations too.
REMEMBERED: Final = ("acceptForSession", "acceptWithExecpolicyAmendment")

# And those after which fewer questions may be asked, whatever they do besides.
LASTING: Final = frozenset({*REMEMBERED, "applyNetworkPolicyAmendment"})

# Requests that may end a thread's turn or unload it, beside turn/interrupt.
TAKING_AWAY: Final = methods_with("may-end-turn")
# Those of them whose effect is there when they are answered.
_OVER_WHEN_ANSWERED: Final = methods_with("done-when-answered")


class ApprovalMonitor(Monitor):
    """A monitor that knows which turns and threads were disturbed from our side."""

    def begin(self) -> None:
        """Set up what every such rule keeps; a rule with state of its own calls it too."""
        self._takings: dict[str, list[Frame]] = {}
        self._taken_when: dict[Frame, Frame] = {}
        self._met: dict[TurnView, Frame] = {}
        self._cancelled: dict[str, Frame] = {}
        # Questions that are open, how many answered ones are to be resolved yet, and those that
        # the server may have resolved by itself: an answer to them came too late.
        self._unanswered: list[Frame] = []
        self._due = 0
        self._withdrawn: set[Frame] = set()
        self._looked_at = 0
        self._crowd = False

    @on_sent(*TAKING_AWAY)
    def _take_away(self, frame: Frame) -> Outcomes:
        self._takings.setdefault(text(obj(frame.params).get("threadId")), []).append(frame)
        return None

    @on_answer(*TAKING_AWAY)
    def _took_away(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is not None:
            self._taken_when.setdefault(request, frame)
        return None

    @on_sent("turn/start")
    def _meet(self, frame: Frame) -> Outcomes:
        thread = self.conversation.threads.get(text(obj(frame.params).get("threadId")))
        for turn in thread.turns.values() if thread is not None else ():
            if not turn.completed:
                self._met.setdefault(turn, frame)
        return None

    @on(*APPROVALS)
    def _ask(self, frame: Frame) -> Outcomes:
        if frame.kind is Kind.REQUEST:
            self._unanswered.append(frame)
        return None

    @on_own
    def _answer(self, frame: Frame) -> Outcomes:
        question = self.question_of(frame)
        if question is None:
            return None
        if any(one is question for one in self._unanswered):
            self._unanswered = [one for one in self._unanswered if one is not question]
            self._due += question not in self._withdrawn
        if self.decision(question) == "cancel":
            self._cancelled.setdefault(self.conversation.key_of(question), frame)
        return None

    @on("serverRequest/resolved")
    def _resolve(self, frame: Frame) -> Outcomes:
        if self._due:
            self._due -= 1
        else:
            self._withdrawn.update(self._unanswered)
        return None

    def question_of(self, frame: Frame) -> Frame | None:
        """The approval request that an own frame answers as the first, else None."""
        if frame.kind not in (Kind.RESPONSE, Kind.ERROR):
            return None
        question = self.conversation.request_of(frame)
        if question is None or question.method not in ITEM_TYPES:
            return None
        return question if self.conversation.answer_of(question) is frame else None

    def decision(self, question: Frame) -> str:
        """What we decided while we were asked, "" where the book does not show such an answer.

        It is "" too where the server may have resolved the question by itself before we answered.
        """
        return "" if question in self._withdrawn else self.word(question)

    def word(self, question: Frame) -> str:
        """What we answered, in time or not; "" without an answer that the book shows."""
        answer = self.conversation.answer_of(question)
        if answer is None or answer.kind is not Kind.RESPONSE or answer.deliberate:
            return ""
        if not self.book.is_valid_result(question.method, answer.result):
            return ""
        return text(dig(answer.result, "decision"))

    def questions(self, item: ItemView) -> list[Frame]:
        """The approval requests about an item."""
        about = self.conversation.questions_of(item.turn, item.id)
        return [question for question in about if question.method in ITEM_TYPES]

    def decisions(self, item: ItemView) -> set[str]:
        """What was decided about an item; holds "" where one question has no such answer."""
        return {self.decision(question) for question in self.questions(item)}

    def last_exchange(self, item: ItemView) -> tuple[Frame, ...]:
        """The last question about an item and our answer to it."""
        question = self.questions(item)[-1]
        answer = self.conversation.answer_of(question)
        return (question,) if answer is None else (question, answer)

    def disturbed(self, turn: TurnView) -> bool:
        """Whether something beside the answers may have ended the turn, or taken it from us.

        So does our leaving: what becomes of an open question then the text does not say. And so
        does a further turn/start on its thread.
        """
        return (
            bool(turn.interrupts or turn.errors)
            or bool(self.trace.marks_of(Closed))
            or turn in self._met
            or bool(self.takings(turn))
            or not self.alone()
        )

    def may_be_cut(self, turn: TurnView) -> bool:
        """Whether something may have interrupted the turn; another client may always have."""
        return not self.alone() or self.first_cut(turn) is not None

    def first_cut(self, turn: TurnView) -> Frame | None:
        """The first message of this client that may have interrupted the turn."""
        causes = [*turn.interrupts, *self.takings(turn)]
        causes += [found for found in (self._met.get(turn), self.cancelled(turn)) if found]
        return earliest(causes)

    def cancelled(self, turn: TurnView) -> Frame | None:
        """Our first answer by cancel to a question of the turn."""
        return self._cancelled.get(turn.key)

    def taken_since(self, thread_id: str, frame: Frame) -> bool:
        """Whether a request that may unload the thread was sent after a frame."""
        return any(came_before(frame, taking) for taking in self._takings.get(thread_id, ()))

    def takings(self, turn: TurnView) -> list[Frame]:
        """The requests that may have ended the turn or unloaded its thread.

        A resume or a rollback that was answered before the turn was asked for has done neither.
        """
        return [
            taking
            for taking in self._takings.get(turn.thread_id, ())
            if taking.method not in _OVER_WHEN_ANSWERED or not self._was_settled(taking, turn)
        ]

    def _was_settled(self, taking: Frame, turn: TurnView) -> bool:
        answer = self._taken_when.get(taking)
        if answer is None or turn.request is None:
            return False
        return self.trace.before(answer, turn.request) is True

    def alone(self) -> bool:
        """Whether the trace has had this one connection: another client may answer for us."""
        frames = self.trace.frames
        while not self._crowd and self._looked_at < len(frames):
            self._crowd = frames[self._looked_at].connection != frames[0].connection
            self._looked_at += 1
        return not self._crowd


def asks_for_network(question: Frame) -> bool:
    """Whether a request is for the network that a command wants, by a member that names it."""
    return any(said and "network" in name.lower() for name, said in obj(question.params).items())


def elsewhere(conversation: Conversation, item_id: str, turn: TurnView) -> ItemView | None:
    """The item of that id in another turn, if this turn has none."""
    if item_id in turn.items:
        return None
    others = conversation.turns.values()
    return next((other.items[item_id] for other in others if item_id in other.items), None)


def question_item(question: Frame) -> str:
    """The item that a question names, "" where it names none."""
    return text(obj(question.params).get("itemId"))
