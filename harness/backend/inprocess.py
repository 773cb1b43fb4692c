"""The scripted model as an httpx transport: no socket, for `agent app-server --scenario`.

It streams chunk by chunk like a real one, so that buffering hides nothing. Gates that the
scenario's client would open are open from the start, since no player runs. A gate that the scenario
never opens holds until the caller closes the stream, as an interrupt does.
"""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Protocol

import httpx

from harness.backend.model import Answer, ScriptedModel, catalogue
from harness.backend.play import StreamCut
from harness.backend.script import Script
from harness.backend.wire.responses import ResponsesEncoder

if TYPE_CHECKING:
    from collections.abc import Iterable


class PlaysModel(Protocol):
    """The part of a scenario that this transport needs."""

    def scripts(self) -> dict[str, Script]:
        """Thread alias -> script, in the order in which the scenario starts the threads."""
        ...

    def opened_gates(self) -> "Iterable[str]":
        """The gates that the client's side opens."""
        ...

    @property
    def strict_model(self) -> bool:
        """Whether a call of a thread that has no script is a problem."""
        ...


class ScriptedTransport(httpx.AsyncBaseTransport):
    """Answers model calls from a script."""

    def __init__(
        self,
        script: Script | dict[str, Script],
        *,
        open_gates: "Iterable[str]" = (),
        strict: bool = False,
    ) -> None:
        self.model = ScriptedModel(script, ResponsesEncoder(), strict=strict)
        for gate in open_gates:
            self.model.gates.open(gate)

    @classmethod
    def from_scenario(cls, scenario: PlaysModel) -> "ScriptedTransport":
        """A transport that plays the model's side of a scenario."""
        return cls(
            scenario.scripts(), open_gates=scenario.opened_gates(), strict=scenario.strict_model
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer one request; an unknown path is a 404."""
        path = request.url.path.rstrip("/")
        if request.method == "GET" and path.endswith("/models"):
            return httpx.Response(200, json=catalogue())
        if request.method != "POST" or not path.endswith("/responses"):
            return httpx.Response(404, json={"error": {"message": f"no {path} here"}})
        answer = self.model.answer(await request.aread())
        if answer.chunks is None:
            return httpx.Response(answer.status, headers=answer.headers, stream=_Body(answer.body))
        return httpx.Response(answer.status, headers=answer.headers, stream=_Chunks(answer))


class _Body(httpx.AsyncByteStream):
    """A whole body. Given as `content` it could be read, but not as a stream."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body


class _Chunks(httpx.AsyncByteStream):
    """The chunks of an answer; to the reader a cut looks like a lost connection."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._answer.chunks is None:
            return
        try:
            async for chunk in self._answer.chunks:
                yield chunk
        except StreamCut:
            raise httpx.RemoteProtocolError("the scripted model closed the connection") from None

    async def aclose(self) -> None:
        if self._answer.chunks is not None:
            await self._answer.chunks.aclose()
