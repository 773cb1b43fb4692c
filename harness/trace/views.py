"""The conversation that a trace shows: threads, turns, items, and which request an answer answers.

A projection without judgement: it takes whatever comes, keeps frames where rules can find them,
and never says that anything is wrong. It is fed frame by frame, so a live stream and a stored
trace give the same view; a handler sees the view with its frame already in it.
"""

from dataclasses import dataclass, field
from typing import Any

from harness.trace.frame import Direction, Frame, Kind
from harness.trace.trace import Trace
from harness.trace.values import arr, dig, obj, text

# The requests whose answer gives a thread to the client that asked.
OPENING = ("thread/start", "thread/resume", "thread/fork")


@dataclass(slots=True, eq=False)
class ItemView:
    """One item id within one turn.

    `parts` maps (delta method, index) to the texts received since the item was last started. They
    are let go with the message after its item/completed, or after its turn's end: what the deltas
    add up to can be asked at these two, and a long conversation does not grow by its deltas.
    """

    id: str
    turn: "TurnView"
    type: str = ""
    started: list[Frame] = field(default_factory=list[Frame])
    completed: list[Frame] = field(default_factory=list[Frame])
    first_delta: Frame | None = None
    last_delta: Frame | None = None
    parts: dict[tuple[str, int], list[str]] = field(
        default_factory=dict[tuple[str, int], list[str]]
    )

    @property
    def subject(self) -> str:
        """How findings name it."""
        return f"item {self.id} of turn {self.turn.id}"

    def joined(self, method: str, index: int = 0) -> str | None:
        """The concatenated deltas of one method and index, None where there were none."""
        parts = self.parts.get((method, index))
        return None if parts is None else "".join(parts)


@dataclass(slots=True, eq=False)
class TurnView:
    """One turn id, however it first appeared."""

    id: str
    thread_id: str = ""
    request: Frame | None = None
    reply: Frame | None = None
    started: list[Frame] = field(default_factory=list[Frame])
    completed: list[Frame] = field(default_factory=list[Frame])
    errors: list[Frame] = field(default_factory=list[Frame])
    interrupts: list[Frame] = field(default_factory=list[Frame])
    items: dict[str, ItemView] = field(default_factory=dict[str, ItemView])

    @property
    def subject(self) -> str:
        """How findings name it."""
        return f"turn {self.id}"

    @property
    def status(self) -> str:
        """The status of its last `turn/completed`, "" before it."""
        return text(dig(self.completed[-1].params, "turn", "status")) if self.completed else ""


@dataclass(slots=True, eq=False)
class ThreadView:
    """One thread id, with everything that named it.

    `request` and `reply` are of its thread/start; `opened` holds the answers of thread/start,
    thread/resume and thread/fork that gave it to this client.
    """

    id: str
    request: Frame | None = None
    reply: Frame | None = None
    opened: list[Frame] = field(default_factory=list[Frame])
    started: list[Frame] = field(default_factory=list[Frame])
    statuses: list[Frame] = field(default_factory=list[Frame])
    turns: dict[str, TurnView] = field(default_factory=dict[str, TurnView])

    @property
    def subject(self) -> str:
        """How findings name it."""
        return f"thread {self.id}"


