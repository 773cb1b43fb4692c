"""The scripted model as a separate service, for users who start their server themselves."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import unquote

import anyio
from anyio.abc import TaskGroup

from harness.model.conversations import Conversation, Conversations, ServedCall
from harness.model.encoder import Encoder
from harness.model.gates import Gates
from harness.model.model import ScriptedModel
from harness.model.script import Script
from harness.model.server import ModelServer, Receive, Scope, Send, send_response
from harness.model.tools import ToolRow
from harness.model.wire.registry import PATHS
from harness.model.wire.responses import ResponsesEncoder
from harness.trace.frame import json_error
from harness.trace.marks import MarkBody, ModelCall, ModelEnd

_GATES = "/gates"


class GateListener(Protocol):
    """Callbacks about gates."""

    def on_gate_reached(self, gate: str) -> None:
        """Handle an answer that waits at a gate."""
        ...

    def on_gate_opened(self, gate: str) -> None:
        """Handle the opening of a gate at which an answer waited."""
        ...


class Listener(GateListener, Protocol):
    """Callbacks for all events of a service, in order."""

    def on_conversation(self, conversation: Conversation) -> None:
        """Handle the beginning of a conversation."""
        ...

    def on_call(self, served: ServedCall) -> None:
        """Handle a call, before its answer begins."""
        ...

    def on_answer(self, served: ServedCall) -> None:
        """Handle the end of the answer to a call (`served.call.end`)."""
        ...

    def on_refused_request(self, request: str, reason: str) -> None:
        """Handle a request that was rejected because it is not a call of this model."""
        ...

    def on_forgotten(self, conversation: Conversation) -> None:
        """Handle a conversation that was removed as too old; it cannot continue."""
        ...


class GateReporter(Gates):
    """Gates that report waiting answers to a listener; `waiting` lists the gates' names."""

    def __init__(self, listener: GateListener) -> None:
        super().__init__()
        self.waiting: list[str] = []
        self._listener = listener

    async def wait_until_open(self, name: str) -> None:
        """Wait until the gate is open; report the wait and its end."""
        if self.is_open(name):
            return
        self.waiting.append(name)
        self._listener.on_gate_reached(name)
        try:
            await super().wait_until_open(name)
            self._listener.on_gate_opened(name)
        finally:
            self.waiting.remove(name)


class ModelService(ModelServer):
    """HTTP service of a model that plays `scripts`; `gates` are those of all conversations.

    `tools`, `outcomes` and `loose` are as for `ScriptedModel`. Raises `OSError` if the address is
    not available.
    """

    def __init__(
        self,
        tasks: TaskGroup,
        scripts: Mapping[str, Script],
        listener: Listener,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        loop: bool = False,
        tools: Sequence[ToolRow] = (),
        outcomes: Mapping[str, Sequence[str]] | None = None,
        loose: bool = True,
    ) -> None:
        super().__init__(tasks, host=host, port=port)
        self.gates = GateReporter(listener)
        self.calls = 0
        self._listener = listener
        self._tools, self._outcomes, self._loose = tools, outcomes, loose
        self.conversations = Conversations(scripts, self._make, loop=loop)
        self._open: dict[tuple[int, int], ServedCall] = {}
        self._reply_count = 0
        self._next_event = anyio.Event()

    @property
    def is_at_rest(self) -> bool:
        """Return whether every script was played to its end, and no answer is in progress."""
        all_finished = all(
            conversation.model.is_finished for conversation in self.conversations.all
        )
        return all_finished and not self._reply_count and not self.conversations.waiting_aliases

    async def wait_until_played(self) -> None:
        """Wait until every script was played to its end."""
        while not (self.calls and self.is_at_rest):
            await self._next_event.wait()

    def _make(self, script: Script, numbers: Iterator[int]) -> ScriptedModel:
        def mark(body: MarkBody) -> None:
            self._on_mark(model, body)

        model = ScriptedModel(
            script,
            ResponsesEncoder(),
            gates=self.gates,
            mark=mark,
            tools=self._tools,
            outcomes=self._outcomes,
            loose=self._loose,
            numbers=numbers,
        )
        return model

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI request."""
        path = str(scope.get("path", ""))
        if scope["type"] == "http" and (path == _GATES or path.startswith(f"{_GATES}/")):
            name = unquote(path.removeprefix(_GATES).removeprefix("/"))
            await self._gate(str(scope["method"]), name, send)
            return
        await super().__call__(scope, receive, send)

    async def _gate(self, method: str, name: str, send: Send) -> None:
        """Serve `GET /gates` (those at which an answer waits) and `POST /gates/NAME` (open one)."""
        if method == "POST" and name:
            self.gates.open(name)
        elif method != "GET" or name:
            await _answer(send, 405, {"error": "GET /gates, or POST /gates/NAME"})
            return
        await _answer(send, 200, {"waiting": list(self.gates.waiting)})

    async def reply(self, body: bytes, wire: Encoder, receive: Receive, send: Send) -> None:
        """Answer a call whose body was read; an invalid body does not use a step."""
        problem = json_error(body)
        if not problem and not isinstance(json.loads(body), dict):
            problem = "it is JSON, and no object"
        if problem:
            self._refuse_request("a model call", f"its body is no JSON object: {problem}")
            error = {"message": f"the body is no JSON object: {problem}"}
            await _answer(send, 400, {"error": error})
            return
        self._reply_count += 1
        try:
            await super().reply(body, wire, receive, send)
        finally:
            self._reply_count -= 1
            self._next_event.set()
            self._next_event = anyio.Event()

    def model_of(self, body: bytes, wire: Encoder) -> ScriptedModel:
        """Return the model of the call's conversation; report one that begins or is forgotten."""
        call = wire.read(json.loads(body))
        conversation, begins = self.conversations.conversation_of(call)
        if begins:
            for old in self.conversations.forget():
                self._listener.on_forgotten(old)
            self._listener.on_conversation(conversation)
        return conversation.model

    def note_stray(self, words: str) -> None:
        """Report a rejected request to a path that the model does not have."""
        paths = ", ".join(f"POST …{path}" for path in PATHS)
        reason = f"this model has {paths} and GET …/models"
        self._refuse_request(words, reason)

    def _refuse_request(self, request: str, reason: str) -> None:
        self.strays.append(request)
        self._listener.on_refused_request(request, reason)

    def _on_mark(self, model: ScriptedModel, body: MarkBody) -> None:
        """Record and report the beginning or end of a call, which `model.calls` already has."""
        match body:
            case ModelCall(call=number):
                self.calls += 1
                conversation = next(
                    entry for entry in self.conversations.all if entry.model is model
                )
                call = model.calls[number - 1]
                served = self.conversations.record_call(conversation, call, self.calls)
                self._open[conversation.number, number] = served
                self._listener.on_call(served)
            case ModelEnd(call=number):
                pending_key = next(
                    key
                    for key, served in self._open.items()
                    if served.call is model.calls[number - 1]
                )
                self._listener.on_answer(self._open.pop(pending_key))
            case _:
                pass


async def _answer(send: Send, status: int, value: Any) -> None:
    await send_response(send, status, json.dumps(value).encode())
