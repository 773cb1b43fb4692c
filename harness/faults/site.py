"""The conversation so far, as far as a fault may know it: frames and their view."""

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
    """An error for a fault that finds no place in a conversation; the text says what is missing."""


@dataclass(slots=True, eq=False)
class Approval:
    """An approval request about an item of a turn that the client started, and later frames."""

    question: Frame
    turn: TurnView
    item: ItemView
    answer: Frame | None = None
    resolutions: list[Frame] = field(default_factory=list[Frame])
    completion: Frame | None = None

    @property
    def decision(self) -> str:
        """The decision in the answer, "" while there is none."""
        return text(dig(self.answer.result, "decision")) if self.answer is not None else ""

    def fits(self, decisions: Collection[str], methods: Collection[str] = APPROVALS) -> bool:
        """Return whether the request has one of these methods, and the answer one of `decisions`.

        If `decisions` is empty, any answer fits, also a missing one.
        """
        method_fits = self.question.method in methods
        return method_fits and (not decisions or self.decision in decisions)


class FaultSite:
    """The conversation on one connection up to now.

    `marks` are all marks of a stored trace. They are None in a live stream, which has no marks:
    conditions on marks then count as met.
    """

    def __init__(self, marks: Sequence[Mark[MarkBody]] | None = None) -> None:
        self.marks = marks
        self.frames: list[Frame] = []
        self.conversation = Conversation()
        self.approvals: list[Approval] = []
        self._open: dict[int, Frame] = {}
        self._about: dict[int, list[Frame]] = {}

    @classmethod
    def of_trace(cls, trace: Trace) -> "FaultSite":
        """Return the site at the end of a stored trace of one connection."""
        site = cls(trace.marks)
        for frame in trace.frames:
            site.feed(frame)
        return site

    def feed(self, frame: Frame) -> None:
        """Add the next frame, of either direction."""
        self.frames.append(frame)
        self.conversation.feed(frame)
        if frame.kind is Kind.REQUEST and not frame.from_target:
            self._open[frame.seq] = frame
        elif frame.kind in (Kind.RESPONSE, Kind.ERROR):
            request = self.conversation.request_of(frame)
            if request is not None:
                self._open.pop(request.seq, None)
        item = self.item_of(frame)
        if item is not None:
            self._about.setdefault(id(item), []).append(frame)
        self._follow_approvals(frame)

    def request_of(self, frame: Frame) -> Frame | None:
        """Return the client's request that a frame of the target answers, else None.

        Deliberately malformed requests do not count.
        """
        if frame.origin is not Origin.TARGET or frame.kind not in (Kind.RESPONSE, Kind.ERROR):
            return None
        request = self.conversation.request_of(frame)
        return None if request is None or request.deliberate else request

    def params_of(self, frame: Frame) -> dict[str, Any]:
        """Return the params of the client's request that a frame answers, {} if it answers none."""
        request = self.request_of(frame)
        return {} if request is None else obj(request.params)

    def has_open_request(self, method: str) -> bool:
        """Return whether a request of the client with this method waits for its answer."""
        return any(request.method == method for request in self._open.values())

    def turn_of(self, frame: Frame) -> TurnView | None:
        """Return the turn that a frame is about, None if unknown."""
        return self.conversation.turn_of(frame)

    def item_of(self, frame: Frame) -> ItemView | None:
        """Return the item that a notification of the target is about, None for any other frame."""
        if frame.origin is not Origin.TARGET or frame.kind is not Kind.NOTIFICATION:
            return None
        return self.conversation.item_of(frame)

    def is_our_turn(self, turn: TurnView | None) -> bool | None:
        """Return whether the client started a turn and it was announced.

        Return None while the answer to its turn/start may still come.
        """
        if turn is None:
            return False
        if turn.reply is not None:
            return bool(turn.starts)
        return None if self.has_open_request("turn/start") else False

    def is_our_thread(self, thread_id: str) -> bool | None:
        """Return whether the client started a thread; None while the answer may still come."""
        thread = self.conversation.threads.get(thread_id)
        if thread is not None and thread.request is not None:
            return not thread.request.deliberate
        return None if self.has_open_request("thread/start") else False

    def deltas(self, item: ItemView, method: str = "") -> list[Frame]:
        """Return the non-empty deltas of an item so far, of one method if given."""
        return [
            frame
            for frame in self.notifications_of(item)
            if text(obj(frame.params).get("delta")) and method in ("", frame.method)
        ]

    def notifications_of(self, item: ItemView) -> list[Frame]:
        """Return the notifications of an item so far."""
        return self._about.get(id(item), [])

    def frames_after(self, frame: Frame) -> Iterator[Frame]:
        """Return the frames after a frame, in order."""
        place = len(self.frames)
        while place and self.frames[place - 1].seq > frame.seq:
            place -= 1
        return iter(self.frames[place:])

    def next_from_target(self, frame: Frame) -> Frame | None:
        """Return the next frame of the target, None while there is none."""
        return next((other for other in self.frames_after(frame) if other.from_target), None)

    def next_frame_of_item(self, frame: Frame) -> Frame | None:
        """Return the next notification or request about the item of a frame, None if none came."""
        item = self.item_of(frame)
        for other in self.frames_after(frame):
            asked_item = text(obj(other.params).get("itemId")) if other.kind is Kind.REQUEST else ""
            if item is not None and (self.item_of(other) is item or asked_item == item.id):
                return other
        return None

    def marks_of(self, body: type[B]) -> list[Mark[B]]:
        """Return the marks of one class, none in a live stream."""
        return marks_of(self.marks or (), body)

    def find_approval(self, matches: Callable[[Approval], bool]) -> Approval | None:
        """Return the first approval that matches, None if there is none."""
        return next((approval for approval in self.approvals if matches(approval)), None)

    def _follow_approvals(self, frame: Frame) -> None:
        """Begin an approval with a frame, or add it to those that it answers, resolves or ends."""
        if frame.from_target and frame.kind is Kind.REQUEST:
            turn = self.turn_of(frame)
            item = turn.items.get(text(obj(frame.params).get("itemId"))) if turn else None
            is_known = turn is not None and turn.reply is not None and item is not None
            if is_known and turn and item and frame.method in APPROVALS and len(item.starts) == 1:
                self.approvals.append(Approval(frame, turn, item))
        elif frame.method == "serverRequest/resolved":
            waiting = [
                approval
                for approval in self.approvals
                if approval.answer and not approval.completion
            ]
            number = obj(frame.params).get("requestId")
            for approval in [
                approval for approval in waiting if approval.question.id == number
            ] or waiting:
                approval.resolutions.append(frame)
        elif frame.kind is Kind.RESPONSE and not frame.from_target:
            for approval in self.approvals:
                if (
                    approval.answer is None
                    and self.conversation.answer_of(approval.question) is frame
                ):
                    approval.answer = frame
        elif frame.method == "item/completed":
            item = self.item_of(frame)
            for approval in self.approvals:
                if approval.item is item and approval.answer and not approval.completion:
                    approval.completion = frame
