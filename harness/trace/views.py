"""The conversation that a trace shows: threads, turns, items, and which request an answer answers.

A projection without judgement: it takes whatever comes, keeps frames where rules can find them,
and never says that anything is wrong. It is fed frame by frame, so a live stream and a stored
trace give the same view; a handler sees the view with its frame already in it.

Nothing says how far the id of a turn is unique. So a turn is known by its thread and its id: a
server may count the turns of each thread from one.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from harness.protocol.values import arr, dig, obj, text
from harness.trace.correlation import Correlation
from harness.trace.frame import Direction, Frame, Kind
from harness.trace.order import came_before
from harness.trace.trace import Trace

# The requests whose answer gives a thread to the client that asked.
OPENING = ("thread/start", "thread/resume", "thread/fork")


@dataclass(slots=True, eq=False)
class ItemView:
    """One item id within one turn.

    `parts` maps (delta method, index) to the texts received since the item was last started; after
    the client left its thread, or opened it anew, no more are kept, since some may have been missed
    or told again (`whole`). They are let go with the message after its item/completed, or after its
    turn's end: what the deltas add up to can be asked at these two, and a long conversation does
    not grow by its deltas.
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
    whole: bool = True

    @property
    def subject(self) -> str:
        """Return its name in findings."""
        return f"item {self.id} of {self.turn.subject}"

    @property
    def is_open(self) -> bool:
        """Return whether it has begun, and has not been completed since."""
        if not self.started:
            return False
        return not self.completed or came_before(self.completed[-1], self.started[-1])

    def joined(self, method: str, index: int = 0) -> str | None:
        """The concatenated deltas of one method and index, None where there were none."""
        parts = self.parts.get((method, index))
        return None if parts is None else "".join(parts)


@dataclass(slots=True, eq=False)
class TurnView:
    """One turn id of one thread, however it first appeared.

    `key` tells it from every other turn of the connection: its id, with its thread where a turn of
    another thread had the same id before. `thread_id` is "" while no message has named the thread.
    """

    id: str
    thread_id: str = ""
    key: str = ""
    request: Frame | None = None
    reply: Frame | None = None
    started: list[Frame] = field(default_factory=list[Frame])
    completed: list[Frame] = field(default_factory=list[Frame])
    errors: list[Frame] = field(default_factory=list[Frame])
    interrupts: list[Frame] = field(default_factory=list[Frame])
    diffs: list[Frame] = field(default_factory=list[Frame])
    items: dict[str, ItemView] = field(default_factory=dict[str, ItemView])

    @property
    def subject(self) -> str:
        """Return its name in findings."""
        return f"turn {self.key}"

    @property
    def status(self) -> str:
        """The status of its last `turn/completed`, "" before it."""
        return text(dig(self.completed[-1].params, "turn", "status")) if self.completed else ""


@dataclass(slots=True, eq=False)
class ThreadView:
    """One thread id, with everything that named it.

    `request` and `reply` are of its thread/start; `opened` holds the answers of thread/start,
    thread/resume and thread/fork that gave it to this client. `left` are the messages by which it
    left it, or may have: its thread/unsubscribe (whose params are not shown, so it may be any), and
    an archiving, its own or one that it is told of, which may close the thread. `resumed` are the
    requests by which it opened it again: what is told in between may not come here, or come twice.
    `put_away` are the notifications that it was archived or closed: nobody need follow it then.
    """

    id: str
    request: Frame | None = None
    reply: Frame | None = None
    opened: list[Frame] = field(default_factory=list[Frame])
    started: list[Frame] = field(default_factory=list[Frame])
    left: list[Frame] = field(default_factory=list[Frame])
    resumed: list[Frame] = field(default_factory=list[Frame])
    put_away: list[Frame] = field(default_factory=list[Frame])
    statuses: list[Frame] = field(default_factory=list[Frame])
    turns: dict[str, TurnView] = field(default_factory=dict[str, TurnView])

    @property
    def subject(self) -> str:
        """Return its name in findings."""
        return f"thread {self.id}"


