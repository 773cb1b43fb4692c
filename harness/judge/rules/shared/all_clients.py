"""News to all clients of a trace: ends of turns, final items, questions.

Ids of turns need only be unique in their thread, and those of items in their turn, so each is named
with what it belongs to. Messages that lack one of these names are left out.
"""

from dataclasses import dataclass, field
from typing import Final

from harness.judge.rules.shared.approval_queries import DISRUPTING, ITEM_TYPES
from harness.protocol.spec.book import Book
from harness.protocol.values import dig, obj, text
from harness.trace.correlation import Correlation
from harness.trace.frame import Frame, Kind
from harness.trace.marks import Closed
from harness.trace.order import came_before
from harness.trace.trace import Trace

# The thread, the turn, and the item.
ItemName = tuple[str, str, str]
# Requests that may end a turn, or bring another into it.
_UNSETTLING: Final = frozenset({*DISRUPTING, "turn/interrupt", "turn/start"})


@dataclass(slots=True, eq=False)
class Question:
    """A request for approval to one client, and that client's first answer to it.

    `settled` is the first serverRequest/resolved that this client got since it was asked, for
    whichever question that was.
    """

    frame: Frame
    answer: Frame | None = None
    settled: Frame | None = None

    def decision(self, book: Book) -> str:
        """Return the decision; "" if there is none, or none that the text has."""
        answer = self.answer
        if answer is None or answer.kind is not Kind.RESPONSE or answer.deliberate:
            return ""
        if not book.is_valid_result(self.frame.method, answer.result):
            return ""
        return text(dig(answer.result, "decision"))

    @property
    def in_time(self) -> bool:
        """Return whether it was certainly answered before the server had resolved it."""
        if self.answer is None:
            return False
        return self.settled is None or came_before(self.answer, self.settled)


@dataclass(slots=True)
class AllClients:
    """The index over all connections of a trace; looks at each message once.

    `ends` has each turn/completed by thread and turn, `finals` each item/completed and `questions`
    each request for approval by the item; `errors` the turns that met an error.
    """

    trace: Trace
    ends: dict[tuple[str, str], list[Frame]] = field(
        default_factory=dict[tuple[str, str], list[Frame]]
    )
    finals: dict[ItemName, list[Frame]] = field(default_factory=dict[ItemName, list[Frame]])
    questions: dict[ItemName, list[Question]] = field(
        default_factory=dict[ItemName, list[Question]]
    )
    _unsettling: list[Frame] = field(default_factory=list[Frame])
    _errors: list[Frame] = field(default_factory=list[Frame])
    _asked: dict[Frame, Question] = field(default_factory=dict[Frame, Question])
    _answers: Correlation = field(default_factory=Correlation)
    _looked_at: int = 0
    _alone_until: int = 0

    def until(self, frame: Frame | None) -> None:
        """Take in all messages up to one, or to the end of the trace.

        While there is one connection nothing is taken in, since nobody needs it.
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
            self._take(next_one)
            self._looked_at += 1

    def _take(self, frame: Frame) -> None:
        if frame.kind is Kind.NOTIFICATION and frame.from_target:
            self._told(frame)
        elif frame.kind is Kind.REQUEST:
            self._answers.feed(frame)
            if not frame.from_target:
                if frame.method in _UNSETTLING:
                    self._unsettling.append(frame)
            elif frame.method in ITEM_TYPES and (name := item_named(frame)) is not None:
                question = self._asked[frame] = Question(frame)
                self.questions.setdefault(name, []).append(question)
        elif frame.kind in (Kind.RESPONSE, Kind.ERROR) and not frame.from_target:
            asked = self._answers.feed(frame)
            question = self._asked.get(asked) if asked is not None else None
            if question is not None and question.answer is None:
                question.answer = frame

    def _told(self, frame: Frame) -> None:
        params = obj(frame.params)
        thread_id = text(params.get("threadId"))
        match frame.method:
            case "turn/completed":
                turn_id = text(dig(params, "turn", "id"))
                if thread_id and turn_id:
                    self.ends.setdefault((thread_id, turn_id), []).append(frame)
            case "item/completed":
                name = item_named(frame)
                if name is not None:
                    self.finals.setdefault(name, []).append(frame)
            case "serverRequest/resolved":
                for question in self._asked.values():
                    here = question.frame.connection == frame.connection
                    if here and question.settled is None:
                        question.settled = frame
            case "error":
                self._errors.append(frame)
            case _:
                pass

    def disturbed(self, name: ItemName, since: Frame) -> bool:
        """Return whether anything but an answer may have ended the item's work since a message.

        Another request of any client, an error in the turn, a client that we disconnected.
        """
        thread_id, turn_id, _ = name
        asked = (
            request
            for request in self._unsettling
            if came_before(since, request)
            and text(obj(request.params).get("threadId")) in ("", thread_id)
        )
        failed = (one for one in self._errors if text(obj(one.params).get("turnId")) == turn_id)
        return any(asked) or any(failed) or bool(self.trace.marks_of(Closed))


def item_named(frame: Frame) -> ItemName | None:
    """The item that a notification or a question is about, None where one of its names lacks."""
    params = obj(frame.params)
    item_id = text(params.get("itemId")) or text(dig(params, "item", "id"))
    names = (text(params.get("threadId")), text(params.get("turnId")), item_id)
    return names if all(names) else None
