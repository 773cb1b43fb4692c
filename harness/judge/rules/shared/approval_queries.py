"""Approval requests, the client's decisions, and other events that may have ended a turn.

The client's answer is recorded before it is sent. So every message of the server that is recorded
earlier was written before the answer arrived. A message that is recorded later may also have been
written before; the rules treat it as written after the answer.
"""

from typing import Final

from harness.judge.base import Monitor, Outcomes, on, on_answer, on_harness_message, on_sent
from harness.protocol.spec.effects import methods_with
from harness.protocol.values import dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.marks import ServerEnded
from harness.trace.order import came_before, earliest, marked_before
from harness.trace.views import Conversation, ItemView, TurnView

# The item type of each approval request ("Server requests").
ITEM_TYPES: Final = {
    "item/commandExecution/requestApproval": "commandExecution",
    "item/fileChange/requestApproval": "fileChange",
}
APPROVALS: Final = tuple(ITEM_TYPES)
OPERATIONS: Final = frozenset(ITEM_TYPES.values())

# Decisions that approve or deny, by "Approval sequence", where a rule for the network policy does
# neither.
APPROVING: Final = frozenset({"accept", "acceptForSession", "acceptWithExecpolicyAmendment"})
DENYING: Final = frozenset({"decline", "cancel"})
# Decisions that also hold for later operations.
REMEMBERED: Final = ("acceptForSession", "acceptWithExecpolicyAmendment")

# Decisions after which fewer approvals may be requested.
LASTING: Final = frozenset({*REMEMBERED, "applyNetworkPolicyAmendment"})

# Requests that may end a thread's turn or unload it, besides turn/interrupt.
DISRUPTING: Final = methods_with("may-end-turn")
# Disrupting requests whose effect is complete when they are answered.
_OVER_WHEN_ANSWERED: Final = methods_with("done-when-answered")


