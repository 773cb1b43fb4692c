"""The conversation in a trace: threads, turns, items, and answered requests.

It judges nothing: it accepts every message and keeps frames where rules can find them. It is fed
frame by frame, so a live stream and a stored trace give the same view; a handler sees the view
with its frame already in it.

The scope of turn ids is not specified. So a turn is identified by its thread and its id: a
server may count the turns of each thread from one.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from harness.protocol.values import arr, dig, obj, text
from harness.trace.correlation import Correlation
from harness.trace.frame import Direction, Frame, Kind
from harness.trace.order import came_before
from harness.trace.trace import Trace

# The requests whose answer gives a thread to the client.
OPENING_METHODS = ("thread/start", "thread/resume", "thread/fork")

R = TypeVar("R")


@dataclass(slots=True, eq=False)
class ItemView:
    """One item id within one turn.

    `parts` maps (delta method, index) to the texts received since the item was last started; after
    the client left its thread, or opened it anew, no more are kept, since some may be missing or
    repeated (`has_all_deltas`). To save memory they are dropped at the message after item/completed
    or turn/completed, so handlers of these two still find them.
    """

    id: str
    turn: "TurnView"
    type: str = ""
    starts: list[Frame] = field(default_factory=list[Frame])
    completions: list[Frame] = field(default_factory=list[Frame])
    first_delta: Frame | None = None
    last_delta: Frame | None = None
    parts: dict[tuple[str, int], list[str]] = field(
        default_factory=dict[tuple[str, int], list[str]]
    )
    has_all_deltas: bool = True

    @property
    def subject(self) -> str:
        """The name of the item in findings."""
        return f"item {self.id} of {self.turn.subject}"

    @property
    def is_open(self) -> bool:
        """Return whether the item has begun, and has not been completed since."""
        if not self.starts:
            return False
        return not self.completions or came_before(self.completions[-1], self.starts[-1])

    def joined_deltas(self, method: str, index: int = 0) -> str | None:
        """Return the concatenated deltas of one method and index, None if there were none."""
        parts = self.parts.get((method, index))
        return None if parts is None else "".join(parts)


@dataclass(slots=True, eq=False)
class TurnView:
    """One turn id of one thread, with the frames that named it.

    `key` is unique on the connection: its id, with its thread if a turn of another thread had the
    same id before. `thread_id` is "" while no message has named the thread.
    """

    id: str
    thread_id: str = ""
    key: str = ""
    request: Frame | None = None
    reply: Frame | None = None
    starts: list[Frame] = field(default_factory=list[Frame])
    completions: list[Frame] = field(default_factory=list[Frame])
    errors: list[Frame] = field(default_factory=list[Frame])
    interrupts: list[Frame] = field(default_factory=list[Frame])
    diffs: list[Frame] = field(default_factory=list[Frame])
    items: dict[str, ItemView] = field(default_factory=dict[str, ItemView])

    @property
    def subject(self) -> str:
        """The name of the turn in findings."""
        return f"turn {self.key}"

    @property
    def status(self) -> str:
        """The status in its last `turn/completed`, "" before it."""
        return text(dig(self.completions[-1].params, "turn", "status")) if self.completions else ""


@dataclass(slots=True, eq=False)
class ThreadView:
    """One thread id, with the frames that named it.

    `request` and `reply` are of its thread/start; `opening_answers` are those of thread/start,
    thread/resume and thread/fork that gave it to this client. `leaving_frames` are the messages by
    which the client left it, or may have: thread/unsubscribe (whose params are not shown, so it may
    be of any thread), thread/archive and thread/archived. `resume_requests` opened it again:
    notifications in between may be missing or repeated. `archive_notifications` report that it was
    archived or closed.
    """

    id: str
    request: Frame | None = None
    reply: Frame | None = None
    opening_answers: list[Frame] = field(default_factory=list[Frame])
    starts: list[Frame] = field(default_factory=list[Frame])
    leaving_frames: list[Frame] = field(default_factory=list[Frame])
    resume_requests: list[Frame] = field(default_factory=list[Frame])
    archive_notifications: list[Frame] = field(default_factory=list[Frame])
    statuses: list[Frame] = field(default_factory=list[Frame])
    turns: dict[str, TurnView] = field(default_factory=dict[str, TurnView])

    @property
    def subject(self) -> str:
        """The name of the thread in findings."""
        return f"thread {self.id}"


class Conversation:
    """The threads, turns and items of one connection so far. Feed each frame once, in order.

    `turns` maps `TurnView.key` to the turn; `turn_of` finds the turn of a message, `turn_at` that
    of a pair of ids.
    """

    def __init__(self) -> None:
        self.threads: dict[str, ThreadView] = {}
        self.turns: dict[str, TurnView] = {}
        self._turns_by_id: dict[str, list[TurnView]] = {}
        self._rolled_back: Frame | None = None
        self._correlation = Correlation()
        self._questions: dict[tuple[str, str, str], list[Frame]] = {}
        self._finished_items: list[ItemView] = []
        # The turn of the latest message, cached since many rules ask for it.
        self._latest: Frame | None = None
        self._latest_turn: TurnView | None = None
        self._readers: dict[Callable[[Trace], Any], Any] = {}

    def reader(self, kind: Callable[[Trace], R], trace: Trace) -> R:
        """Return the one reader of this class that all rules of the connection share.

        Only for readers that each rule asks up to the current message.
        """
        if kind not in self._readers:
            self._readers[kind] = kind(trace)
        return self._readers[kind]

    def feed(self, frame: Frame) -> None:
        """Add one frame to the view."""
        self._latest = None
        request = self._correlation.feed(frame)
        if self._finished_items:
            for item in self._finished_items:
                item.parts.clear()
            self._finished_items.clear()
        if frame.kind is Kind.NOTIFICATION:
            if frame.direction is Direction.FROM_TARGET:
                self._on_notification(frame)
        elif frame.kind is Kind.REQUEST:
            self._on_request(frame)
        elif request is not None and frame.kind is Kind.RESPONSE:
            self._on_answer(frame, request)
        if self._latest is None:
            self._latest_turn = self.turn_of(frame)
            self._latest = frame

    def request_of(self, answer: Frame) -> Frame | None:
        """Return the request of an answer, None if it answers none."""
        return self._correlation.request_of(answer)

    @property
    def requests(self) -> Iterable[Frame]:
        """The requests of both sides that can be answered; of each id the last one."""
        return self._correlation.requests

    def questions_of(self, turn: TurnView, item_id: str) -> list[Frame]:
        """Return the server requests that name an item of a turn, in order."""
        return self._questions.get((turn.thread_id, turn.id, item_id), [])

    def answer_of(self, question: Frame) -> Frame | None:
        """Return the first answer to a request, None while there is none."""
        return self._correlation.answer_of(question)

    def thread(self, thread_id: str) -> ThreadView:
        """Return the view of a thread, created on first use."""
        view = self.threads.get(thread_id)
        if view is None:
            view = self.threads[thread_id] = ThreadView(thread_id)
        return view

    def turn_at(self, thread_id: str, turn_id: str) -> TurnView | None:
        """Return the turn of that id on that thread, None while nothing has named it.

        Without a thread it is the last turn of that id; a turn whose thread is unknown so far
        matches any thread.
        """
        candidates = self._turns_by_id.get(turn_id)
        if candidates is None:
            return None
        if not thread_id:
            return candidates[-1]
        for candidate_thread in (thread_id, ""):
            for turn in candidates:
                if turn.thread_id == candidate_thread:
                    return turn
        return None

    def turn_of(self, frame: Frame) -> TurnView | None:
        """Return the turn of a notification, request or answer to turn/start, None if unknown.

        It is named by `turnId` or the id of its `turn`, and by `threadId`. If the named thread has
        no such turn, it is the only turn of that id in which the named item is open.
        """
        if frame is self._latest:
            return self._latest_turn
        thread_id, turn_id = self._ids_of(frame)
        if not turn_id:
            return None
        turn = self.turn_at(thread_id, turn_id)
        return self._turn_of_item(turn_id, _item_id(frame)) if turn is None else turn

    def key_of(self, frame: Frame) -> str:
        """Return the key of the turn of a message; the turn id, or "", if that turn is unknown."""
        turn = self.turn_of(frame)
        return self._ids_of(frame)[1] if turn is None else turn.key

    def item_of(self, frame: Frame) -> ItemView | None:
        """Return the item that a notification names (`itemId` or `item.id`), None if unknown."""
        turn, item_id = self.turn_of(frame), _item_id(frame)
        return turn.items.get(item_id) if turn is not None and item_id else None

    def _ids_of(self, frame: Frame) -> tuple[str, str]:
        """Return the ids of thread and turn that a message names, "" for one that it does not."""
        if frame.kind is Kind.RESPONSE:
            request = self.request_of(frame)
            thread_id = text(obj(request.params).get("threadId")) if request is not None else ""
            return thread_id, text(dig(frame.result, "turn", "id"))
        params = obj(frame.params)
        turn_id = text(params.get("turnId")) or text(dig(params, "turn", "id"))
        return text(params.get("threadId")), turn_id

    def _turn_of_item(self, turn_id: str, item_id: str) -> TurnView | None:
        """Return the turn of this id in which that item is open, None unless there is just one."""
        turns = [
            turn
            for turn in self._turns_by_id.get(turn_id, ())
            if item_id in turn.items and turn.items[item_id].is_open
        ]
        return turns[0] if len(turns) == 1 else None

    def _may_be_dropped(self, turn: TurnView) -> bool:
        """Return whether a rollback may have dropped a turn, so that its id may be reused."""
        rolled_back = self._rolled_back
        if rolled_back is None or not turn.completions:
            return False
        return came_before(turn.completions[-1], rolled_back)

    def _get_or_add_turn(self, thread_id: str, turn_id: str, *, begins: bool = False) -> TurnView:
        """Return the view of a turn, new if there is none or if a dropped id `begins` anew."""
        turn = self.turn_at(thread_id, turn_id)
        dropped = turn if begins and turn is not None and self._may_be_dropped(turn) else None
        if turn is None or dropped is not None:
            same_id = self._turns_by_id.setdefault(turn_id, [])
            key = f"{turn_id} of {thread_id}" if same_id else turn_id
            if dropped is not None:
                same_id.remove(dropped)
                key = f"{dropped.key} again"
            turn = self.turns[key] = TurnView(turn_id, key=key)
            same_id.append(turn)
        if thread_id and not turn.thread_id:
            turn.thread_id = thread_id
            self.thread(thread_id).turns[turn.id] = turn
        return turn

    def _on_request(self, frame: Frame) -> None:
        params = obj(frame.params)
        if frame.direction is Direction.FROM_TARGET:
            thread_id, turn_id = self._ids_of(frame)
            turn = self.turn_of(frame)
            key = (turn.thread_id if turn else thread_id, turn_id, text(params.get("itemId")))
            self._questions.setdefault(key, []).append(frame)
        elif frame.method == "thread/rollback":
            # The specification does not show its params, so it may be of any thread.
            self._rolled_back = frame
        elif frame.method in ("thread/unsubscribe", "thread/archive", "thread/resume"):
            self._add_gap(frame, text(params.get("threadId")))
        elif frame.method == "turn/interrupt":
            self._on_interrupt(text(params.get("threadId")), text(params.get("turnId")), frame)

    def _add_gap(self, frame: Frame, thread_id: str) -> None:
        """Note that the client leaves or reopens a thread; drop the deltas of its open items."""
        for thread in [self.thread(thread_id)] if thread_id else self.threads.values():
            gaps = (
                thread.resume_requests if frame.method == "thread/resume" else thread.leaving_frames
            )
            gaps.append(frame)
            for turn in thread.turns.values():
                for item in turn.items.values():
                    if item.is_open:
                        item.has_all_deltas = False
                        item.parts.clear()

    def _on_interrupt(self, thread_id: str, turn_id: str, frame: Frame) -> None:
        """Add an interrupt to its turn; with a wrong thread, to all turns of that id."""
        turn = self.turn_at(thread_id, turn_id)
        for candidate in [turn] if turn is not None else self._turns_by_id.get(turn_id, ()):
            candidate.interrupts.append(frame)

    def _on_answer(self, frame: Frame, request: Frame) -> None:
        if frame.direction is Direction.TO_TARGET:
            return
        if request.method in OPENING_METHODS:
            thread_id = text(dig(frame.result, "thread", "id"))
            if thread_id:
                thread = self.thread(thread_id)
                thread.opening_answers.append(frame)
                if request.method == "thread/start":
                    thread.request, thread.reply = request, frame
        elif request.method == "turn/start":
            turn_id = text(dig(frame.result, "turn", "id"))
            if turn_id:
                thread_id = text(obj(request.params).get("threadId"))
                turn = self._get_or_add_turn(thread_id, turn_id, begins=True)
                # A second turn/start may be answered with the running turn, which the first began.
                if turn.request is None:
                    turn.request, turn.reply = request, frame

    def _on_notification(self, frame: Frame) -> None:
        method, params = frame.method, obj(frame.params)
        if method.startswith("item/"):
            self._on_item(method, params, frame)
        elif method in ("turn/started", "turn/completed"):
            turn_id = text(dig(params, "turn", "id"))
            if turn_id:
                begins = method == "turn/started"
                turn = self._get_or_add_turn(text(params.get("threadId")), turn_id, begins=begins)
                if method == "turn/started":
                    turn.starts.append(frame)
                else:
                    turn.completions.append(frame)
                    self._finished_items.extend(turn.items.values())
        elif method in ("thread/archived", "thread/closed"):
            # The specification does not show the payload of thread/closed: it may name no thread.
            named = text(params.get("threadId"))
            for thread in [self.thread(named)] if named else self.threads.values():
                thread.archive_notifications.append(frame)
            if method == "thread/archived":
                self._add_gap(frame, named)
        elif method == "thread/status/changed":
            self.thread(text(params.get("threadId"))).statuses.append(frame)
        elif method == "thread/started":
            thread_id = text(dig(params, "thread", "id"))
            if thread_id:
                self.thread(thread_id).starts.append(frame)
        elif method == "error" and text(params.get("turnId")):
            thread_id, turn_id = self._ids_of(frame)
            self._get_or_add_turn(thread_id, turn_id).errors.append(frame)
        elif method == "turn/diff/updated":
            turn = self.turn_of(frame)
            if turn is not None:
                turn.diffs.append(frame)

    def _on_item(self, method: str, params: dict[str, Any], frame: Frame) -> None:
        turn_id, item_id = text(params.get("turnId")), _item_id(frame)
        item_object = obj(params.get("item"))
        if not turn_id or not item_id:
            return
        thread_id = text(params.get("threadId"))
        turn = self.turn_at(thread_id, turn_id)
        if turn is not None and turn.thread_id:
            # This message cannot change which turn these ids name.
            self._latest, self._latest_turn = frame, turn
        else:
            turn = turn or self._turn_of_item(turn_id, item_id)
            if turn is None or not turn.thread_id:
                turn = self._get_or_add_turn(thread_id, turn_id)
        item = turn.items.get(item_id)
        if item is None:
            item = turn.items[item_id] = ItemView(item_id, turn)
        if method == "item/started":
            item.starts.append(frame)
            item.type = text(item_object.get("type")) or item.type
            # A second start (a server that opens the same id again for a retry) begins anew.
            item.parts.clear()
            item.has_all_deltas = item.has_all_deltas or bool(item.completions)
        elif method == "item/completed":
            item.completions.append(frame)
            self._finished_items.append(item)
            item.type = item.type or text(item_object.get("type"))
        elif "delta" in params:
            item.first_delta = item.first_delta or frame
            item.last_delta = frame
            if not item.has_all_deltas:
                return
            index = params.get("summaryIndex", params.get("contentIndex", 0))
            key = (method, index if isinstance(index, int) else 0)
            item.parts.setdefault(key, []).append(text(params["delta"]))


def conversation_of(trace: Trace) -> Conversation:
    """Return the view of a whole trace."""
    view = Conversation()
    for frame in trace.frames:
        view.feed(frame)
    return view


def turns_of(thread: Any) -> list[dict[str, Any]]:
    """Return the turn objects inside a thread object."""
    return [obj(turn) for turn in arr(obj(thread).get("turns"))]


def items_of(turn: Any) -> list[dict[str, Any]]:
    """Return the item objects inside a turn object."""
    return [obj(item) for item in arr(obj(turn).get("items"))]


def _item_id(frame: Frame) -> str:
    """Return the item that a message names, "" if it names none."""
    params = obj(frame.params)
    return text(params.get("itemId")) or text(dig(params, "item", "id"))
