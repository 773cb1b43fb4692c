"""The conversation as a fault may know it: the frames so far, and what they show."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.errors import HarnessError
from harness.protocol.values import dig, obj, text
from harness.trace.frame import Frame, Kind, Origin
from harness.trace.marks import MarkBody
from harness.trace.trace import B, Mark, Trace, marks_of
from harness.trace.views import Conversation, ItemView, TurnView

COMMAND = "item/commandExecution/requestApproval"
FILE = "item/fileChange/requestApproval"
APPROVALS = (COMMAND, FILE)


class NotApplied(HarnessError):
    """A fault finds no place in a conversation; the text says what it looked for."""


@dataclass(slots=True, eq=False)
class Approval:
    """A question of the server about an item of a turn of ours, and what has followed it so far."""

    question: Frame
    turn: TurnView
    item: ItemView
    answer: Frame | None = None
    resolved: list[Frame] = field(default_factory=list[Frame])
    done: Frame | None = None

    @property
    def decision(self) -> str:
        """Return the decision, "" while there is no answer."""
        return text(dig(self.answer.result, "decision")) if self.answer is not None else ""

    def fits(self, decisions: Collection[str], methods: Collection[str] = APPROVALS) -> bool:
        """Return whether the question is of one of these methods, and the answer one of these
        words.

        Without words any answer fits, and none too.
        """
        asked = self.question.method in methods
        return asked and (not decisions or self.decision in decisions)


class FaultSite:
    """The conversation on one connection up to now.

    `marks` are those of a stored trace, all of them. They are None in a live stream, which has no
    marks: what only they could tell is then taken as given.
    """

    def __init__(self, marks: Sequence[Mark[MarkBody]] | None = None) -> None:
        self.marks = marks
        self.frames: list[Frame] = []
        self.conversation = Conversation()
        self.approvals: list[Approval] = []
        self._open: dict[int, Frame] = {}
        self._about: dict[int, list[Frame]] = {}

    @classmethod
    def of(cls, trace: Trace) -> "FaultSite":
        """The site at the end of a stored trace of one connection."""
        site = cls(trace.marks)
        for frame in trace.frames:
            site.feed(frame)
        return site

    def feed(self, frame: Frame) -> None:
        """Take the next frame in, of whichever direction."""
        self.frames.append(frame)
        self.conversation.feed(frame)
        if frame.kind is Kind.REQUEST and not frame.from_target:
            self._open[frame.seq] = frame
        elif frame.kind in (Kind.RESPONSE, Kind.ERROR):
            asked = self.conversation.request_of(frame)
            if asked is not None:
                self._open.pop(asked.seq, None)
        item = self.item_of(frame)
        if item is not None:
            self._about.setdefault(id(item), []).append(frame)
        self._follow_approvals(frame)

    def request_of(self, frame: Frame) -> Frame | None:
        """The request of ours that a frame of the target answers, None for any other frame.

        Requests that a scenario made wrong on purpose count as none.
        """
        if frame.origin is not Origin.TARGET or frame.kind not in (Kind.RESPONSE, Kind.ERROR):
            return None
        request = self.conversation.request_of(frame)
        return None if request is None or request.deliberate else request

    def asked(self, frame: Frame) -> dict[str, Any]:
        """The params of the request that a frame answers, empty where it answers none."""
        request = self.request_of(frame)
        return {} if request is None else obj(request.params)

    def unanswered(self, method: str) -> bool:
        """Return whether a request of ours of this method waits for its answer."""
        return any(request.method == method for request in self._open.values())

    def turn_of(self, frame: Frame) -> TurnView | None:
        """The turn that a frame is about."""
        return self.conversation.turn_of(frame)

    def item_of(self, frame: Frame) -> ItemView | None:
        """The item that a notification of the target is about, None for any other frame."""
        if frame.origin is not Origin.TARGET or frame.kind is not Kind.NOTIFICATION:
            return None
        return self.conversation.item_of(frame)

    def ours(self, turn: TurnView | None) -> bool | None:
        """Return whether we started a turn and it was announced.

        None while the answer may still come.
        """
        if turn is None:
            return False
        if turn.reply is not None:
            return bool(turn.started)
        return None if self.unanswered("turn/start") else False

    def our_thread(self, thread_id: str) -> bool | None:
        """Return whether we started a thread; None while the answer may still come."""
        thread = self.conversation.threads.get(thread_id)
        if thread is not None and thread.request is not None:
            return not thread.request.deliberate
        return None if self.unanswered("thread/start") else False

    def deltas(self, item: ItemView, method: str = "") -> list[Frame]:
        """The deltas of an item that have come and have a text, those of a method only if given."""
        return [
            frame
            for frame in self.about(item)
            if text(obj(frame.params).get("delta")) and method in ("", frame.method)
        ]

    def about(self, item: ItemView) -> list[Frame]:
        """Every notification of an item that has come."""
        return self._about.get(id(item), [])

    def later(self, frame: Frame) -> Iterator[Frame]:
        """Give the frames after a frame, in order."""
        place = len(self.frames)
        while place and self.frames[place - 1].seq > frame.seq:
            place -= 1
        return iter(self.frames[place:])

    def next_from_target(self, frame: Frame) -> Frame | None:
        """The next frame of the target, None while there is none."""
        return next((other for other in self.later(frame) if other.from_target), None)

    def next_about_its_item(self, frame: Frame) -> Frame | None:
        """The next frame of the target that names the item of a frame: told, or asked about it."""
        item = self.item_of(frame)
        for other in self.later(frame):
            asked = text(obj(other.params).get("itemId")) if other.kind is Kind.REQUEST else ""
            if item is not None and (self.item_of(other) is item or asked == item.id):
                return other
        return None

    def marks_of(self, body: type[B]) -> list[Mark[B]]:
        """The marks of one class, none in a live stream."""
        return marks_of(self.marks or (), body)

    def approval(self, where: Callable[[Approval], bool]) -> Approval | None:
        """The first approval that fits."""
        return next((one for one in self.approvals if where(one)), None)

    def _follow_approvals(self, frame: Frame) -> None:
        """Add a frame to the approvals that it begins, answers, resolves or ends."""
        if frame.from_target and frame.kind is Kind.REQUEST:
            turn = self.turn_of(frame)
            item = turn.items.get(text(obj(frame.params).get("itemId"))) if turn else None
            known = turn is not None and turn.reply is not None and item is not None
            if known and turn and item and frame.method in APPROVALS and len(item.started) == 1:
                self.approvals.append(Approval(frame, turn, item))
        elif frame.method == "serverRequest/resolved":
            waiting = [one for one in self.approvals if one.answer and not one.done]
            number = obj(frame.params).get("requestId")
            for one in [one for one in waiting if one.question.id == number] or waiting:
                one.resolved.append(frame)
        elif frame.kind is Kind.RESPONSE and not frame.from_target:
            for one in self.approvals:
                if one.answer is None and self.conversation.answer_of(one.question) is frame:
                    one.answer = frame
        elif frame.method == "item/completed":
            item = self.item_of(frame)
            for one in self.approvals:
                if one.item is item and one.answer is not None and one.done is None:
                    one.done = frame
