"""A small builder of traces: conversations written down as code."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Self

from harness.trace.frame import Damage, DamageKind, Direction, Frame
from harness.trace.marks import (
    CallEnd,
    MarkBody,
    McpToolCall,
    ModelCall,
    ModelEnd,
    ModelMessage,
    PlanStep,
)
from harness.trace.recorder import Recorder
from harness.trace.trace import End, Header, Trace

THREAD = "thr_1"
TURN = "turn_1"
CREATED = 1_700_000_000


def thread_object(thread: str = THREAD, **more: Any) -> dict[str, Any]:
    """A thread as a server shows it."""
    return {
        "id": thread,
        "preview": "",
        "ephemeral": False,
        "modelProvider": "mock",
        "createdAt": CREATED,
        "updatedAt": CREATED + 1,
        "status": {"type": "idle"},
        "path": f"/home/user/.agent/sessions/{thread}.jsonl",
        "cwd": "/home/user/project",
        **more,
    }


def turn_object(turn: str = TURN, status: str = "inProgress", **more: Any) -> dict[str, Any]:
    """A turn as a server shows it."""
    return {"id": turn, "items": [], "status": status, "error": None, **more}


def settings() -> dict[str, Any]:
    """Return the members that the reply to thread/start has beside the thread."""
    return {
        "model": "mock-model",
        "modelProvider": "mock",
        "cwd": "/home/user/project",
        "approvalPolicy": "never",
        "sandbox": {"type": "dangerFullAccess"},
    }


def user_message(item: str, text: str) -> dict[str, Any]:
    """A userMessage item."""
    return {"type": "userMessage", "id": item, "content": [{"type": "text", "text": text}]}


def agent_message(item: str, text: str) -> dict[str, Any]:
    """An agentMessage item."""
    return {"type": "agentMessage", "id": item, "text": text}


def command(item: str, status: str = "inProgress", **more: Any) -> dict[str, Any]:
    """A commandExecution item."""
    said = {"command": "ls", "cwd": "/home/user/project", "commandActions": []}
    return {"type": "commandExecution", "id": item, "status": status, **said, **more}


OUTCOMES = ("result", "error", "success", "contentItems")
"""The members of a tool call that it has at its end."""


def mcp_call(item: str, status: str = "inProgress", **more: Any) -> dict[str, Any]:
    """An mcpToolCall item."""
    said = {"server": "tiny", "tool": "add", "arguments": {}}
    return {"type": "mcpToolCall", "id": item, "status": status, **said, **more}


def dynamic_call(item: str, status: str = "inProgress", **more: Any) -> dict[str, Any]:
    """A dynamicToolCall item."""
    said = {"tool": "look", "arguments": {"key": "colour"}}
    return {"type": "dynamicToolCall", "id": item, "status": status, **said, **more}


def step(words: str, status: str = "pending") -> dict[str, str]:
    """A step of a plan."""
    return {"step": words, "status": status}


class Talk:
    """Writer of one conversation; every method but `trace` returns the talk itself.

    Time goes on by a millisecond a message. `on` chooses the connection of what follows.
    """

    def __init__(self, scenario: str = "") -> None:
        self._now = 0.0
        header = Header(target="by-hand", profile="spec", scenario=scenario)
        self._recorder = Recorder(header, clock=lambda: self._now)
        self._connection = "c1"
        self._id = 0
        self._said: dict[str, str] = {}

    def trace(self, end: End = End.QUIESCENT) -> Trace:
        """The trace so far."""
        self._recorder.trace.end = end
        return self._recorder.trace

    @property
    def last(self) -> Frame:
        """The last message."""
        return self._recorder.trace.frames[-1]

    def on(self, connection: str) -> Self:
        """Go on with another connection."""
        self._connection = connection
        return self

    def mark(self, body: MarkBody) -> Self:
        """Write a mark."""
        self._recorder.mark(body)
        return self

    def sends(self, message: Any, *, deliberate: bool = False) -> Self:
        """The client writes a message, or bytes."""
        return self._write(message, Direction.TO_TARGET, deliberate=deliberate)

    def says(self, message: Any, *, note: str = "") -> Self:
        """The server writes a message, or bytes, which the transport cut if there is a note."""
        damage = Damage(DamageKind.CUT_OFF, note) if note else None
        return self._write(message, Direction.FROM_TARGET, damage=damage)

    def asks(self, method: str, **params: Any) -> Self:
        """The client sends a request with the next id."""
        self._id += 1
        return self.sends({"method": method, "id": self._id, "params": params})

    def asks_wrongly(self, method: str, **params: Any) -> Self:
        """The same, wrong on purpose."""
        self._id += 1
        message = {"method": method, "id": self._id, "params": params}
        return self.sends(message, deliberate=True)

    def answers(self, result: Any, *, to: int | None = None) -> Self:
        """The server answers the last request, or that of the id."""
        return self.says({"id": self._id if to is None else to, "result": result})

    def refuses(self, message: str = "refused", *, to: int | None = None) -> Self:
        """The server answers with an error."""
        error = {"code": -32600, "message": message}
        return self.says({"id": self._id if to is None else to, "error": error})

    def tells(self, method: str, **params: Any) -> Self:
        """The server sends a notification."""
        return self.says({"method": method, "params": params})

    def start_thread(self, thread: str = THREAD) -> Self:
        """thread/start, its reply, thread/started."""
        self.asks("thread/start", cwd="/home/user/project")
        self.answers({"thread": thread_object(thread), **settings()})
        return self.tells("thread/started", thread=thread_object(thread))

    def ask_turn(self, thread: str = THREAD, text: str = "hello", **more: Any) -> Self:
        """turn/start alone."""
        self._said.setdefault(thread, text)
        said = [{"type": "text", "text": text}]
        return self.asks("turn/start", threadId=thread, input=said, **more)

    def calls(self, *texts: str, model: str = "mock-model", **more: Any) -> Self:
        """A model call of the scenario's script, with these texts of the user."""
        whole: dict[str, Any] = {"call": 1, "step": 0, **more}
        return self.mark(ModelCall(model=model, user_texts=texts, **whole))

    def ends(
        self,
        call: int = 1,
        outcome: str = "completed",
        *,
        texts: Sequence[Mapping[str, str]] = (),
        plans: Sequence[Sequence[Mapping[str, str]]] = (),
        mcp: Sequence[tuple[str, str]] = (),
        **more: Any,
    ) -> Self:
        """The end of a model call, with what it brought; `outcome` as `status 500`, `failed x`."""
        name, _, rest = outcome.partition(" ")
        if name == "status":
            more["status"] = int(rest)
        return self.mark(
            ModelEnd(
                call=call,
                outcome=CallEnd(name),
                texts=tuple(ModelMessage(**one) for one in texts),
                plans=tuple(tuple(PlanStep(**one) for one in plan) for plan in plans),
                mcp=tuple(McpToolCall(*one) for one in mcp),
                **more,
            )
        )

    def usage(self, thread: str = THREAD) -> Self:
        """thread/tokenUsage/updated."""
        return self.tells("thread/tokenUsage/updated", threadId=thread)

    def plan(self, *steps: dict[str, str], turn: str = TURN, thread: str = THREAD) -> Self:
        """turn/plan/updated."""
        where = {"threadId": thread, "turnId": turn}
        return self.tells("turn/plan/updated", **where, explanation=None, plan=list(steps))

    def rerouted(self, model: str, turn: str = TURN, thread: str = THREAD) -> Self:
        """model/rerouted."""
        models = {"fromModel": "mock-model", "toModel": model, "reason": "busy"}
        return self.tells("model/rerouted", threadId=thread, turnId=turn, **models)

    def reply_turn(self, turn: str = TURN) -> Self:
        """The reply to turn/start."""
        return self.answers({"turn": turn_object(turn)})

    def turn_started(self, turn: str = TURN, thread: str = THREAD) -> Self:
        """turn/started alone."""
        return self.tells("turn/started", threadId=thread, turn=turn_object(turn))

    def status(self, kind: str, thread: str = THREAD) -> Self:
        """thread/status/changed."""
        status = {"type": kind, "activeFlags": []} if kind == "active" else {"type": kind}
        return self.tells("thread/status/changed", threadId=thread, status=status)

    def start_turn(self, turn: str = TURN, thread: str = THREAD, text: str = "hello") -> Self:
        """turn/start, its reply, the thread's status, turn/started and the user's message."""
        self.ask_turn(thread, text).reply_turn(turn)
        self.status("active", thread).turn_started(turn, thread)
        return self.item(user_message(f"{turn}-user", text), turn, thread)

    def started(self, item: dict[str, Any], turn: str = TURN, thread: str = THREAD) -> Self:
        """item/started."""
        return self.tells("item/started", threadId=thread, turnId=turn, item=item)

    def completed(self, item: dict[str, Any], turn: str = TURN, thread: str = THREAD) -> Self:
        """item/completed."""
        return self.tells("item/completed", threadId=thread, turnId=turn, item=item)

    def item(self, item: dict[str, Any], turn: str = TURN, thread: str = THREAD) -> Self:
        """item/started and item/completed; one that has a status begins in progress."""
        begun = {**item, "status": "inProgress"} if "status" in item else item
        begun = {name: value for name, value in begun.items() if name not in OUTCOMES}
        return self.started(begun, turn, thread).completed(item, turn, thread)

    def delta(
        self,
        item: str,
        delta: str,
        turn: str = TURN,
        thread: str = THREAD,
        *,
        method: str = "item/agentMessage/delta",
        **more: Any,
    ) -> Self:
        """Add one delta, of an agentMessage unless `method` says otherwise."""
        return self.tells(method, threadId=thread, turnId=turn, itemId=item, delta=delta, **more)

    def message(self, item: str, *deltas: str, turn: str = TURN, thread: str = THREAD) -> Self:
        """A whole streamed agentMessage."""
        self.started(agent_message(item, ""), turn, thread)
        for delta in deltas:
            self.delta(item, delta, turn, thread)
        return self.completed(agent_message(item, "".join(deltas)), turn, thread)

    def turn_completed(
        self, turn: str = TURN, thread: str = THREAD, status: str = "completed", error: Any = None
    ) -> Self:
        """turn/completed alone."""
        return self.tells(
            "turn/completed", threadId=thread, turn=turn_object(turn, status, error=error)
        )

    def end_turn(
        self, turn: str = TURN, thread: str = THREAD, status: str = "completed", error: Any = None
    ) -> Self:
        """The thread's status, then turn/completed."""
        self.status("systemError" if status == "failed" else "idle", thread)
        return self.turn_completed(turn, thread, status, error)

    def failing(self, *, will_retry: bool, turn: str = TURN, thread: str = THREAD) -> Self:
        """The error notification."""
        return self.tells(
            "error", threadId=thread, turnId=turn, willRetry=will_retry, error=TROUBLE
        )

    def interrupt(self, turn: str = TURN, thread: str = THREAD) -> Self:
        """turn/interrupt alone."""
        return self.asks("turn/interrupt", threadId=thread, turnId=turn)

    def read(self, *turns: dict[str, Any], thread: str = THREAD, include: bool = True) -> Self:
        """thread/read and its reply."""
        more: dict[str, Any] = {"includeTurns": True} if include else {}
        self.asks("thread/read", threadId=thread, **more)
        shown = {"status": {"type": "notLoaded"}, **({"turns": list(turns)} if include else {})}
        preview = self._said.get(thread, "")
        return self.answers({"thread": thread_object(thread, preview=preview, **shown)})

    def read_status(self, kind: str, thread: str = THREAD) -> Self:
        """thread/read and its reply with a status."""
        status = {"type": kind, "activeFlags": []} if kind == "active" else {"type": kind}
        self.asks("thread/read", threadId=thread)
        preview = self._said.get(thread, "")
        return self.answers({"thread": thread_object(thread, preview=preview, status=status)})

    def plain_turn(self, turn: str = TURN, thread: str = THREAD) -> Self:
        """A whole turn with one answer in two deltas."""
        self.start_turn(turn, thread).message(f"{turn}-msg", "Hel", "lo", turn=turn, thread=thread)
        return self.end_turn(turn, thread)

    def _write(self, message: Any, direction: Direction, **more: Any) -> Self:
        self._now += 0.001
        raw = message if isinstance(message, bytes) else json.dumps(message).encode()
        self._recorder.record(raw, direction, connection=self._connection, **more)
        return self


TROUBLE = {"message": "stream closed", "agentErrorInfo": "ResponseStreamDisconnected"}


def stored_plain_turn(turn: str = TURN) -> dict[str, Any]:
    """Return a `plain_turn` as thread/read shows it."""
    items = [user_message(f"{turn}-user", "hello"), agent_message(f"{turn}-msg", "Hello")]
    return turn_object(turn, "completed", items=items)