class ApprovalMonitor(Monitor):
    """Base of rules on approvals; tracks requests, answers, and other possible ends of a turn."""

    def begin(self) -> None:
        """Set up the shared state; a rule with state of its own must call this too."""
        self._disruptions: dict[str, list[Frame]] = {}
        self._disruption_answers: dict[Frame, Frame] = {}
        self._second_starts: dict[TurnView, Frame] = {}
        self._cancelled: dict[str, Frame] = {}
        # Open approval requests; the number of answered ones that are not resolved yet; and those
        # that the server may have resolved by itself, so that an answer came too late.
        self._unanswered: list[Frame] = []
        self._due = 0
        self._withdrawn: set[Frame] = set()
        self._looked_at = self._marks_seen = 0
        self._clients: set[str] = set()
        self._lasting_clients: set[str] = set()
        self._several_clients = False

    @on_sent(*DISRUPTING)
    def _on_disrupting_sent(self, frame: Frame) -> Outcomes:
        self._disruptions.setdefault(text(obj(frame.params).get("threadId")), []).append(frame)
        return None

    @on_answer(*DISRUPTING)
    def _on_disrupting_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is not None:
            self._disruption_answers.setdefault(request, frame)
        return None

    @on_sent("turn/start")
    def _on_turn_start_sent(self, frame: Frame) -> Outcomes:
        thread = self.conversation.threads.get(text(obj(frame.params).get("threadId")))
        for turn in thread.turns.values() if thread is not None else ():
            if not turn.completions:
                self._second_starts.setdefault(turn, frame)
        return None

    @on(*APPROVALS)
    def _on_approval(self, frame: Frame) -> Outcomes:
        if frame.kind is Kind.REQUEST:
            self._unanswered.append(frame)
        return None

    @on_harness_message
    def _on_client_answer(self, frame: Frame) -> Outcomes:
        question = self.question_of(frame)
        if question is None:
            return None
        if any(question_sent is question for question_sent in self._unanswered):
            self._unanswered = [
                open_question for open_question in self._unanswered if open_question is not question
            ]
            self._due += question not in self._withdrawn
        if self.decision(question) == "cancel":
            self._cancelled.setdefault(self.conversation.key_of(question), frame)
        return None

    @on("serverRequest/resolved")
    def _on_server_request_resolved(self, frame: Frame) -> Outcomes:
        if self._due:
            self._due -= 1
        else:
            self._withdrawn.update(self._unanswered)
        return None

    def question_of(self, frame: Frame) -> Frame | None:
        """Return the approval request to which a frame is the first answer, None if it is none."""
        if frame.kind not in (Kind.RESPONSE, Kind.ERROR):
            return None
        question = self.conversation.request_of(frame)
        if question is None or question.method not in ITEM_TYPES:
            return None
        return question if self.conversation.answer_of(question) is frame else None

    def decision(self, question: Frame) -> str:
        """Return the client's decision, "" if the answer is not a valid one.

        Also "" if the server may have resolved the request before the client answered.
        """
        return "" if question in self._withdrawn else self.answered_decision(question)

    def answered_decision(self, question: Frame) -> str:
        """Return the decision in the client's answer, even a late one; "" if it is invalid."""
        answer = self.conversation.answer_of(question)
        if answer is None or answer.kind is not Kind.RESPONSE or answer.deliberate:
            return ""
        if not self.book.is_valid_result(question.method, answer.result):
            return ""
        return text(dig(answer.result, "decision"))

    def questions(self, item: ItemView) -> list[Frame]:
        """Return the approval requests about an item."""
        questions = self.conversation.questions_of(item.turn, item.id)
        return [question for question in questions if question.method in ITEM_TYPES]

    def decisions(self, item: ItemView) -> set[str]:
        """Return the decisions about an item; they include "" if a request has no valid answer."""
        return {self.decision(question) for question in self.questions(item)}

    def last_exchange(self, item: ItemView) -> tuple[Frame, ...]:
        """Return an item's last approval request, and its answer if any; the item must have one."""
        question = self.questions(item)[-1]
        answer = self.conversation.answer_of(question)
        return (question,) if answer is None else (question, answer)

    def may_be_disturbed(self, turn: TurnView) -> bool:
        """Return whether anything but the decisions may have ended the turn or hidden its end.

        For example, the client sent another turn/start, or unsubscribed: the specification does not
        define the effect of that on an open approval.
        """
        return (
            bool(turn.interrupts or turn.errors)
            or self.owed.has_lost_client
            or turn in self._second_starts
            or bool(self.disruptions(turn))
            or not self.has_one_client()
        )

    def may_be_interrupted(self, turn: TurnView) -> bool:
        """Return whether a message may have interrupted the turn; another client always may."""
        return not self.has_one_client() or self.first_interruption(turn) is not None

    def first_interruption(self, turn: TurnView) -> Frame | None:
        """Return this client's first message that may have interrupted the turn, None for none."""
        causes = [*turn.interrupts, *self.disruptions(turn)]
        causes += [
            cause
            for cause in (self._second_starts.get(turn), self.cancelling_answer(turn))
            if cause
        ]
        return earliest(causes)

    def cancelling_answer(self, turn: TurnView) -> Frame | None:
        """Return the client's first answer that cancelled the turn, None if none did."""
        return self._cancelled.get(turn.key)

    def was_disrupted_since(self, thread_id: str, frame: Frame) -> bool:
        """Return whether a request that may end a turn of the thread was sent after a frame."""
        return any(came_before(frame, request) for request in self._disruptions.get(thread_id, ()))

    def disruptions(self, turn: TurnView) -> list[Frame]:
        """Return the requests that may have ended the turn or unloaded its thread.

        A resume or rollback that was answered before the turn/start was sent does not count.
        """
        return [
            request
            for request in self._disruptions.get(turn.thread_id, ())
            if request.method not in _OVER_WHEN_ANSWERED or not self._was_settled(request, turn)
        ]

    def _was_settled(self, request: Frame, turn: TurnView) -> bool:
        answer = self._disruption_answers.get(request)
        if answer is None or turn.request is None:
            return False
        return self.trace.before(answer, turn.request) is True

    def has_one_client(self) -> bool:
        """Return whether no other client can have answered approvals, or allowed more, by now.

        The clients of an earlier process of the server count only if one gave a lasting answer.
        """
        frames, marks = self.trace.frames, self.trace.marks
        while not self._several_clients and self._looked_at < len(frames):
            frame = frames[self._looked_at]
            while self._marks_seen < len(marks) and marked_before(marks[self._marks_seen], frame):
                if isinstance(marks[self._marks_seen].body, ServerEnded):
                    self._clients.clear()
                self._marks_seen += 1
            is_answer = frame.kind is Kind.RESPONSE and not frame.from_target
            if is_answer and text(dig(frame.result, "decision")) in LASTING:
                self._lasting_clients.add(frame.connection)
            self._clients.add(frame.connection)
            others = self._lasting_clients - {frame.connection}
            self._several_clients = len(self._clients) > 1 or bool(others)
            self._looked_at += 1
        return not self._several_clients


def asks_for_network(question: Frame) -> bool:
    """Return whether an approval is about network access: some member's name contains "network"."""
    return any(value and "network" in name.lower() for name, value in obj(question.params).items())


def item_of_another_turn(
    conversation: Conversation, item_id: str, turn: TurnView
) -> ItemView | None:
    """Return the item with this id in another turn; None if `turn` has one too, or no turn has."""
    if item_id in turn.items:
        return None
    other_turns = conversation.turns.values()
    return next((other.items[item_id] for other in other_turns if item_id in other.items), None)


def question_item(question: Frame) -> str:
    """Return the item id of an approval request, "" if it has none."""
    return text(obj(question.params).get("itemId"))
