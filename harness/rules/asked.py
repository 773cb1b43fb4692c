"""What the rules on approvals ask of the view: who is asked, what was decided, what crossed it.

Here: names of the two approval requests and of decisions, and `ApprovalMonitor`, which knows what
else of ours may have ended a turn meanwhile. Not here: any rule.

A trace has our answer where it was recorded, which is before it was sent. So what of the server
stands before it was certainly written before it; what stands after it may have been, and is judged
as if it had not.
"""

from typing import Final

from harness.rules.base import Monitor, Outcomes, on_own, on_sent
from harness.trace.frame import Frame, Kind
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

# Requests that may end a thread's turn or unload it, beside turn/interrupt.
TAKING_AWAY: Final = (
    "thread/archive",
    "thread/unsubscribe",
    "thread/rollback",
    "thread/compact/start",
    "thread/resume",
)


class ApprovalMonitor(Monitor):
    """A monitor that knows which turns and threads were disturbed from our side."""

    def begin(self) -> None:
        """Set up what every such rule keeps; a rule with state of its own calls it too."""
        self._taken_away: set[str] = set()
        self._cancelled: dict[str, Frame] = {}
        self._looked_at = 0
        self._crowd = False

    @on_sent(*TAKING_AWAY)
    def _take_away(self, frame: Frame) -> Outcomes:
        self._taken_away.add(text(obj(frame.params).get("threadId")))
        return None

    @on_own
    def _cancel(self, frame: Frame) -> Outcomes:
        question = self.question_of(frame)
        if question is not None and self.decision(question) == "cancel":
            self._cancelled.setdefault(self.conversation.key_of(question), frame)
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
        """What we decided; "" without an answer, and for one that the book does not show."""
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

        So does our leaving: what becomes of an open question then the text does not say.
        """
        return (
            bool(turn.interrupts or turn.errors)
            or any(mark.kind == "closed" for mark in self.trace.marks)
            or turn.thread_id in self._taken_away
            or not self.alone()
        )

    def alone(self) -> bool:
        """Whether the trace has had this one connection: another client may answer for us."""
        frames = self.trace.frames
        while not self._crowd and self._looked_at < len(frames):
            self._crowd = frames[self._looked_at].connection != frames[0].connection
            self._looked_at += 1
        return not self._crowd


def elsewhere(conversation: Conversation, item_id: str, turn: TurnView) -> ItemView | None:
    """The item of that id in another turn, if this turn has none."""
    if item_id in turn.items:
        return None
    others = conversation.turns.values()
    return next((other.items[item_id] for other in others if item_id in other.items), None)


def question_item(question: Frame) -> str:
    """The item that a question names, "" where it names none."""
    return text(obj(question.params).get("itemId"))
