"""The model's side of a recording: a proxy on loopback between a server and its real model.

What is not a call of the Responses API passes as well; of it a trace has no marks.
"""

import contextlib
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
import anyio.lowlevel
import httpx

from harness.errors import UsageError
from harness.model.recorded_answers import AnswerReader
from harness.model.server import Receive, Send, body_of, loopback
from harness.model.wire.responses import ResponsesEncoder
from harness.protocol.values import obj
from harness.trace.frame import parse
from harness.trace.marks import ModelCall
from harness.trace.record.file import RecordingFile

# By these a server is told where its model is, as in a run of the harness.
MODEL_VARIABLES: Final = ("PROVIDER_BASE_URL", "OPENAI_BASE_URL")
# What is about one connection, and not about the message.
_HOP = {
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}
# Seconds to connect. A model may think for as long as it likes.
_CONNECT: Final = 30.0
_BAD_GATEWAY: Final = 502


class ModelProxy:
    """Passes on what a server asks its model, and writes it down."""

    def __init__(self, real: str, file: RecordingFile, client: httpx.AsyncClient) -> None:
        self._origin = real
        self._file = file
        self._client = client
        self._calls = 0
        self._api = ResponsesEncoder()

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """The ASGI application."""
        if scope["type"] != "http":
            return
        body = await body_of(receive)
        if body is None:
            return
        path = str(scope.get("raw_path", b"").decode("ascii", "replace") or scope["path"])
        query = bytes(scope.get("query_string", b"")).decode("ascii", "replace")
        is_call = scope["method"] == "POST" and path.rstrip("/").endswith("/responses")
        call = self._called(body) if is_call else 0
        reader = AnswerReader(call)
        request = self._client.build_request(
            scope["method"],
            self._origin + path.split("?")[0] + (f"?{query}" if query else ""),
            headers=_kept(scope["headers"]),
            content=body,
        )
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_cancel_when_gone, receive, tasks.cancel_scope)
                await self._answer(request, reader, send)
                tasks.cancel_scope.cancel()
        finally:
            if is_call:
                said, end = reader.finished()
                if said is not None:
                    self._file.mark(said)
                self._file.mark(end)

    def _called(self, body: bytes) -> int:
        self._calls += 1
        asked = self._api.asked(obj(parse(body)))
        self._file.mark(ModelCall(call=self._calls, **asked))
        return self._calls

    async def _answer(self, request: httpx.Request, reader: AnswerReader, send: Send) -> None:
        try:
            answer = await self._client.send(request, stream=True)
        except httpx.HTTPError as error:
            reader.refused(_BAD_GATEWAY, f"the model cannot be reached: {error}")
            body = {"error": {"message": f"harness record: {error or type(error).__name__}"}}
            await _start(send, _BAD_GATEWAY, [(b"content-type", b"application/json")])
            await send({"type": "http.response.body", "body": json.dumps(body).encode()})
            return
        async with contextlib.aclosing(answer):
            reader.began(answer.status_code)
            await _start(send, answer.status_code, _kept(answer.headers.raw))
            try:
                async for chunk in answer.aiter_bytes():
                    reader.feed(chunk)
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                    await anyio.lowlevel.checkpoint()
            except httpx.HTTPError as error:
                reader.cut()
                # The caller's connection is dropped without the end of the body, as the model's.
                raise _Dropped from error
            reader.whole()
            await send({"type": "http.response.body", "body": b""})


class _Dropped(Exception):
    """The model's connection ended in the middle of its answer."""


@asynccontextmanager
async def model_proxy(real: str, file: RecordingFile) -> AsyncGenerator[str]:
    """Serve the proxy of a model at an address on loopback; gives what to tell the server.

    `real` is the model's address as servers are told it: with its path, such as
    `https://api.openai.com/v1`. Raises `UsageError` where it is none.
    """
    parts = urlsplit(real)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"--model-url {real}: expected an address such as https://host/v1")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = f":{parts.port}" if parts.port else ""
    origin = f"{parts.scheme}://{host}{port}"
    limits = httpx.Timeout(None, connect=_CONNECT)
    async with httpx.AsyncClient(timeout=limits) as client, anyio.create_task_group() as tasks:
        async with loopback(ModelProxy(origin, file, client), tasks) as address:
            yield address + parts.path.rstrip("/")
        tasks.cancel_scope.cancel()


def _kept(headers: Any) -> list[tuple[bytes, bytes]]:
    """Headers without those that are about one connection; what comes is not compressed."""
    return [(name, value) for name, value in headers if name.decode().lower() not in _HOP]


async def _start(send: Send, status: int, headers: list[tuple[bytes, bytes]]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def _cancel_when_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
