"""The scripted model as an httpx transport without a socket, for tests of model clients.

It streams chunk by chunk like a real one, so that buffering hides nothing.
"""

from collections.abc import AsyncIterator

import httpx

from harness.model.model import Answer, ScriptedModel, model_list
from harness.model.performance import StreamCut
from harness.model.script import Script
from harness.model.wire.responses import ResponsesEncoder


class ScriptedTransport(httpx.AsyncBaseTransport):
    """Transport that answers model calls from one script, or one per thread alias."""

    def __init__(self, script: Script | dict[str, Script]) -> None:
        self.model = ScriptedModel(script, ResponsesEncoder())

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer one request; any path other than the model's is a 404."""
        path = request.url.path.rstrip("/")
        if request.method == "GET" and path.endswith("/models"):
            return httpx.Response(200, json=model_list())
        if request.method != "POST" or not path.endswith("/responses"):
            return httpx.Response(404, json={"error": {"message": f"no {path} here"}})
        answer = self.model.answer(await request.aread())
        if answer.chunks is None:
            return httpx.Response(answer.status, headers=answer.headers, stream=_Body(answer.body))
        return httpx.Response(answer.status, headers=answer.headers, stream=_Chunks(answer))


class _Body(httpx.AsyncByteStream):
    """A whole body as a stream; httpx does not stream a body passed as `content`."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body


class _Chunks(httpx.AsyncByteStream):
    """The chunks of an answer; a cut raises the error of a lost connection."""

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
