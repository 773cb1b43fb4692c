"""Builder of traces: conversations of the session protocol as code."""

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
    """Return a thread as a server shows it."""
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
    """Return a turn as a server shows it."""
    return {"id": turn, "items": [], "status": status, "error": None, **more}


def settings() -> dict[str, Any]:
    """Return the members of thread/start's result other than the thread."""
    return {
        "model": "mock-model",
        "modelProvider": "mock",
        "cwd": "/home/user/project",
        "approvalPolicy": "never",
        "sandbox": {"type": "dangerFullAccess"},
    }


def user_message(item: str, text: str) -> dict[str, Any]:
    """Return a userMessage item."""
    return {"type": "userMessage", "id": item, "content": [{"type": "text", "text": text}]}


def agent_message(item: str, text: str) -> dict[str, Any]:
    """Return an agentMessage item."""
    return {"type": "agentMessage", "id": item, "text": text}


def command(item: str, status: str = "inProgress", **more: Any) -> dict[str, Any]:
    """Return a commandExecution item."""
    said = {"command": "ls", "cwd": "/home/user/project", "commandActions": []}
    return {"type": "commandExecution", "id": item, "status": status, **said, **more}


OUTCOMES = ("result", "error", "success", "contentItems")
"""The members that a tool call has only when it is completed."""


def mcp_call(item: str, status: str = "inProgress", **more: Any) -> dict[str, Any]:
    """Return an mcpToolCall item."""
    said = {"server": "tiny", "tool": "add", "arguments": {}}
    return {"type": "mcpToolCall", "id": item, "status": status, **said, **more}


def dynamic_call(item: str, status: str = "inProgress", **more: Any) -> dict[str, Any]:
    """Return a dynamicToolCall item."""
    said = {"tool": "look", "arguments": {"key": "colour"}}
    return {"type": "dynamicToolCall", "id": item, "status": status, **said, **more}


def step(words: str, status: str = "pending") -> dict[str, str]:
    """Return a step of a plan."""
    return {"step": words, "status": status}


