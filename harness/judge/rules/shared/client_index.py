"""Ends of turns, final items and approval requests, over all clients of a trace.

Ids of turns are unique only in their thread, and those of items only in their turn, so each is
keyed with its parents' ids. Messages without one of these ids are skipped.
"""

from dataclasses import dataclass, field
from typing import Final

from harness.judge.rules.shared.approval_queries import DISRUPTING, ITEM_TYPES
from harness.protocol.spec.book import Book
from harness.protocol.values import dig, obj, text
from harness.trace.correlation import Correlation
from harness.trace.frame import Frame, Kind
from harness.trace.marks import Leaving
from harness.trace.order import came_before, marked_before_next
from harness.trace.trace import Trace

# The ids of a thread, a turn and an item.
ItemName = tuple[str, str, str]
# Requests that may end a turn, or start another one.
_UNSETTLING: Final = frozenset({*DISRUPTING, "turn/interrupt", "turn/start"})


@dataclass(slots=True, eq=False)
class Question:
    """A request for approval to one client, and that client's first answer to it.

    `resolution` is the client's first serverRequest/resolved after the request; it may belong to
    another one.
    """

    frame: Frame
    answer: Frame | None = None
    resolution: Frame | None = None

    def decision(self, book: Book) -> str:
        """Return the client's decision, "" if its answer is missing or not valid."""
        answer = self.answer
        if answer is None or answer.kind is not Kind.RESPONSE or answer.deliberate:
            return ""
        if not book.is_valid_result(self.frame.method, answer.result):
            return ""
        return text(dig(answer.result, "decision"))

    @property
    def in_time(self) -> bool:
        """Return whether it was certainly answered before the server resolved it."""
        if self.answer is None:
            return False
        return self.resolution is None or came_before(self.answer, self.resolution)


@dataclass(slots=True)
class AllClients:
    """Index of the messages on all connections of a trace; reads each message once.

    `ends` lists the turn/completed of each turn, `finals` the item/completed and `questions` the
    approval requests of each item.
    """

    trace: Trace
    ends: dict[tuple[str, str], list[Frame]] = field(
        default_factory=dict[tuple[str, str], list[Frame]]
    )
    finals: dict[ItemName, list[Frame]] = field(default_factory=dict[ItemName, list[Frame]])
    questions: dict[ItemName, list[Question]] = field(
        default_factory=dict[ItemName, list[Question]]
    )
    _unsettling_requests: list[Frame] = field(default_factory=list[Frame])
    _errors: list[Frame] = field(default_factory=list[Frame])
    _questions_by_request: dict[Frame, Question] = field(default_factory=dict[Frame, Question])
    _answers: Correlation = field(default_factory=Correlation)
    _looked_at: int = 0
    _alone_until: int = 0

    def read_until(self, frame: Frame | None) -> None:
        """Read all messages up to a message, or to the end of the trace.

        Nothing is read while the trace has one connection: no rule needs it then.
        """
        frames = self.trace.frames
        while self._alone_until < len(frames):
            next_one = frames[self._alone_until]
            if frame is not None and came_before(frame, next_one):
                return
            if next_one.connection != frames[0].connection:
                break
            self._alone_until += 1
        else:
            return
        while self._looked_at < len(frames):
            next_one = frames[self._looked_at]
            if frame is not None and came_before(frame, next_one):
                return
            self._add_frame(next_one)
            self._looked_at += 1

    def _add_frame(self, frame: Frame) -> None:
        if frame.kind is Kind.NOTIFICATION and frame.from_target:
            self._add_notification(frame)
        elif frame.kind is Kind.REQUEST:
            self._answers.feed(frame)
            if not frame.from_target:
                if frame.method in _UNSETTLING:
                    self._unsettling_requests.append(frame)
            elif frame.method in ITEM_TYPES and (name := item_name_of(frame)) is not None:
                question = self._questions_by_request[frame] = Question(frame)
                self.questions.setdefault(name, []).append(question)
        elif frame.kind in (Kind.RESPONSE, Kind.ERROR) and not frame.from_target:
            request = self._answers.feed(frame)
            question = self._questions_by_request.get(request) if request is not None else None
            if question is not None and question.answer is None:
                question.answer = frame

    def _add_notification(self, frame: Frame) -> None:
        params = obj(frame.params)
        thread_id = text(params.get("threadId"))
        match frame.method:
            case "turn/completed":
                turn_id = text(dig(params, "turn", "id"))
                if thread_id and turn_id:
                    self.ends.setdefault((thread_id, turn_id), []).append(frame)
            case "item/completed":
                name = item_name_of(frame)
                if name is not None:
                    self.finals.setdefault(name, []).append(frame)
            case "serverRequest/resolved":
                for question in self._questions_by_request.values():
                    here = question.frame.connection == frame.connection
                    if here and question.resolution is None:
                        question.resolution = frame
            case "error":
                self._errors.append(frame)
            case _:
                pass

    def may_be_disturbed(self, name: ItemName, since: Frame) -> bool:
        """Return whether anything but an answer may have ended the item's work since a message.

        That is a request about the thread that may end or start a turn, an error in the turn, or a
        client that has left.
        """
        thread_id, turn_id, _ = name
        disruptions = (
            request
            for request in self._unsettling_requests
            if came_before(since, request)
            and text(obj(request.params).get("threadId")) in ("", thread_id)
        )
        failed = (
            error for error in self._errors if text(obj(error.params).get("turnId")) == turn_id
        )
        read_last = self.trace.frames[self._looked_at - 1]
        left = (
            mark for mark in self.trace.marks_of(Leaving) if marked_before_next(mark, read_last)
        )
        return any(disruptions) or any(failed) or any(left)


def item_name_of(frame: Frame) -> ItemName | None:
    """Return the ids of the item in a notification or approval request, None if one is missing."""
    params = obj(frame.params)
    item_id = text(params.get("itemId")) or text(dig(params, "item", "id"))
    names = (text(params.get("threadId")), text(params.get("turnId")), item_id)
    return names if all(names) else None
