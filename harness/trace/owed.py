"""Open obligations on one connection, which no later message has met.

The end of a conversation asks it while the server runs ("is anything owed?"), the rules ask it at
the end of a trace; both get the same answer. It knows nothing of time and gives no verdict. An
obligation is one of `Owes`: an answer to each request, the announcements of a started thread and
turn, the end of each turn, the completion of each started item, and `serverRequest/resolved` for
each answered approval.

What a client is owed of a thread follows from its subscription. The text does not say who gets
which notification; it says that a client can unsubscribe and that a thread has subscribers
("thread/unsubscribe"). Read here:

- Who starts, resumes or forks a thread is subscribed to it until it unsubscribes, and is then owed
  the end of whatever it was told had begun. To others a server may tell what it likes.
- Who only sends turn/start is subscribed too if nobody else is. If somebody else is, or was until
  its connection ended (the thread may be in memory for that one alone), it counts once a message
  about an item of that turn has come here.
- Who unsubscribes is owed nothing more of the thread. Who opens it again, and is shown a turn in
  progress that it had been owed the end of, is owed it again, but not its announcement: that may
  have been told in between. Nor does a later turn/start that is answered with such a turn owe it.
- Who opens a thread and is shown a turn in progress, of which another connection is owed the end,
  is owed that end too.
- Whether an archived thread keeps its subscribers is not said: nobody counts as one until he opens
  it again. What had begun before is still owed.
- Who unsubscribes or is disconnected changes nothing for the other subscribers.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from harness.protocol.values import arr, dig, obj, text
from harness.trace.correlation import Id, RequestKey, key_of
from harness.trace.frame import Direction, Frame, Kind
from harness.trace.marks import MarkBody, ModelCall
from harness.trace.trace import Mark
from harness.trace.views import OPENING

# The notifications that owe something, or meet it; most are none of these.
_CHANGING = frozenset(
    {
        "thread/started",
        "turn/started",
        "turn/completed",
        "item/started",
        "item/completed",
        "serverRequest/resolved",
        "error",
    }
)
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
    """The obligations on one connection. Feed it the frames of that connection once, in order.

    `ledgers` has those of all connections of the trace (see `OwedOnConnections`).
    """

    def __init__(self, ledgers: Mapping[str, "Owed"] | None = None) -> None:
        self._ledgers: Mapping[str, Owed] = {} if ledgers is None else ledgers
        self._open: dict[Key, Obligation] = {}
        self._met: set[Key] = set()
        self._requests: dict[RequestKey, Frame] = {}
        self._questions: dict[RequestKey, Frame] = {}
        self._retrying: set[tuple[str, str]] = set()
        self._first: dict[str, str] = {}
        self._subscribed: set[str] = set()
        self._away: dict[str, dict[Key, Obligation]] = {}
        self._asked_only: dict[tuple[str, str], Frame] = {}
        self._promised: set[tuple[str, str]] = set()
        self._resolved_unasked = 0
        self.closed = False
        self.waived: list[Obligation] = []

    def open(self, *kinds: Owes) -> list[Obligation]:
        """Return the open obligations, of the given kinds or of all, oldest first."""
        return [item for item in self._open.values() if not kinds or item.kind in kinds]

    @property
    def unanswered_questions(self) -> list[Frame]:
        """Server requests that the harness has not answered."""
        return list(self._questions.values())

    @property
    def retrying(self) -> bool:
        """Return whether a turn announced a retry and has neither called the model again
        nor ended.
        """
        return bool(self._retrying)

    def is_subscribed(self, thread_id: str) -> bool:
        """Return whether this client has opened the thread and not left it."""
        return thread_id in self._subscribed and not self.closed

    def awaits_end(self, thread_id: str, turn_id: str) -> bool:
        """Return whether the end of a turn is owed here."""
        return (Owes.TURN_COMPLETED, thread_id, turn_id) in self._open

    def feed_mark(self, mark: Mark[MarkBody]) -> None:
        """A model call ends the waiting of announced retries."""
        if isinstance(mark.body, ModelCall):
            self._retrying.clear()

    def close(self) -> None:
        """The harness ended the connection: nothing is owed from here on."""
        self.closed = True
        self._retrying.clear()
        self._questions.clear()
        self._open.clear()

    def turn_over(self, thread_id: str, turn_id: str) -> None:
        """Another connection was told that a turn has ended, so it does not retry any more."""
        self._retrying.discard((thread_id, turn_id))

    def put_away(self, thread_id: str) -> None:
        """A thread went to the archive: who still follows it is open until somebody opens it."""
        self._subscribed.discard(thread_id)

    def _others(self) -> Iterator["Owed"]:
        return (one for one in self._ledgers.values() if one is not self and not one.closed)

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
                if self._resolved_unasked:
                    self._resolved_unasked -= 1
                    return
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
            if thread_id and asked.method in ("thread/start", "thread/fork"):
                self._owe(Owes.THREAD_STARTED, f"thread {thread_id}", frame, thread_id)
        elif asked.method == "thread/unsubscribe":
            self._leave(text(obj(asked.params).get("threadId")))
        elif asked.method == "thread/archive":
            for one in (self, *self._others()):
                one.put_away(text(obj(asked.params).get("threadId")))
        elif asked.method == "turn/start":
            turn_id = text(dig(frame.result, "turn", "id"))
            thread_id = text(obj(asked.params).get("threadId"))
            if not turn_id:
                return
            if thread_id in self._away:
                self._promised.add((thread_id, turn_id))
                return
            others = (one for one in self._ledgers.values() if one is not self)
            elsewhere = any(thread_id in one._subscribed for one in others)
            if elsewhere and not self.is_subscribed(thread_id):
                self._asked_only[thread_id, turn_id] = frame
            else:
                self._began(thread_id, turn_id, frame)

    def _began(self, thread_id: str, turn_id: str, reply: Frame) -> None:
        """A turn/start of this client was answered, which is or thereby becomes a subscriber."""
        self._subscribed.add(thread_id)
        subject = self._turn(thread_id, turn_id)
        kinds = [Owes.TURN_COMPLETED]
        if (thread_id, turn_id) not in self._promised:
            kinds.insert(0, Owes.TURN_STARTED)
        self._promised.add((thread_id, turn_id))
        for kind in kinds:
            self._owe(kind, subject, reply, thread_id, turn_id, thread=thread_id)

    def _come(self, thread_id: str, opened: Frame) -> None:
        """This client opened a thread, and was shown which of its turns are in progress."""
        self._subscribed.add(thread_id)
        turns = [obj(turn) for turn in arr(dig(opened.result, "thread", "turns"))]
        running = {text(turn.get("id")) for turn in turns if turn.get("status") == "inProgress"}
        for key, item in self._away.pop(thread_id, {}).items():
            if item.kind is Owes.TURN_COMPLETED and key[2] in running:
                self._owe(item.kind, item.subject, item.frame, *key[1:], thread=thread_id)
        for turn_id in running:
            self._promised.add((thread_id, turn_id))
            self._asked_only.pop((thread_id, turn_id), None)
            if any(one.awaits_end(thread_id, turn_id) for one in self._others()):
                where = thread_id, turn_id
                subject = self._turn(*where)
                self._owe(Owes.TURN_COMPLETED, subject, opened, *where, thread=thread_id)

    def _leave(self, thread_id: str) -> None:
        """This client left a thread, or all of its threads where it does not say which."""
        for left in [thread_id] if thread_id else list(self._subscribed):
            self._subscribed.discard(left)
            for asked in [key for key in self._asked_only if key[0] == left]:
                del self._asked_only[asked]
            mine = [key for key, item in self._open.items() if item.thread == left]
            self._retrying -= {(left, str(key[2])) for key in mine if len(key) > 2}
            self._away.setdefault(left, {}).update({key: self._open.pop(key) for key in mine})

    def _notification(self, frame: Frame) -> None:
        if frame.method not in _CHANGING and not self._asked_only:
            return
        params = obj(frame.params)
        turn_id = text(params.get("turnId")) or text(dig(params, "turn", "id"))
        turn = (text(params.get("threadId")), turn_id)
        if frame.method.startswith("item/") and turn in self._asked_only:
            self._began(*turn, self._asked_only.pop(turn))
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
                self._resolved()
            case "error":
                if params.get("willRetry") is True and not self._has_met(turn):
                    self._retrying.add(turn)
            case _:
                pass

    def _turn(self, thread_id: str, turn_id: str) -> str:
        """Name a turn, with its thread if another thread had a turn of that id first."""
        first = self._first.setdefault(turn_id, thread_id)
        return f"turn {turn_id}" if first == thread_id else f"turn {turn_id} of {thread_id}"

    def _meet_turn(self, kind: Owes, thread_id: str, turn_id: str) -> None:
        """Take news without a thread for the turn of that id that waits for it."""
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

    def _owe_subscriber(self, kind: Owes, subject: str, notification: Frame, *key: Id) -> None:
        thread_id = text(obj(notification.params).get("threadId"))
        if thread_id in self._subscribed:
            self._owe(kind, subject, notification, *key, thread=thread_id)

    def _owe(self, kind: Owes, subject: str, frame: Frame, *key: Id, thread: str = "") -> None:
        if self.closed:
            return
        if (kind, *key) not in self._met and (kind, *key) not in self._open:
            self._open[kind, *key] = Obligation(kind, subject, frame, thread)

    def _meet(self, kind: Owes, *key: Id) -> None:
        self._open.pop((kind, *key), None)
        if kind is not Owes.ANSWER:
            self._met.add((kind, *key))

    def _resolved(self) -> None:
        """Close the oldest one: which question is meant is not shown, answered or not."""
        for key, item in self._open.items():
            if item.kind is Owes.RESOLVED:
                del self._open[key]
                return
        if self._resolved_unasked < len(self._questions):
            self._resolved_unasked += 1
