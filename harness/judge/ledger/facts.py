"""Facts about threads and turns at a moment of a trace, on all its connections.

A fact is what the server has told; where it told nothing, nothing is assumed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from harness.protocol.values import MISSING, arr, dig, obj, text
from harness.trace.frame import Direction, Frame, Kind
from harness.trace.marks import Closed, MarkBody, ServerEnded

_OPENING = ("thread/start", "thread/resume", "thread/fork")
# Settings that the reply of thread/start names; turn/start takes some under another name.
_SETTINGS = {"model": "model", "cwd": "cwd", "approvalPolicy": "approvalPolicy"}


@dataclass(slots=True)
class ThreadFacts:
    """Facts about one thread. `turns` are the ids of its turns, in the order of their start.

    `loaded` is None while nobody told. `running` is the turn in progress, `stopping` the last that
    the client wanted interrupted, `interrupted` the one for which that was granted. `cut` are turns
    whose server ended while they ran. `settings` are those in force by what was told and granted.
    """

    id: str
    known: bool = False
    loaded: bool | None = None
    archived: bool = False
    ephemeral: bool = False
    name: str | None = None
    forked: bool = False
    subscribers: set[str] = field(default_factory=set[str])
    turns: list[str] = field(default_factory=list[str])
    running: str = ""
    interrupted: str = ""
    stopping: str = ""
    cut: list[str] = field(default_factory=list[str])
    ends: dict[str, str] = field(default_factory=dict[str, str])
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    status: str = ""


class Facts:
    """The facts so far. Feed each frame and mark once, in order."""

    def __init__(self) -> None:
        self.threads: dict[str, ThreadFacts] = {}
        self.open_connections: set[str] = set()
        self.restarts = 0

    def thread(self, thread_id: str) -> ThreadFacts:
        """Return the facts of a thread, made when first asked for."""
        facts = self.threads.get(thread_id)
        if facts is None:
            facts = self.threads[thread_id] = ThreadFacts(thread_id)
        return facts

    def named(self, params: Any) -> ThreadFacts:
        """The thread that some params name; a blank one where they name none."""
        thread_id = text(obj(params).get("threadId"))
        return self.threads.get(thread_id) or ThreadFacts(thread_id)

    def feed(self, frame: Frame, asked: Frame | None) -> None:
        """Take one frame in; `asked` is the request that it answers."""
        if frame.direction is Direction.TO_TARGET:
            self.open_connections.add(frame.connection)
            if frame.method == "turn/interrupt":
                self.named(frame.params).stopping = text(obj(frame.params).get("turnId"))
            return
        if frame.kind is Kind.NOTIFICATION:
            self._notified(frame)
        elif frame.kind is Kind.RESPONSE and asked is not None:
            self._granted(asked, frame)

    def feed_mark(self, body: MarkBody) -> None:
        """Take what happened between frames."""
        if isinstance(body, Closed):
            self.open_connections.discard(body.connection)
            for thread in self.threads.values():
                thread.subscribers.discard(body.connection)
        elif isinstance(body, ServerEnded):
            self.restarts += 1
            for thread in self.threads.values():
                if thread.running:
                    thread.cut.append(thread.running)
                thread.running, thread.interrupted, thread.status = "", "", ""
                thread.loaded = False
                thread.subscribers.clear()

    def _notified(self, frame: Frame) -> None:
        params = obj(frame.params)
        thread_id = text(params.get("threadId"))
        if not thread_id:
            return
        thread = self.thread(thread_id)
        match frame.method:
            case "turn/started":
                self._begins(thread, text(dig(params, "turn", "id")))
            case "turn/completed":
                turn = text(dig(params, "turn", "id"))
                thread.ends[turn] = text(dig(params, "turn", "status"))
                if thread.running == turn:
                    thread.running = thread.interrupted = ""
            case "thread/status/changed":
                thread.status = text(dig(params, "status", "type"))
                if thread.status:
                    thread.loaded = thread.status != "notLoaded"
            case "thread/closed":
                thread.loaded = False
                thread.running = ""
                thread.subscribers.clear()
            case _:
                pass

    def _begins(self, thread: ThreadFacts, turn: str) -> None:
        if turn and turn not in thread.ends:
            thread.running = turn
            if turn not in thread.turns:
                thread.turns.append(turn)

    def _granted(self, asked: Frame, answer: Frame) -> None:
        params, result = obj(asked.params), answer.result
        if asked.method in _OPENING:
            self._opened(asked, answer)
            return
        thread_id = text(params.get("threadId"))
        if not thread_id:
            return
        thread = self.thread(thread_id)
        match asked.method:
            case "turn/start":
                self._begins(thread, text(dig(result, "turn", "id")))
                thread.settings |= {
                    name: params[name] for name in _SETTINGS if params.get(name) is not None
                }
            case "turn/interrupt":
                thread.interrupted = thread.running
            case "thread/archive":
                thread.archived, thread.loaded, thread.running = True, False, ""
            case "thread/unarchive":
                thread.archived = False
            case "thread/name/set":
                thread.name = text(params.get("name")) or None
            case "thread/unsubscribe":
                thread.subscribers.discard(answer.connection)
            case "thread/rollback":
                shown = dig(result, "thread", "turns")
                if shown is not MISSING:
                    thread.turns = list(_ids(arr(shown)))
            case _:
                pass

    def _opened(self, asked: Frame, answer: Frame) -> None:
        shown = obj(dig(answer.result, "thread"))
        thread = self.thread(text(shown.get("id")))
        thread.known, thread.loaded = True, True
        thread.ephemeral = shown.get("ephemeral") is True
        thread.forked = asked.method == "thread/fork"
        thread.subscribers.add(answer.connection)
        for turn in _ids(arr(shown.get("turns"))):
            if turn not in thread.turns:
                thread.turns.append(turn)
        if asked.method == "thread/start":
            thread.settings = {
                name: obj(answer.result)[name] for name in _SETTINGS if name in obj(answer.result)
            }


def _ids(turns: Iterable[Any]) -> Iterable[str]:
    return (turn for turn in (text(obj(one).get("id")) for one in turns) if turn)
