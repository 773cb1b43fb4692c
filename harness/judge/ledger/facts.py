"""Facts about threads and turns at one moment of a trace, on all its connections.

A fact comes from a message of the server; nothing is assumed without one.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from harness.protocol.values import MISSING, arr, dig, obj, text
from harness.trace.frame import Direction, Frame, Kind
from harness.trace.marks import Leaving, MarkBody, ServerEnded

_OPENING_METHODS = ("thread/start", "thread/resume", "thread/fork")
# Settings in the reply to thread/start; turn/start has other names for some.
_SETTINGS = {"model": "model", "cwd": "cwd", "approvalPolicy": "approvalPolicy"}


@dataclass(slots=True)
class ThreadFacts:
    """Facts about one thread. `turns` are the ids of its turns, in the order of their start.

    `is_loaded` is None while unknown. `running_turn` is in progress, `interrupt_target` the last
    turn that the client asked to interrupt, `interrupted_turn` ran when an interrupt was granted.
    `cut_turns` ran when their server ended, `ends` are final statuses, `settings` those in force.
    """

    id: str
    is_known: bool = False
    is_loaded: bool | None = None
    is_archived: bool = False
    is_ephemeral: bool = False
    name: str | None = None
    is_fork: bool = False
    subscribers: set[str] = field(default_factory=set[str])
    turns: list[str] = field(default_factory=list[str])
    running_turn: str = ""
    interrupted_turn: str = ""
    interrupt_target: str = ""
    cut_turns: list[str] = field(default_factory=list[str])
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
        """Return the facts of a thread, which are added, blank, if there are none so far."""
        facts = self.threads.get(thread_id)
        if facts is None:
            facts = self.threads[thread_id] = ThreadFacts(thread_id)
        return facts

    def thread_of(self, params: Any) -> ThreadFacts:
        """Return the facts of the thread that the params name, a blank copy if it is unknown."""
        thread_id = text(obj(params).get("threadId"))
        return self.threads.get(thread_id) or ThreadFacts(thread_id)

    def feed(self, frame: Frame, request: Frame | None) -> None:
        """Update the facts with one frame; `request` is the one that it answers, None for none."""
        if frame.direction is Direction.TO_TARGET:
            self.open_connections.add(frame.connection)
            if frame.method == "turn/interrupt":
                self.thread_of(frame.params).interrupt_target = text(
                    obj(frame.params).get("turnId")
                )
            return
        if frame.kind is Kind.NOTIFICATION:
            self._on_notification(frame)
        elif frame.kind is Kind.RESPONSE and request is not None:
            self._on_answer(request, frame)

    def feed_mark(self, body: MarkBody) -> None:
        """Update the facts with one mark."""
        if isinstance(body, Leaving):
            self.open_connections.discard(body.connection)
            for thread in self.threads.values():
                thread.subscribers.discard(body.connection)
        elif isinstance(body, ServerEnded):
            self.restarts += 1
            for thread in self.threads.values():
                if thread.running_turn:
                    thread.cut_turns.append(thread.running_turn)
                thread.running_turn, thread.interrupted_turn, thread.status = "", "", ""
                thread.is_loaded = False
                thread.subscribers.clear()

    def _on_notification(self, frame: Frame) -> None:
        params = obj(frame.params)
        thread_id = text(params.get("threadId"))
        if not thread_id:
            return
        thread = self.thread(thread_id)
        match frame.method:
            case "turn/started":
                self._begin_turn(thread, text(dig(params, "turn", "id")))
            case "turn/completed":
                turn = text(dig(params, "turn", "id"))
                thread.ends[turn] = text(dig(params, "turn", "status"))
                if thread.running_turn == turn:
                    thread.running_turn = thread.interrupted_turn = ""
            case "thread/status/changed":
                thread.status = text(dig(params, "status", "type"))
                if thread.status:
                    thread.is_loaded = thread.status != "notLoaded"
            case "thread/closed":
                thread.is_loaded = False
                thread.running_turn = ""
                thread.subscribers.clear()
            case _:
                pass

    def _begin_turn(self, thread: ThreadFacts, turn: str) -> None:
        if turn and turn not in thread.ends:
            thread.running_turn = turn
            if turn not in thread.turns:
                thread.turns.append(turn)

    def _on_answer(self, request: Frame, answer: Frame) -> None:
        params, result = obj(request.params), answer.result
        if request.method in _OPENING_METHODS:
            self._on_opening(request, answer)
            return
        thread_id = text(params.get("threadId"))
        if not thread_id:
            return
        thread = self.thread(thread_id)
        match request.method:
            case "turn/start":
                self._begin_turn(thread, text(dig(result, "turn", "id")))
                thread.settings |= {
                    name: params[name] for name in _SETTINGS if params.get(name) is not None
                }
            case "turn/interrupt":
                thread.interrupted_turn = thread.running_turn
            case "thread/archive":
                thread.is_archived, thread.is_loaded, thread.running_turn = True, False, ""
            case "thread/unarchive":
                thread.is_archived = False
            case "thread/name/set":
                thread.name = text(params.get("name")) or None
            case "thread/unsubscribe":
                thread.subscribers.discard(answer.connection)
            case "thread/rollback":
                turns = dig(result, "thread", "turns")
                if turns is not MISSING:
                    thread.turns = list(_ids(arr(turns)))
            case _:
                pass

    def _on_opening(self, request: Frame, answer: Frame) -> None:
        result = obj(dig(answer.result, "thread"))
        thread = self.thread(text(result.get("id")))
        thread.is_known, thread.is_loaded = True, True
        thread.is_ephemeral = result.get("ephemeral") is True
        thread.is_fork = thread.is_fork or request.method == "thread/fork"
        thread.subscribers.add(answer.connection)
        for turn in _ids(arr(result.get("turns"))):
            if turn not in thread.turns:
                thread.turns.append(turn)
        if request.method == "thread/start":
            thread.settings = {
                name: obj(answer.result)[name] for name in _SETTINGS if name in obj(answer.result)
            }


def _ids(turns: Iterable[Any]) -> Iterable[str]:
    return (turn for turn in (text(obj(turn_object).get("id")) for turn_object in turns) if turn)