class Talk:
    """Builder of one conversation; methods add to it and return it, except `trace` and `last`.

    Each message is a millisecond after the previous one. `on` chooses the connection.
    """

    def __init__(self, scenario: str = "") -> None:
        self._now = 0.0
        header = Header(target="by-hand", profile="spec", scenario=scenario)
        self._recorder = Recorder(header, clock=lambda: self._now)
        self._connection = "c1"
        self._id = 0
        self._said: dict[str, str] = {}

    def trace(self, end: End = End.QUIESCENT) -> Trace:
        """Return the trace so far."""
        self._recorder.trace.end = end
        return self._recorder.trace

    @property
    def last(self) -> Frame:
        """Return the last message."""
        return self._recorder.trace.frames[-1]

    def on(self, connection: str) -> Self:
        """Use another connection from now on."""
        self._connection = connection
        return self

    def mark(self, body: MarkBody) -> Self:
        """Add a mark."""
        self._recorder.mark(body)
        return self

    def sends(self, message: Any, *, deliberate: bool = False) -> Self:
        """Add a message, or bytes, of the client."""
        return self._write(message, Direction.TO_TARGET, deliberate=deliberate)

    def says(self, message: Any, *, note: str = "") -> Self:
        """Add a message, or bytes, of the server; a `note` says that the transport cut it."""
        damage = Damage(DamageKind.CUT_OFF, note) if note else None
        return self._write(message, Direction.FROM_TARGET, damage=damage)

    def asks(self, method: str, **params: Any) -> Self:
        """Add a request of the client with the next id."""
        self._id += 1
        return self.sends({"method": method, "id": self._id, "params": params})

    def asks_wrongly(self, method: str, **params: Any) -> Self:
        """Add a request of the client that is invalid on purpose."""
        self._id += 1
        message = {"method": method, "id": self._id, "params": params}
        return self.sends(message, deliberate=True)

    def answers(self, result: Any, *, to: int | None = None) -> Self:
        """Add the result of the last request, or of the request `to`."""
        return self.says({"id": self._id if to is None else to, "result": result})

    def refuses(self, message: str = "refused", *, to: int | None = None) -> Self:
        """Add an error as the response to the last request, or to the request `to`."""
        error = {"code": -32600, "message": message}
        return self.says({"id": self._id if to is None else to, "error": error})

    def tells(self, method: str, **params: Any) -> Self:
        """Add a notification of the server."""
        return self.says({"method": method, "params": params})

    def start_thread(self, thread: str = THREAD) -> Self:
        """Add thread/start, its result, thread/started."""
        self.asks("thread/start", cwd="/home/user/project")
        self.answers({"thread": thread_object(thread), **settings()})
        return self.tells("thread/started", thread=thread_object(thread))

    def ask_turn(self, thread: str = THREAD, text: str = "hello", **more: Any) -> Self:
        """Add turn/start without its result."""
        self._said.setdefault(thread, text)
        said = [{"type": "text", "text": text}]
        return self.asks("turn/start", threadId=thread, input=said, **more)

    def calls(self, *texts: str, model: str = "mock-model", **more: Any) -> Self:
        """Add a model call with these user texts."""
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
        """Add the end of a model call, with its answer; `outcome` as `status 500`, `failed x`."""
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
        """Add thread/tokenUsage/updated."""
        return self.tells("thread/tokenUsage/updated", threadId=thread)

    def plan(self, *steps: dict[str, str], turn: str = TURN, thread: str = THREAD) -> Self:
        """Add turn/plan/updated."""
        where = {"threadId": thread, "turnId": turn}
        return self.tells("turn/plan/updated", **where, explanation=None, plan=list(steps))

    def rerouted(self, model: str, turn: str = TURN, thread: str = THREAD) -> Self:
        """Add model/rerouted."""
        models = {"fromModel": "mock-model", "toModel": model, "reason": "busy"}
        return self.tells("model/rerouted", threadId=thread, turnId=turn, **models)

    def reply_turn(self, turn: str = TURN) -> Self:
        """Add the result of turn/start."""
        return self.answers({"turn": turn_object(turn)})

    def turn_started(self, turn: str = TURN, thread: str = THREAD) -> Self:
        """Add turn/started."""
        return self.tells("turn/started", threadId=thread, turn=turn_object(turn))

    def status(self, kind: str, thread: str = THREAD) -> Self:
        """Add thread/status/changed."""
        status = {"type": kind, "activeFlags": []} if kind == "active" else {"type": kind}
        return self.tells("thread/status/changed", threadId=thread, status=status)

    def start_turn(self, turn: str = TURN, thread: str = THREAD, text: str = "hello") -> Self:
        """Add turn/start, its result, the thread's status, turn/started and the user's message."""
        self.ask_turn(thread, text).reply_turn(turn)
        self.status("active", thread).turn_started(turn, thread)
        return self.item(user_message(f"{turn}-user", text), turn, thread)

    def started(self, item: dict[str, Any], turn: str = TURN, thread: str = THREAD) -> Self:
        """Add item/started."""
        return self.tells("item/started", threadId=thread, turnId=turn, item=item)

    def completed(self, item: dict[str, Any], turn: str = TURN, thread: str = THREAD) -> Self:
        """Add item/completed."""
        return self.tells("item/completed", threadId=thread, turnId=turn, item=item)

    def item(self, item: dict[str, Any], turn: str = TURN, thread: str = THREAD) -> Self:
        """Add item/started and item/completed; an item with a status starts as inProgress."""
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
        """Add one delta, by default of an agentMessage."""
        return self.tells(method, threadId=thread, turnId=turn, itemId=item, delta=delta, **more)

    def message(self, item: str, *deltas: str, turn: str = TURN, thread: str = THREAD) -> Self:
        """Add a whole streamed agentMessage."""
        self.started(agent_message(item, ""), turn, thread)
        for delta in deltas:
            self.delta(item, delta, turn, thread)
        return self.completed(agent_message(item, "".join(deltas)), turn, thread)

    def turn_completed(
        self, turn: str = TURN, thread: str = THREAD, status: str = "completed", error: Any = None
    ) -> Self:
        """Add turn/completed."""
        return self.tells(
            "turn/completed", threadId=thread, turn=turn_object(turn, status, error=error)
        )

    def end_turn(
        self, turn: str = TURN, thread: str = THREAD, status: str = "completed", error: Any = None
    ) -> Self:
        """Add the thread's status, then turn/completed."""
        self.status("systemError" if status == "failed" else "idle", thread)
        return self.turn_completed(turn, thread, status, error)

    def failing(self, *, will_retry: bool, turn: str = TURN, thread: str = THREAD) -> Self:
        """Add the error notification."""
        return self.tells(
            "error", threadId=thread, turnId=turn, willRetry=will_retry, error=TROUBLE
        )

    def interrupt(self, turn: str = TURN, thread: str = THREAD) -> Self:
        """Add turn/interrupt without its result."""
        return self.asks("turn/interrupt", threadId=thread, turnId=turn)

    def read(self, *turns: dict[str, Any], thread: str = THREAD, include: bool = True) -> Self:
        """Add thread/read and its result."""
        more: dict[str, Any] = {"includeTurns": True} if include else {}
        self.asks("thread/read", threadId=thread, **more)
        shown = {"status": {"type": "notLoaded"}, **({"turns": list(turns)} if include else {})}
        preview = self._said.get(thread, "")
        return self.answers({"thread": thread_object(thread, preview=preview, **shown)})

    def read_status(self, kind: str, thread: str = THREAD) -> Self:
        """Add thread/read and its result, with the thread in this status."""
        status = {"type": kind, "activeFlags": []} if kind == "active" else {"type": kind}
        self.asks("thread/read", threadId=thread)
        preview = self._said.get(thread, "")
        return self.answers({"thread": thread_object(thread, preview=preview, status=status)})

    def plain_turn(self, turn: str = TURN, thread: str = THREAD) -> Self:
        """Add a whole turn with one message in two deltas."""
        self.start_turn(turn, thread).message(f"{turn}-msg", "Hel", "lo", turn=turn, thread=thread)
        return self.end_turn(turn, thread)

    def _write(self, message: Any, direction: Direction, **more: Any) -> Self:
        self._now += 0.001
        raw = message if isinstance(message, bytes) else json.dumps(message).encode()
        self._recorder.record(raw, direction, connection=self._connection, **more)
        return self


TROUBLE = {"message": "stream closed", "agentErrorInfo": "ResponseStreamDisconnected"}


def stored_plain_turn(turn: str = TURN) -> dict[str, Any]:
    """Return the turn of `plain_turn` as thread/read shows it."""
    items = [user_message(f"{turn}-user", "hello"), agent_message(f"{turn}-msg", "Hello")]
    return turn_object(turn, "completed", items=items)
