"""Messages that the server still owes on one connection, as open obligations.

The end of a conversation asks the ledger while the server runs ("is anything owed?"), rules ask it
at the end of a trace; both get the same answer. It has no clock and gives no verdict. An obligation
is one of `ObligationKind`: an answer to each request, the announcements of a started thread and
turn, the end of each turn, the completion of each started item, and `serverRequest/resolved` for
each answered approval.

The obligations to a client follow from its subscriptions. The specification does not say which
client gets a notification, only that a client can unsubscribe and that a thread has subscribers
("thread/unsubscribe"). It is read as follows:

- A client that starts, resumes or forks a thread is subscribed to it until it unsubscribes, and is
  owed the end of everything whose beginning it got. A server may notify other clients as it likes.
- A client that only sends turn/start is subscribed too if no other client is. If another is, or was
  until its connection ended (the thread may be in memory for that one alone), it counts as
  subscribed once a message about an item of that turn has come on this connection.
- A client that unsubscribes is owed nothing more of the thread. If it opens the thread again and is
  shown a turn in progress whose end it had been owed, it is owed that end again, but not the
  announcement, which it may have missed; nor is one owed if a later turn/start gives that turn.
- A client that opens a thread and is shown a turn in progress, whose end is owed on another
  connection, is owed that end too.
- The specification does not say whether an archived thread keeps its subscribers: no client counts
  as one until it opens the thread again. Whatever had begun before is still owed.
- A client that unsubscribes or is disconnected changes nothing for the other subscribers.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from harness.protocol.values import arr, dig, obj, text
from harness.trace.correlation import Id, RequestKey, key_of, request_key
from harness.trace.frame import Direction, Frame, Kind
from harness.trace.marks import MarkBody, ModelCall
from harness.trace.trace import Mark
from harness.trace.views import OPENING_METHODS

# The notifications that open or meet an obligation.
_RELEVANT_METHODS = frozenset(
    {
        "thread/started",
        "turn/started",
        "turn/completed",
        "item/started",
        "item/completed",
        "serverRequest/resolved",
        "thread/closed",
        "error",
    }
)
# The key of an obligation: its kind, then ids.
Key: TypeAlias = tuple[Id, ...]


class ObligationKind(StrEnum):
    """The kinds of obligation."""

    ANSWER = "answer"
    THREAD_STARTED = "thread/started"
    TURN_STARTED = "turn/started"
    TURN_COMPLETED = "turn/completed"
    ITEM_COMPLETED = "item/completed"
    RESOLVED = "serverRequest/resolved"


@dataclass(frozen=True, slots=True)
class Obligation:
    """An obligation: its kind, its subject, the frame that opened it, the thread if known."""

    kind: ObligationKind
    subject: str
    frame: Frame
    thread: str = ""

    def __str__(self) -> str:
        return f"{self.kind} for {self.subject}"


class ObligationLedger:
    """Messages that the server still owes on one connection. Feed its frames once, in order.

    `ledgers` maps each connection of the trace to its ledger. `waived` are the open items of turns
    that were interrupted or failed.
    """

    def __init__(self, ledgers: Mapping[str, "ObligationLedger"] | None = None) -> None:
        self._ledgers: Mapping[str, ObligationLedger] = {} if ledgers is None else ledgers
        self._open: dict[Key, Obligation] = {}
        self._met: set[Key] = set()
        self._requests: dict[RequestKey, Frame] = {}
        self._questions: dict[RequestKey, Frame] = {}
        # Questions that the server resolved, or whose turn or thread it ended, without an answer.
        self._ended_questions: set[RequestKey] = set()
        self._retrying: set[tuple[str, str]] = set()
        self._first_thread: dict[str, str] = {}
        self._subscribed: set[str] = set()
        self._suspended: dict[str, dict[Key, Obligation]] = {}
        self._unsubscribed_turns: dict[tuple[str, str], Frame] = {}
        self._announced: set[tuple[str, str]] = set()
        self._early_resolved = 0
        self.closed = False
        self.client_left = self.is_of_ended_process = False
        self.waived: list[Obligation] = []

    def open_obligations(self, *kinds: ObligationKind) -> list[Obligation]:
        """Return the open obligations, of the given kinds or of all, oldest first."""
        return [item for item in self._open.values() if not kinds or item.kind in kinds]

    @property
    def unanswered_questions(self) -> list[Frame]:
        """Server requests that wait for the client: not answered, nor ended by the server."""
        return [frame for key, frame in self._questions.items() if key not in self._ended_questions]

    @property
    def is_retrying(self) -> bool:
        """Return whether an announced retry is pending: no model call and no end so far."""
        return bool(self._retrying)

    @property
    def has_lost_client(self) -> bool:
        """Return whether the client of any connection to this process has left so far."""
        return self.client_left or any(
            ledger.client_left and not ledger.is_of_ended_process
            for ledger in self._ledgers.values()
        )

    def is_subscribed(self, thread_id: str) -> bool:
        """Return whether the client is subscribed to a thread and its connection is open."""
        return thread_id in self._subscribed and not self.closed

    def awaits_end(self, thread_id: str, turn_id: str) -> bool:
        """Return whether the end of a turn is owed on this connection."""
        return (ObligationKind.TURN_COMPLETED, thread_id, turn_id) in self._open

    def feed_mark(self, mark: Mark[MarkBody]) -> None:
        """Clear announced retries when the model is called."""
        if isinstance(mark.body, ModelCall):
            self._retrying.clear()

    def close(self) -> None:
        """Drop all obligations: the harness ended the connection."""
        self.closed = True
        self._retrying.clear()
        self._questions.clear()
        self._open.clear()

    def note_turn_end(self, thread_id: str, turn_id: str) -> None:
        """Clear the announced retry of a turn whose end came on another connection."""
        self._retrying.discard((thread_id, turn_id))

    def note_archive(self, thread_id: str) -> None:
        """Drop the subscription to an archived thread until the client opens it again."""
        self._subscribed.discard(thread_id)

    def _other_ledgers(self) -> Iterator["ObligationLedger"]:
        return (
            ledger for ledger in self._ledgers.values() if ledger is not self and not ledger.closed
        )

    def feed(self, frame: Frame) -> None:
        """Update the ledger with one frame."""
        if frame.kind is Kind.REQUEST:
            self._on_request(frame)
        elif frame.kind in (Kind.RESPONSE, Kind.ERROR):
            self._on_answer(frame)
        elif frame.kind is Kind.NOTIFICATION and frame.direction is Direction.FROM_TARGET:
            self._on_notification(frame)

    def _on_request(self, frame: Frame) -> None:
        key = key_of(frame)
        if key is None:
            return
        if frame.direction is Direction.FROM_TARGET:
            self._questions[key] = frame
            self._ended_questions.discard(key)
            return
        if frame.deliberate:
            return
        self._requests[key] = frame
        self._owe(ObligationKind.ANSWER, f"request {frame.method} id {frame.id}", frame, *key)

    def _on_answer(self, frame: Frame) -> None:
        key = key_of(frame)
        if key is None:
            return
        if frame.direction is Direction.TO_TARGET:
            question = self._questions.pop(key, None)
            if question is not None and question.method.endswith("requestApproval"):
                if self._early_resolved:
                    self._early_resolved -= 1
                    return
                thread_id = text(obj(question.params).get("threadId"))
                subject = f"{question.method} id {frame.id}"
                self._owe(ObligationKind.RESOLVED, subject, frame, thread_id, thread=thread_id)
            return
        request = self._requests.get(key)
        self._meet(ObligationKind.ANSWER, *key)
        if request is None or frame.kind is not Kind.RESPONSE:
            return
        if request.method in OPENING_METHODS:
            thread_id = text(dig(frame.result, "thread", "id"))
            self._subscribe(thread_id, frame)
            if thread_id and request.method in ("thread/start", "thread/fork"):
                self._owe(ObligationKind.THREAD_STARTED, f"thread {thread_id}", frame, thread_id)
        elif request.method == "thread/unsubscribe":
            self._unsubscribe(text(obj(request.params).get("threadId")))
        elif request.method == "thread/archive":
            for ledger in (self, *self._other_ledgers()):
                ledger.note_archive(text(obj(request.params).get("threadId")))
        elif request.method == "turn/start":
            turn_id = text(dig(frame.result, "turn", "id"))
            thread_id = text(obj(request.params).get("threadId"))
            if not turn_id:
                return
            if thread_id in self._suspended:
                self._announced.add((thread_id, turn_id))
                return
            other_ledgers = (ledger for ledger in self._ledgers.values() if ledger is not self)
            elsewhere = any(thread_id in ledger._subscribed for ledger in other_ledgers)
            if elsewhere and not self.is_subscribed(thread_id):
                self._unsubscribed_turns[thread_id, turn_id] = frame
            else:
                self._owe_turn(thread_id, turn_id, frame)

    def _owe_turn(self, thread_id: str, turn_id: str, reply: Frame) -> None:
        """Subscribe the client of an answered turn/start, and owe it the turn's start and end."""
        self._subscribed.add(thread_id)
        subject = self._turn_name(thread_id, turn_id)
        kinds = [ObligationKind.TURN_COMPLETED]
        if (thread_id, turn_id) not in self._announced:
            kinds.insert(0, ObligationKind.TURN_STARTED)
        self._announced.add((thread_id, turn_id))
        for kind in kinds:
            self._owe(kind, subject, reply, thread_id, turn_id, thread=thread_id)

    def _subscribe(self, thread_id: str, opened: Frame) -> None:
        """Subscribe the client to a thread that it opened; owe the turns shown in progress."""
        self._subscribed.add(thread_id)
        turns = [obj(turn) for turn in arr(dig(opened.result, "thread", "turns"))]
        running = {text(turn.get("id")) for turn in turns if turn.get("status") == "inProgress"}
        for key, item in self._suspended.pop(thread_id, {}).items():
            if item.kind is ObligationKind.TURN_COMPLETED and key[2] in running:
                self._owe(item.kind, item.subject, item.frame, *key[1:], thread=thread_id)
        for turn_id in running:
            self._announced.add((thread_id, turn_id))
            self._unsubscribed_turns.pop((thread_id, turn_id), None)
            if any(ledger.awaits_end(thread_id, turn_id) for ledger in self._other_ledgers()):
                ids = thread_id, turn_id
                subject = self._turn_name(*ids)
                self._owe(ObligationKind.TURN_COMPLETED, subject, opened, *ids, thread=thread_id)

    def _unsubscribe(self, thread_id: str) -> None:
        """Unsubscribe the client from a thread, or from all if it names none."""
        for thread in [thread_id] if thread_id else list(self._subscribed):
            self._subscribed.discard(thread)
            for turn in [key for key in self._unsubscribed_turns if key[0] == thread]:
                del self._unsubscribed_turns[turn]
            keys = [key for key, item in self._open.items() if item.thread == thread]
            self._retrying -= {(thread, str(key[2])) for key in keys if len(key) > 2}
            self._suspended.setdefault(thread, {}).update(
                {key: self._open.pop(key) for key in keys}
            )

    def _on_notification(self, frame: Frame) -> None:
        if frame.method not in _RELEVANT_METHODS and not self._unsubscribed_turns:
            return
        params = obj(frame.params)
        turn_id = text(params.get("turnId")) or text(dig(params, "turn", "id"))
        turn = (text(params.get("threadId")), turn_id)
        if frame.method.startswith("item/") and turn in self._unsubscribed_turns:
            self._owe_turn(*turn, self._unsubscribed_turns.pop(turn))
        match frame.method:
            case "thread/started":
                self._meet(ObligationKind.THREAD_STARTED, text(dig(params, "thread", "id")))
            case "turn/started":
                self._meet_turn(ObligationKind.TURN_STARTED, *turn)
                self._owe_subscriber(
                    ObligationKind.TURN_COMPLETED, self._turn_name(*turn), frame, *turn
                )
            case "turn/completed":
                self._on_turn_completed(params, *turn)
                self._end_questions("turnId", turn_id)
            case "item/started":
                item_id = text(dig(params, "item", "id"))
                subject = f"item {item_id} of {self._turn_name(*turn)}"
                self._met.discard((ObligationKind.ITEM_COMPLETED, *turn, item_id))
                self._owe_subscriber(ObligationKind.ITEM_COMPLETED, subject, frame, *turn, item_id)
            case "item/completed":
                self._on_item_completed(*turn, text(dig(params, "item", "id")))
            case "serverRequest/resolved":
                self._meet_oldest_resolved()
                self._end_questions_resolved_by(frame)
            case "thread/closed":
                self._end_questions("threadId", text(params.get("threadId")))
            case "error":
                if params.get("willRetry") is True and not self._has_ended(turn):
                    self._retrying.add(turn)
            case _:
                pass

    def _end_questions_resolved_by(self, frame: Frame) -> None:
        """End the server request that a notification names; all of them if it names no open one."""
        identifier = obj(frame.params).get("requestId")
        key = request_key(frame.connection, frame.direction, identifier)
        self._ended_questions |= {key} if key in self._questions else set(self._questions)

    def _end_questions(self, member: str, identifier: str) -> None:
        """End the server requests whose `member` is this id of a turn or thread, or is missing."""
        self._ended_questions |= {
            key
            for key, question in self._questions.items()
            if text(obj(question.params).get(member)) in (identifier, "")
        }

    def _turn_name(self, thread_id: str, turn_id: str) -> str:
        """Return the name of a turn, with its thread if another thread had that turn id first."""
        first = self._first_thread.setdefault(turn_id, thread_id)
        return f"turn {turn_id}" if first == thread_id else f"turn {turn_id} of {thread_id}"

    def _meet_turn(self, kind: ObligationKind, thread_id: str, turn_id: str) -> None:
        """Meet a turn's obligation; without a thread, that of the latest open turn of this id."""
        open_keys = [key for key in self._open if key[0] == kind and key[2] == turn_id]
        if not thread_id and open_keys:
            thread_id = str(open_keys[-1][1])
        self._meet(kind, thread_id, turn_id)

    def _on_turn_completed(self, params: dict[str, object], thread_id: str, turn_id: str) -> None:
        self._meet_turn(ObligationKind.TURN_COMPLETED, thread_id, turn_id)
        self._retrying.discard((thread_id, turn_id))
        if text(dig(params, "turn", "status")) in ("interrupted", "failed"):
            for key, item in list(self._open.items()):
                same_thread = key[1] == thread_id or not thread_id
                if item.kind is ObligationKind.ITEM_COMPLETED and key[2] == turn_id and same_thread:
                    self.waived.append(self._open.pop(key))

    def _on_item_completed(self, thread_id: str, turn_id: str, item_id: str) -> None:
        """Complete an item; if the thread is wrong or missing, the only open one with these ids."""
        key = (ObligationKind.ITEM_COMPLETED, thread_id, turn_id, item_id)
        if key not in self._open:
            candidates = [k for k in self._open if k[0] == key[0] and k[2:] == key[2:]]
            key = (key[0], *candidates[0][1:]) if len(candidates) == 1 else key
        self._meet(key[0], *key[1:])

    def _has_ended(self, turn: tuple[str, str]) -> bool:
        return (ObligationKind.TURN_COMPLETED, *turn) in self._met

    def _owe_subscriber(
        self, kind: ObligationKind, subject: str, notification: Frame, *key: Id
    ) -> None:
        thread_id = text(obj(notification.params).get("threadId"))
        if thread_id in self._subscribed:
            self._owe(kind, subject, notification, *key, thread=thread_id)

    def _owe(
        self, kind: ObligationKind, subject: str, frame: Frame, *key: Id, thread: str = ""
    ) -> None:
        if self.closed:
            return
        if (kind, *key) not in self._met and (kind, *key) not in self._open:
            self._open[kind, *key] = Obligation(kind, subject, frame, thread)

    def _meet(self, kind: ObligationKind, *key: Id) -> None:
        self._open.pop((kind, *key), None)
        if kind is not ObligationKind.ANSWER:
            self._met.add((kind, *key))

    def _meet_oldest_resolved(self) -> None:
        """Meet the oldest owed `serverRequest/resolved`, since the specification shows no id.

        If none is owed, the approval was resolved before its answer: note that.
        """
        for key, item in self._open.items():
            if item.kind is ObligationKind.RESOLVED:
                del self._open[key]
                return
        if self._early_resolved < len(self._questions):
            self._early_resolved += 1