class Conversation:
    """What the frames so far say. Feed each frame once, in order."""

    def __init__(self) -> None:
        self.threads: dict[str, ThreadView] = {}
        self.turns: dict[str, TurnView] = {}
        self.requests: dict[tuple[str, Direction, str, Any], Frame] = {}
        self._asked: dict[int, Frame] = {}
        self._questions: dict[tuple[str, str], list[Frame]] = {}
        self._answers: dict[int, Frame] = {}
        self._over: list[ItemView] = []

    def feed(self, frame: Frame) -> None:
        """Take one frame in."""
        if self._over:
            for item in self._over:
                item.parts.clear()
            self._over.clear()
        if frame.kind is Kind.NOTIFICATION:
            if frame.direction is Direction.FROM_TARGET:
                self._notification(frame)
        elif frame.kind is Kind.REQUEST:
            self._request(frame)
        elif frame.kind is not Kind.MALFORMED:
            self._answer(frame)

    def request_of(self, answer: Frame) -> Frame | None:
        """The request that an answer answers, None for an answer to nothing."""
        return self._asked.get(answer.seq)

    def questions_of(self, turn_id: str, item_id: str) -> list[Frame]:
        """The server requests that name an item of a turn, in order."""
        return self._questions.get((turn_id, item_id), [])

    def answer_of(self, question: Frame) -> Frame | None:
        """Our first answer to a server request, None while there is none."""
        return self._answers.get(question.seq)

    def thread(self, thread_id: str) -> ThreadView:
        """The view of a thread, made when first asked for."""
        view = self.threads.get(thread_id)
        if view is None:
            view = self.threads[thread_id] = ThreadView(thread_id)
        return view

    def turn(self, turn_id: str) -> TurnView:
        """The view of a turn, made when first asked for."""
        view = self.turns.get(turn_id)
        if view is None:
            view = self.turns[turn_id] = TurnView(turn_id)
        return view

    def turn_of(self, frame: Frame) -> TurnView | None:
        """The turn that a notification names (`turnId`, or the id of its `turn`)."""
        params = obj(frame.params)
        turn_id = text(params.get("turnId")) or text(dig(params, "turn", "id"))
        return self.turns.get(turn_id) if turn_id else None

    def item_of(self, frame: Frame) -> ItemView | None:
        """The item that a notification names (`itemId`, or the id of its `item`)."""
        params = obj(frame.params)
        turn = self.turns.get(text(params.get("turnId")))
        item_id = text(params.get("itemId")) or text(dig(params, "item", "id"))
        return turn.items.get(item_id) if turn is not None and item_id else None

    def _request(self, frame: Frame) -> None:
        key = _key(frame)
        if key is not None:
            self.requests[key] = frame
        params = obj(frame.params)
        if frame.direction is Direction.FROM_TARGET:
            named = (text(params.get("turnId")), text(params.get("itemId")))
            self._questions.setdefault(named, []).append(frame)
        elif frame.method == "turn/interrupt":
            self.turn(text(params.get("turnId"))).interrupts.append(frame)

    def _answer(self, frame: Frame) -> None:
        key = _key(frame, answers=True)
        asked = self.requests.get(key) if key is not None else None
        if asked is None:
            return
        self._asked[frame.seq] = asked
        if frame.direction is Direction.TO_TARGET:
            self._answers.setdefault(asked.seq, frame)
        if frame.kind is not Kind.RESPONSE or frame.direction is Direction.TO_TARGET:
            return
        if asked.method in OPENING:
            thread_id = text(dig(frame.result, "thread", "id"))
            if thread_id:
                thread = self.thread(thread_id)
                thread.opened.append(frame)
                if asked.method == "thread/start":
                    thread.request, thread.reply = asked, frame
        elif asked.method == "turn/start":
            turn_id = text(dig(frame.result, "turn", "id"))
            if turn_id:
                turn = self.turn(turn_id)
                # A second turn/start can be answered with the turn that runs: the first began it.
                if turn.request is None:
                    turn.request, turn.reply = asked, frame
                self._place(turn, text(obj(asked.params).get("threadId")))

    def _notification(self, frame: Frame) -> None:
        method, params = frame.method, obj(frame.params)
        if method.startswith("item/"):
            self._item(method, params, frame)
        elif method in ("turn/started", "turn/completed"):
            turn_id = text(dig(params, "turn", "id"))
            if turn_id:
                turn = self.turn(turn_id)
                self._place(turn, text(params.get("threadId")))
                if method == "turn/started":
                    turn.started.append(frame)
                else:
                    turn.completed.append(frame)
                    self._over.extend(turn.items.values())
        elif method == "thread/status/changed":
            self.thread(text(params.get("threadId"))).statuses.append(frame)
        elif method == "thread/started":
            thread_id = text(dig(params, "thread", "id"))
            if thread_id:
                self.thread(thread_id).started.append(frame)
        elif method == "error" and text(params.get("turnId")):
            self.turn(text(params.get("turnId"))).errors.append(frame)

    def _item(self, method: str, params: dict[str, Any], frame: Frame) -> None:
        turn_id = text(params.get("turnId"))
        whole = obj(params.get("item"))
        item_id = text(params.get("itemId")) or text(whole.get("id"))
        if not turn_id or not item_id:
            return
        turn = self.turn(turn_id)
        if not turn.thread_id:
            self._place(turn, text(params.get("threadId")))
        item = turn.items.get(item_id)
        if item is None:
            item = turn.items[item_id] = ItemView(item_id, turn)
        if method == "item/started":
            item.started.append(frame)
            item.type = text(whole.get("type")) or item.type
            # A second start (a server that opens the same id again for a retry) begins anew.
            item.parts.clear()
        elif method == "item/completed":
            item.completed.append(frame)
            self._over.append(item)
            item.type = item.type or text(whole.get("type"))
        elif "delta" in params:
            item.first_delta = item.first_delta or frame
            item.last_delta = frame
            index = params.get("summaryIndex", params.get("contentIndex", 0))
            key = (method, index if isinstance(index, int) else 0)
            item.parts.setdefault(key, []).append(text(params["delta"]))

    def _place(self, turn: TurnView, thread_id: str) -> None:
        if thread_id and not turn.thread_id:
            turn.thread_id = thread_id
            self.thread(thread_id).turns[turn.id] = turn


def conversation_of(trace: Trace) -> Conversation:
    """The view of a whole trace."""
    view = Conversation()
    for frame in trace.frames:
        view.feed(frame)
    return view


def turns_of(thread: Any) -> list[dict[str, Any]]:
    """The turn objects inside a thread object."""
    return [obj(turn) for turn in arr(obj(thread).get("turns"))]


def items_of(turn: Any) -> list[dict[str, Any]]:
    """The item objects inside a turn object."""
    return [obj(item) for item in arr(obj(turn).get("items"))]


def _key(frame: Frame, *, answers: bool = False) -> tuple[str, Direction, str, Any] | None:
    """Requests and answers meet by connection, direction of the request, and id with its type."""
    identifier = frame.id
    if isinstance(identifier, bool) or not isinstance(identifier, str | int | float):
        return None
    direction = frame.direction
    if answers:
        direction = (
            Direction.TO_TARGET if direction is Direction.FROM_TARGET else Direction.FROM_TARGET
        )
    kind = "text" if isinstance(identifier, str) else "number"
    return (frame.connection, direction, kind, identifier)
