"""What is still owed: obligations that a frame opened and no later frame has met.

The end-of-trace logic asks it live ("is anything owed?"), the rules ask it at the end; both see
the same answer. It knows nothing of time and gives no verdict. Obligations (design: "End of a
trace; owed events"): an answer for each request, the announcements of a started thread and turn,
the end of each turn, the completion of each started item, and `serverRequest/resolved` for each
answered approval.

Notifications open obligations only for threads that this trace opened: a server may tell every
client of every thread's start, and sends the rest to the subscribers alone. So a thread that nobody
of the trace is subscribed to any more owes nothing ("thread/unsubscribe"; what becomes of its turn
the text does not say). When it is opened again and shows that turn in progress, its end is owed.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from harness.trace.correlation import Id, RequestKey, key_of
from harness.trace.frame import Direction, Frame, Kind
from harness.trace.marks import Closed, MarkBody, ModelCall
from harness.trace.trace import Mark
from harness.trace.values import arr, dig, obj, text
from harness.trace.views import OPENING

# What tells an obligation from others: its kind, then ids.
Key: TypeAlias = tuple[Id, ...]


class Owes(StrEnum):
    """The kinds of obligation."""

    ANSWER = "answer"
    THREAD_STARTED = "thread/started"
    TURN_STARTED = "turn/started"
    TURN_COMPLETED = "turn/completed"
    ITEM_COMPLETED = "item/completed"
    RESOLVED = "serverRequest/resolved"


@dataclass(frozen=True, slots=True)
class Obligation:
    """One thing owed: its kind, its subject, the frame that opened it, and the thread, if known."""

    kind: Owes
    subject: str
    frame: Frame
    thread: str = ""

    def __str__(self) -> str:
        return f"{self.kind} for {self.subject}"


class Owed:
    """Tracks obligations over frames and marks; feed each once, in order."""

    def __init__(self) -> None:
        self._open: dict[Key, Obligation] = {}
        self._met: set[Key] = set()
        self._requests: dict[RequestKey, Frame] = {}
        self._questions: dict[RequestKey, Frame] = {}
        self._retrying: set[tuple[str, str]] = set()
        self._first: dict[str, str] = {}
        self._ours: set[str] = set()
        self._subscribers: dict[str, set[str]] = {}
        self._away: dict[str, dict[Key, Obligation]] = {}
        self._closed: set[str] = set()
        self.waived: list[Obligation] = []

    def open(self, *kinds: Owes) -> list[Obligation]:
        """What is owed now, of the given kinds or of all, oldest first."""
        return [item for item in self._open.values() if not kinds or item.kind in kinds]

    @property
    def unanswered_questions(self) -> list[Frame]:
        """Server requests that the harness has not answered."""
        return list(self._questions.values())

    @property
    def retrying(self) -> bool:
        """Whether a turn announced a retry and has neither called the model again nor ended."""
        return bool(self._retrying)

    def feed_mark(self, mark: Mark[MarkBody]) -> None:
        """Take a mark in.

        A model call ends the waiting of announced retries. On a connection that the harness ended
        (`closed`) nothing is owed from there on.
        """
        if isinstance(mark.body, ModelCall):
            self._retrying.clear()
        elif isinstance(mark.body, Closed):
            self._close(mark.body.connection)

    def _close(self, connection: str) -> None:
        self._closed.add(connection)
        self._retrying.clear()
        for key, obligation in list(self._open.items()):
            if obligation.frame.connection == connection:
                del self._open[key]

    def feed(self, frame: Frame) -> None:
        """Take one frame in."""
        if frame.kind is Kind.REQUEST:
            self._request(frame)
        elif frame.kind in (Kind.RESPONSE, Kind.ERROR):
            self._answer(frame)
        elif frame.kind is Kind.NOTIFICATION and frame.direction is Direction.FROM_TARGET:
            self._notification(frame)

    def _request(self, frame: Frame) -> None:
        key = key_of(frame)
        if key is None:
            return
        if frame.direction is Direction.FROM_TARGET:
            self._questions[key] = frame
            return
        if frame.deliberate:
            return
        self._requests[key] = frame
        self._owe(Owes.ANSWER, f"request {frame.method} id {frame.id}", frame, *key)

    def _answer(self, frame: Frame) -> None:
        key = key_of(frame)
        if key is None:
            return
        if frame.direction is Direction.TO_TARGET:
            question = self._questions.pop(key, None)
            if question is not None and question.method.endswith("requestApproval"):
                thread_id = text(obj(question.params).get("threadId"))
                subject = f"{question.method} id {frame.id}"
                self._owe(Owes.RESOLVED, subject, frame, thread_id, thread=thread_id)
            return
        asked = self._requests.get(key)
        self._meet(Owes.ANSWER, *key)
        if asked is None or frame.kind is not Kind.RESPONSE:
            return
        if asked.method in OPENING:
            thread_id = text(dig(frame.result, "thread", "id"))
            self._come(thread_id, frame)
            if thread_id and asked.method == "thread/start":
                self._owe(Owes.THREAD_STARTED, f"thread {thread_id}", frame, thread_id)
        elif asked.method == "thread/unsubscribe":
            self._leave(text(obj(asked.params).get("threadId")), frame.connection)
        elif asked.method == "turn/start":
            turn_id = text(dig(frame.result, "turn", "id"))
            thread_id = text(obj(asked.params).get("threadId"))
            if turn_id and thread_id not in self._away:
                self._ours.add(thread_id)
                for kind in (Owes.TURN_STARTED, Owes.TURN_COMPLETED):
                    where = thread_id, turn_id
                    self._owe(kind, self._turn(*where), frame, *where, thread=thread_id)

    def _come(self, thread_id: str, opened: Frame) -> None:
        """A client opened a thread; what was owed when the last one left is owed if it goes on."""
        self._ours.add(thread_id)
        self._subscribers.setdefault(thread_id, set()).add(opened.connection)
        turns = [obj(turn) for turn in arr(dig(opened.result, "thread", "turns"))]
        running = {text(turn.get("id")) for turn in turns if turn.get("status") == "inProgress"}
        for key, item in self._away.pop(thread_id, {}).items():
            if item.kind is Owes.TURN_COMPLETED and key[2] in running:
                self._owe(item.kind, item.subject, item.frame, *key[1:], thread=thread_id)

    def _leave(self, thread_id: str, connection: str) -> None:
        """A client left a thread, or all of its threads where it does not say which."""
        for left in [thread_id] if thread_id else list(self._subscribers):
            subscribers = self._subscribers.get(left, set())
            subscribers.discard(connection)
            if subscribers:
                continue
            self._ours.discard(left)
            mine = [key for key, item in self._open.items() if item.thread == left]
            self._retrying -= {(left, key[2]) for key in mine if len(key) > 2}
            self._away.setdefault(left, {}).update({key: self._open.pop(key) for key in mine})

    def _notification(self, frame: Frame) -> None:
        params = obj(frame.params)
        turn_id = text(params.get("turnId")) or text(dig(params, "turn", "id"))
        turn = (text(params.get("threadId")), turn_id)
        match frame.method:
            case "thread/started":
                self._meet(Owes.THREAD_STARTED, text(dig(params, "thread", "id")))
            case "turn/started":
                self._meet_turn(Owes.TURN_STARTED, *turn)
                self._owe_subscriber(Owes.TURN_COMPLETED, self._turn(*turn), frame, *turn)
            case "turn/completed":
                self._turn_completed(params, *turn)
            case "item/started":
                item_id = text(dig(params, "item", "id"))
                subject = f"item {item_id} of {self._turn(*turn)}"
                self._met.discard((Owes.ITEM_COMPLETED, *turn, item_id))
                self._owe_subscriber(Owes.ITEM_COMPLETED, subject, frame, *turn, item_id)
            case "item/completed":
                self._item_completed(*turn, text(dig(params, "item", "id")))
            case "serverRequest/resolved":
                self._meet_first(Owes.RESOLVED)
            case "error":
                if params.get("willRetry") is True and not self._has_met(turn):
                    self._retrying.add(turn)
            case _:
                pass

    def _turn(self, thread_id: str, turn_id: str) -> str:
        """How a turn is named: with its thread where another thread had a turn of that id first."""
        first = self._first.setdefault(turn_id, thread_id)
        return f"turn {turn_id}" if first == thread_id else f"turn {turn_id} of {thread_id}"

    def _meet_turn(self, kind: Owes, thread_id: str, turn_id: str) -> None:
        """What is told of a turn without its thread is of the turn of that id that waits for it."""
        open_ones = [key for key in self._open if key[0] == kind and key[2] == turn_id]
        if not thread_id and open_ones:
            thread_id = str(open_ones[-1][1])
        self._meet(kind, thread_id, turn_id)

    def _turn_completed(self, params: dict[str, object], thread_id: str, turn_id: str) -> None:
        self._meet_turn(Owes.TURN_COMPLETED, thread_id, turn_id)
        self._retrying.discard((thread_id, turn_id))
        if text(dig(params, "turn", "status")) in ("interrupted", "failed"):
            for key, item in list(self._open.items()):
                mine = key[1] == thread_id or not thread_id
                if item.kind is Owes.ITEM_COMPLETED and key[2] == turn_id and mine:
                    self.waived.append(self._open.pop(key))

    def _item_completed(self, thread_id: str, turn_id: str, item_id: str) -> None:
        """One that names a wrong thread, or none, ends the open item that it can be about."""
        key = (Owes.ITEM_COMPLETED, thread_id, turn_id, item_id)
        if key not in self._open:
            alike = [k for k in self._open if k[0] == key[0] and k[2:] == key[2:]]
            key = (key[0], *alike[0][1:]) if len(alike) == 1 else key
        self._meet(key[0], *key[1:])

    def _has_met(self, turn: tuple[str, str]) -> bool:
        return (Owes.TURN_COMPLETED, *turn) in self._met

    def _owe_subscriber(self, kind: Owes, subject: str, told: Frame, *key: Id) -> None:
        thread_id = text(obj(told.params).get("threadId"))
        if thread_id in self._ours:
            self._owe(kind, subject, told, *key, thread=thread_id)

    def _owe(self, kind: Owes, subject: str, frame: Frame, *key: Id, thread: str = "") -> None:
        if frame.connection in self._closed:
            return
        if (kind, *key) not in self._met and (kind, *key) not in self._open:
            self._open[kind, *key] = Obligation(kind, subject, frame, thread)

    def _meet(self, kind: Owes, *key: Id) -> None:
        self._open.pop((kind, *key), None)
        if kind is not Owes.ANSWER:
            self._met.add((kind, *key))

    def _meet_first(self, kind: Owes) -> None:
        for key, item in self._open.items():
            if item.kind is kind:
                del self._open[key]
                return