class Conversation:
    """The frames so far. Feed each frame once, in order.

    `turns` has them by their `key`; a message finds its turn by `turn_of`, a pair of ids by
    `turn_at`.
    """

    def __init__(self) -> None:
        self.threads: dict[str, ThreadView] = {}
        self.turns: dict[str, TurnView] = {}
        self._alike: dict[str, list[TurnView]] = {}
        self._rolled_back: Frame | None = None
        self._correlation = Correlation()
        self._questions: dict[tuple[str, str, str], list[Frame]] = {}
        self._over: list[ItemView] = []
        # The turn of the message that came last, which many rules ask for one after the other.
        self._latest: Frame | None = None
        self._latest_turn: TurnView | None = None

    def feed(self, frame: Frame) -> None:
        """Take one frame in."""
        self._latest = None
        asked = self._correlation.feed(frame)
        if self._over:
            for item in self._over:
                item.parts.clear()
            self._over.clear()
        if frame.kind is Kind.NOTIFICATION:
            if frame.direction is Direction.FROM_TARGET:
                self._notification(frame)
        elif frame.kind is Kind.REQUEST:
            self._request(frame)
        elif asked is not None and frame.kind is Kind.RESPONSE:
            self._answer(frame, asked)
        if self._latest is None:
            self._latest_turn = self.turn_of(frame)
            self._latest = frame

    def request_of(self, answer: Frame) -> Frame | None:
        """The request that an answer answers, None for an answer to nothing."""
        return self._correlation.request_of(answer)

    @property
    def requests(self) -> Iterable[Frame]:
        """The requests of both sides that can be answered; of each id the last one."""
        return self._correlation.requests

    def questions_of(self, turn: TurnView, item_id: str) -> list[Frame]:
        """The server requests that name an item of a turn, in order."""
        return self._questions.get((turn.thread_id, turn.id, item_id), [])

    def answer_of(self, question: Frame) -> Frame | None:
        """The first answer to a request, None while there is none."""
        return self._correlation.answer_of(question)

    def thread(self, thread_id: str) -> ThreadView:
        """The view of a thread, made when first asked for."""
        view = self.threads.get(thread_id)
        if view is None:
            view = self.threads[thread_id] = ThreadView(thread_id)
        return view

    def turn_at(self, thread_id: str, turn_id: str) -> TurnView | None:
        """The turn of that id on that thread, None while nothing has named it.

        Without a thread it is the last turn of that id; one whose thread nothing has named yet is
        that of any thread.
        """
        alike = self._alike.get(turn_id)
        if alike is None:
            return None
        if not thread_id:
            return alike[-1]
        for wanted in (thread_id, ""):
            for turn in alike:
                if turn.thread_id == wanted:
                    return turn
        return None

    def turn_of(self, frame: Frame) -> TurnView | None:
        """The turn that a message is about: a notification, a request, an answer to turn/start.

        It is named by `turnId` or the id of its `turn`, and by `threadId`. A message that names a
        thread without such a turn, and an open item of a turn of that id, is about that turn.
        """
        if frame is self._latest:
            return self._latest_turn
        thread_id, turn_id = self._named(frame)
        if not turn_id:
            return None
        turn = self.turn_at(thread_id, turn_id)
        return self._by_item(turn_id, _item_id(frame)) if turn is None else turn

    def key_of(self, frame: Frame) -> str:
        """The key of the turn that a message is about, its id while there is no view of it."""
        turn = self.turn_of(frame)
        return self._named(frame)[1] if turn is None else turn.key

    def item_of(self, frame: Frame) -> ItemView | None:
        """The item that a notification names (`itemId`, or the id of its `item`)."""
        turn, item_id = self.turn_of(frame), _item_id(frame)
        return turn.items.get(item_id) if turn is not None and item_id else None

    def _named(self, frame: Frame) -> tuple[str, str]:
        """The ids of thread and turn that a message names, "" for one that it does not."""
        if frame.kind is Kind.RESPONSE:
            asked = self.request_of(frame)
            thread_id = text(obj(asked.params).get("threadId")) if asked is not None else ""
            return thread_id, text(dig(frame.result, "turn", "id"))
        params = obj(frame.params)
        turn_id = text(params.get("turnId")) or text(dig(params, "turn", "id"))
        return text(params.get("threadId")), turn_id

    def _by_item(self, turn_id: str, item_id: str) -> TurnView | None:
        """The one turn of this id that has begun an item of that id and not completed it."""
        found = [
            turn
            for turn in self._alike.get(turn_id, ())
            if item_id in turn.items and turn.items[item_id].is_open
        ]
        return found[0] if len(found) == 1 else None

    def _dropped(self, turn: TurnView) -> bool:
        """Return whether a rollback may have dropped a turn, so that its id may be given again."""
        rolled_back = self._rolled_back
        if rolled_back is None or not turn.completed:
            return False
        return came_before(turn.completed[-1], rolled_back)

    def _made(self, thread_id: str, turn_id: str, *, begins: bool = False) -> TurnView:
        """The view of a turn, made where there is none, or one `begins` whose id was dropped."""
        turn = self.turn_at(thread_id, turn_id)
        again = turn if begins and turn is not None and self._dropped(turn) else None
        if turn is None or again is not None:
            alike = self._alike.setdefault(turn_id, [])
            key = f"{turn_id} of {thread_id}" if alike else turn_id
            if again is not None:
                alike.remove(again)
                key = f"{again.key} again"
            turn = self.turns[key] = TurnView(turn_id, key=key)
            alike.append(turn)
        if thread_id and not turn.thread_id:
            turn.thread_id = thread_id
            self.thread(thread_id).turns[turn.id] = turn
        return turn

    def _request(self, frame: Frame) -> None:
        params = obj(frame.params)
        if frame.direction is Direction.FROM_TARGET:
            thread_id, turn_id = self._named(frame)
            turn = self.turn_of(frame)
            named = (turn.thread_id if turn else thread_id, turn_id, text(params.get("itemId")))
            self._questions.setdefault(named, []).append(frame)
        elif frame.method == "thread/rollback":
            # Its params are not shown, so it may be of any thread.
            self._rolled_back = frame
        elif frame.method in ("thread/unsubscribe", "thread/archive", "thread/resume"):
            self._gap(frame, text(params.get("threadId")))
        elif frame.method == "turn/interrupt":
            self._interrupt(text(params.get("threadId")), text(params.get("turnId")), frame)

    def _gap(self, frame: Frame, thread_id: str) -> None:
        """The client leaves a thread, or opens it again: of open items not everything may come."""
        for thread in [self.thread(thread_id)] if thread_id else self.threads.values():
            gaps = thread.resumed if frame.method == "thread/resume" else thread.left
            gaps.append(frame)
            for turn in thread.turns.values():
                for item in turn.items.values():
                    if item.is_open:
                        item.whole = False
                        item.parts.clear()

    def _interrupt(self, thread_id: str, turn_id: str, frame: Frame) -> None:
        """One that names another thread than the turn's may mean any turn of that id."""
        turn = self.turn_at(thread_id, turn_id)
        for meant in [turn] if turn is not None else self._alike.get(turn_id, ()):
            meant.interrupts.append(frame)

    def _answer(self, frame: Frame, asked: Frame) -> None:
        if frame.direction is Direction.TO_TARGET:
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
                thread_id = text(obj(asked.params).get("threadId"))
                turn = self._made(thread_id, turn_id, begins=True)
                # A second turn/start can be answered with the turn that runs: the first began it.
                if turn.request is None:
                    turn.request, turn.reply = asked, frame

    def _notification(self, frame: Frame) -> None:
        method, params = frame.method, obj(frame.params)
        if method.startswith("item/"):
            self._item(method, params, frame)
        elif method in ("turn/started", "turn/completed"):
            turn_id = text(dig(params, "turn", "id"))
            if turn_id:
                begins = method == "turn/started"
                turn = self._made(text(params.get("threadId")), turn_id, begins=begins)
                if method == "turn/started":
                    turn.started.append(frame)
                else:
                    turn.completed.append(frame)
                    self._over.extend(turn.items.values())
        elif method in ("thread/archived", "thread/closed"):
            # The payload of thread/closed is not shown: one that names no thread may be of any.
            named = text(params.get("threadId"))
            for thread in [self.thread(named)] if named else self.threads.values():
                thread.put_away.append(frame)
            if method == "thread/archived":
                self._gap(frame, named)
        elif method == "thread/status/changed":
            self.thread(text(params.get("threadId"))).statuses.append(frame)
        elif method == "thread/started":
            thread_id = text(dig(params, "thread", "id"))
            if thread_id:
                self.thread(thread_id).started.append(frame)
        elif method == "error" and text(params.get("turnId")):
            thread_id, turn_id = self._named(frame)
            self._made(thread_id, turn_id).errors.append(frame)
        elif method == "turn/diff/updated":
            turn = self.turn_of(frame)
            if turn is not None:
                turn.diffs.append(frame)

    def _item(self, method: str, params: dict[str, Any], frame: Frame) -> None:
        turn_id, item_id = text(params.get("turnId")), _item_id(frame)
        whole = obj(params.get("item"))
        if not turn_id or not item_id:
            return
        thread_id = text(params.get("threadId"))
        turn = self.turn_at(thread_id, turn_id)
        if turn is not None and turn.thread_id:
            # What comes of this message cannot change which turn these ids name.
            self._latest, self._latest_turn = frame, turn
        else:
            turn = turn or self._by_item(turn_id, item_id)
            if turn is None or not turn.thread_id:
                turn = self._made(thread_id, turn_id)
        item = turn.items.get(item_id)
        if item is None:
            item = turn.items[item_id] = ItemView(item_id, turn)
        if method == "item/started":
            item.started.append(frame)
            item.type = text(whole.get("type")) or item.type
            # A second start (a server that opens the same id again for a retry) begins anew.
            item.parts.clear()
            item.whole = item.whole or bool(item.completed)
        elif method == "item/completed":
            item.completed.append(frame)
            self._over.append(item)
            item.type = item.type or text(whole.get("type"))
        elif "delta" in params:
            item.first_delta = item.first_delta or frame
            item.last_delta = frame
            if not item.whole:
                return
            index = params.get("summaryIndex", params.get("contentIndex", 0))
            key = (method, index if isinstance(index, int) else 0)
            item.parts.setdefault(key, []).append(text(params["delta"]))


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


def _item_id(frame: Frame) -> str:
    """The item that a message names, "" where it names none."""
    params = obj(frame.params)
    return text(params.get("itemId")) or text(dig(params, "item", "id"))
