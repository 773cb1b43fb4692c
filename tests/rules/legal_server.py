"""A small model of a legal server: its state, and its queues of messages.

Every message is one that a server may send that obeys all stated requirements.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

from tests.rules.approval_talk import CWD, FILE
from tests.rules.legal_tape import Habits, Tape
from tests.rules.traces import Talk, settings, thread_object, turn_object

Item = dict[str, Any]


class Wire(Talk):
    """A talk whose server may write the member `jsonrpc`."""

    tagged = False

    def says(self, message: Any, *, note: str = "") -> Self:
        """Add a message of the server."""
        return super().says({"jsonrpc": "2.0", **message} if self.tagged else message, note=note)


@dataclass(slots=True)
class Turn:
    """A turn in the server's state; `cut` if it must end as interrupted."""

    id: str
    thread: "Thread"
    policy: str
    items: list[Item] = field(default_factory=list[Item])
    open: dict[str, Item] = field(default_factory=dict[str, Item])
    changed: list[str] = field(default_factory=list[str])
    steered: list[str] = field(default_factory=list[str])
    known: bool = False
    cut: bool = False

    def stored(self, status: str, error: Any = None) -> dict[str, Any]:
        """Return the turn with its items, as history shows it."""
        return turn_object(self.id, status, items=list(self.items), error=error)


@dataclass(slots=True)
class Thread:
    """A thread in the server's state; `policy` is "" if no message has shown it."""

    id: str
    policy: str
    subscribers: set[str]
    turns: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    active: Turn | None = None
    status: str = "idle"
    preview: str = ""
    loaded: bool = True
    archived: bool = False
    remembered: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class Question:
    """A server request, with its state and decision."""

    id: int
    turn: Turn
    connection: str
    method: str
    asked: bool = False
    decision: str = ""
    over: bool = False


class LegalServer:
    """State of a legal server; its messages wait in `queues` until `flush` sends them."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.habits = Habits.chosen(tape)
        self.talk = Wire()
        self.talk.tagged = self.habits.tagged
        self.threads: dict[str, Thread] = {}
        self.questions: list[Question] = []
        self.work: list[Iterator[None]] = []
        self.queues: dict[tuple[str, str], deque[Callable[[], object]]] = {}
        self.requests = 0
        self._count = 0

    def number(self) -> int:
        """Return the next number, for ids and texts of all kinds."""
        self._count += 1
        return self._count

    def request(self, connection: str, method: str, **params: Any) -> int:
        """Add a request of the client and return its id."""
        self.requests += 1
        message = {"method": method, "id": self.requests, "params": params}
        self.talk.on(connection).sends(message)
        return self.requests

    def answer(self, connection: str, request: int, result: dict[str, Any]) -> None:
        """Send a result at once, before queued notifications."""
        self.talk.on(connection).answers({**result, **self.habits.extra()}, to=request)

    def refuse(self, connection: str, request: int, why: str) -> None:
        """Send an error as the response to a request."""
        self.talk.on(connection).refuses(why, to=request)

    def tell(
        self, thread: Thread, method: str, then: Callable[[], None] | None = None, /, **params: Any
    ) -> None:
        """Queue a notification to all subscribers; `then` is called when it is sent."""
        for connection in sorted(thread.subscribers):
            self._queue(thread, connection, {"method": method, "params": params}, then)

    def ask(self, turn: Turn, method: str, item: str, **params: Any) -> Question:
        """Queue a server request to one of the subscribers and return it."""
        thread = turn.thread
        connection = self.tape.one(sorted(thread.subscribers))
        question = Question(self.number(), turn, connection, method)
        self.questions.append(question)

        def sent() -> None:
            question.asked = True

        where = {"threadId": thread.id, "turnId": turn.id, "itemId": item, **params}
        asks = {"method": method, "id": question.id, "params": {**where, "reason": "may I?"}}
        self._queue(thread, connection, asks, sent)
        return question

    def resolve(self, question: Question) -> None:
        """Queue serverRequest/resolved, for an answered or a withdrawn request."""
        question.over = True
        thread = question.turn.thread
        self.tell(thread, "serverRequest/resolved", threadId=thread.id, requestId=question.id)

    def move(self, thread: Thread, status: str) -> None:
        """Change a thread's status, and queue thread/status/changed if it differs."""
        if thread.status != status:
            thread.status = status
            told = self.shown_status(status)
            self.tell(thread, "thread/status/changed", threadId=thread.id, status=told)

    def shown_status(self, status: str) -> dict[str, Any]:
        """Return a status as a JSON object."""
        flags = ["x"] if self.habits.more else []
        return {"type": status, "activeFlags": flags} if status == "active" else {"type": status}

    def flush(self, key: tuple[str, str]) -> None:
        """Send the first message of a queue."""
        waiting = self.queues[key]
        waiting.popleft()()
        if not waiting:
            del self.queues[key]

    def drain(self, thread: Thread) -> None:
        """Send all queued messages of a thread."""
        for key in [key for key in self.queues if key[0] == thread.id]:
            while key in self.queues:
                self.flush(key)

    def shown(self, thread: Thread, *, live: bool, **more: Any) -> dict[str, Any]:
        """Return a thread as a result shows it."""
        status = self.shown_status(thread.status if live and thread.loaded else "notLoaded")
        said = {"preview": thread.preview, "status": status, **self.habits.extra()}
        return thread_object(thread.id, **said, **more)

    def history(self, thread: Thread) -> list[dict[str, Any]]:
        """Return the turns of a thread with their items, the running one if that is the habit."""
        running = thread.active
        if running is None or thread.status != "active" or not self.habits.running_is_read:
            return list(thread.turns)
        return [*thread.turns, running.stored("inProgress")]

    def reply(self, thread: Thread, **more: Any) -> dict[str, Any]:
        """Return the result of thread/start or thread/resume."""
        told = settings()
        # The result shows the policy, so it is known from now on.
        thread.policy = thread.policy or str(told["approvalPolicy"])
        told["approvalPolicy"] = thread.policy
        return {"thread": self.shown(thread, live=True, **more), **told}

    def _queue(
        self,
        thread: Thread,
        connection: str,
        message: dict[str, Any],
        then: Callable[[], None] | None,
    ) -> None:
        def out() -> None:
            self.talk.on(connection).says(message)
            if then is not None:
                then()

        key = (thread.id, connection)
        self.queues.setdefault(key, deque()).append(out)
        if not self.habits.queues:
            self.flush(key)


def question_of(method: str, words: str) -> dict[str, Any]:
    """Return the params of an approval request that depend on its method."""
    if method == FILE:
        return {}
    return {"command": words.split(), "cwd": CWD, "commandActions": []}
