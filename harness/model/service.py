"""The scripted model as a service of its own, for somebody who starts his server himself."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import unquote

import anyio
from anyio.abc import TaskGroup

from harness.model.conversations import Conversation, Conversations, Served
from harness.model.encoder import Encoder
from harness.model.gates import Gates
from harness.model.model import ScriptedModel
from harness.model.script import Script
from harness.model.server import ModelServer, Receive, Scope, Send, whole
from harness.model.tools import ToolRow
from harness.trace.frame import why_no_json
from harness.trace.marks import MarkBody, ModelCall, ModelEnd

_GATES = "/gates"


class GateListener(Protocol):
    """A listener to gates."""

    def waits(self, gate: str) -> None:
        """An answer waits at a gate."""
        ...

    def opened(self, gate: str) -> None:
        """A gate was opened at which an answer waited."""
        ...


class Listener(GateListener, Protocol):
    """A listener to all that happens, in order."""

    def begins(self, conversation: Conversation) -> None:
        """A conversation begins."""
        ...

    def asked(self, served: Served) -> None:
        """A call came; its answer begins now."""
        ...

    def answered(self, served: Served) -> None:
        """The answer to a call is over (`served.call.ended`)."""
        ...

    def refused(self, what: str, why: str) -> None:
        """A request came that is no call of this model."""
        ...

    def forgotten(self, conversation: Conversation) -> None:
        """A conversation is so old that nothing more is expected of it."""
        ...


class ToldGates(Gates):
    """Gates that tell a listener who waits at them."""

    def __init__(self, listener: GateListener) -> None:
        super().__init__()
        self.waiting: list[str] = []
        self._listener = listener

    async def opened(self, name: str) -> None:
        """Wait until the gate is open."""
        if self.is_open(name):
            return
        self.waiting.append(name)
        self._listener.waits(name)
        try:
            await super().opened(name)
            self._listener.opened(name)
        finally:
            self.waiting.remove(name)


class ModelService(ModelServer):
    """The model of `scripts` over HTTP. `gates` are those of all conversations.

    `tools`, `outcomes` and `loose` are as for `ScriptedModel`. Raises `OSError` where the address
    cannot be had.
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
        self.gates = ToldGates(listener)
        self.calls = 0
        self._listener = listener
        self._tools, self._outcomes, self._loose = tools, outcomes, loose
        self.conversations = Conversations(scripts, self._make, loop=loop)
        self._open: dict[tuple[int, int], Served] = {}
        self._replying = 0
        self._happened = anyio.Event()

    @property
    def at_rest(self) -> bool:
        """Return whether every script was played to its end, and no answer is under way."""
        over = all(one.model.over for one in self.conversations.all)
        return over and not self._replying and not self.conversations.waiting

    async def played(self) -> None:
        """Wait until every script was played to its end."""
        while not (self.calls and self.at_rest):
            await self._happened.wait()

    def _make(self, script: Script, encoder: Encoder) -> ScriptedModel:
        def mark(body: MarkBody) -> None:
            self._marked(model, body)

        model = ScriptedModel(
            script,
            encoder,
            gates=self.gates,
            mark=mark,
            tools=self._tools,
            outcomes=self._outcomes,
            loose=self._loose,
        )
        return model

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI application."""
        path = str(scope.get("path", ""))
        if scope["type"] == "http" and (path == _GATES or path.startswith(f"{_GATES}/")):
            name = unquote(path.removeprefix(_GATES).removeprefix("/"))
            await self._gate(str(scope["method"]), name, send)
            return
        await super().__call__(scope, receive, send)

    async def _gate(self, method: str, name: str, send: Send) -> None:
        """`GET /gates` names those at which an answer waits; `POST /gates/NAME` opens one."""
        if method == "POST" and name:
            self.gates.open(name)
        elif method != "GET" or name:
            await _answer(send, 405, {"error": "GET /gates, or POST /gates/NAME"})
            return
        await _answer(send, 200, {"waiting": list(self.gates.waiting)})

    async def reply(self, body: bytes, receive: Receive, send: Send) -> None:
        """Answer a call whose body was read; what is no JSON object uses no step."""
        problem = why_no_json(body)
        if not problem and not isinstance(json.loads(body), dict):
            problem = "it is JSON, and no object"
        if problem:
            self._refused("a model call", f"its body is no JSON object: {problem}")
            error = {"message": f"the body is no JSON object: {problem}"}
            await _answer(send, 400, {"error": error})
            return
        self._replying += 1
        try:
            await super().reply(body, receive, send)
        finally:
            self._replying -= 1
            self._happened.set()
            self._happened = anyio.Event()

    def model_of(self, body: bytes) -> ScriptedModel:
        """The model of the call's conversation."""
        call: dict[str, Any] = json.loads(body)
        conversation, begins = self.conversations.of(call)
        if begins:
            for old in self.conversations.forget():
                self._listener.forgotten(old)
            self._listener.begins(conversation)
        return conversation.model

    def stray(self, words: str) -> None:
        """A request to a path that the model does not have."""
        why = "this model has POST …/responses and GET …/models"
        if words.endswith(("/chat/completions", "/messages", "/completions")):
            why = "this model speaks the Responses API only: POST …/responses"
        self._refused(words, why)

    def _refused(self, what: str, why: str) -> None:
        self.strays.append(what)
        self._listener.refused(what, why)

    def _marked(self, model: ScriptedModel, body: MarkBody) -> None:
        """A call began or ended; the model has it in its list by now."""
        match body:
            case ModelCall(call=number):
                self.calls += 1
                conversation = next(one for one in self.conversations.all if one.model is model)
                called = model.calls[number - 1]
                served = self.conversations.note(conversation, called, self.calls)
                self._open[conversation.number, number] = served
                self._listener.asked(served)
            case ModelEnd(call=number):
                found = next(
                    key for key, one in self._open.items() if one.call is model.calls[number - 1]
                )
                self._listener.answered(self._open.pop(found))
            case _:
                pass


async def _answer(send: Send, status: int, value: Any) -> None:
    await whole(send, status, json.dumps(value).encode())
