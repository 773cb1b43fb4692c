"""The model's side of a recording: a proxy on loopback between a server and its real model.

Requests other than calls of a known API pass as well, without marks in the trace.
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
from harness.model.encoder import RESPONSES_API, Encoder
from harness.model.recorded_answers import READERS, AnswerReader
from harness.model.server import Receive, Send, read_body, serve_on_loopback
from harness.model.wire.registry import wire_of
from harness.protocol.values import obj
from harness.trace.frame import parse
from harness.trace.marks import ModelCall
from harness.trace.record.file import RecordingFile

# Headers of one connection, not of the message.
_HOP_HEADERS = {
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
# Seconds to connect; the time for an answer is not limited.
_MAX_CONNECT_SECONDS: Final = 30.0
_BAD_GATEWAY: Final = 502


class ModelProxy:
    """ASGI app that passes a server's requests to its model, and records calls and answers."""

    def __init__(self, origin: str, file: RecordingFile, client: httpx.AsyncClient) -> None:
        self._origin = origin
        self._file = file
        self._client = client
        self._calls = 0

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Serve one ASGI request."""
        if scope["type"] != "http":
            return
        body = await read_body(receive)
        if body is None:
            return
        path = str(scope.get("raw_path", b"").decode("ascii", "replace") or scope["path"])
        query = bytes(scope.get("query_string", b"")).decode("ascii", "replace")
        wire = wire_of(path.split("?")[0]) if scope["method"] == "POST" else None
        call = self._record_call(body, wire) if wire is not None else 0
        reader = READERS.get(wire.name if wire is not None else "", AnswerReader)(call)
        request = self._client.build_request(
            scope["method"],
            self._origin + path.split("?")[0] + (f"?{query}" if query else ""),
            headers=_end_to_end_headers(scope["headers"]),
            content=body,
        )
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_cancel_when_gone, receive, tasks.cancel_scope)
                await self._answer(request, reader, send)
                tasks.cancel_scope.cancel()
        finally:
            if wire is not None:
                output, end = reader.result()
                if output is not None:
                    self._file.write_mark(output)
                self._file.write_mark(end)

    def _record_call(self, body: bytes, wire: Encoder) -> int:
        self._calls += 1
        contents = wire.call_contents(wire.read(obj(parse(body))))
        name = "" if wire.name == RESPONSES_API else wire.name
        self._file.write_mark(ModelCall(call=self._calls, wire=name, **contents))
        return self._calls

    async def _answer(self, request: httpx.Request, reader: AnswerReader, send: Send) -> None:
        try:
            answer = await self._client.send(request, stream=True)
        except httpx.HTTPError as error:
            reader.note_refusal(_BAD_GATEWAY, f"the model cannot be reached: {error}")
            body = {"error": {"message": f"harness record: {error or type(error).__name__}"}}
            await _start(send, _BAD_GATEWAY, [(b"content-type", b"application/json")])
            await send({"type": "http.response.body", "body": json.dumps(body).encode()})
            return
        async with contextlib.aclosing(answer):
            reader.start(answer.status_code)
            await _start(send, answer.status_code, _end_to_end_headers(answer.headers.raw))
            try:
                async for chunk in answer.aiter_bytes():
                    reader.feed(chunk)
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                    await anyio.lowlevel.checkpoint()
            except httpx.HTTPError as error:
                reader.note_cut()
                # The caller's connection is dropped in the middle of the body, like the model's.
                raise _Dropped from error
            reader.end()
            await send({"type": "http.response.body", "body": b""})


class _Dropped(Exception):
    """Exception: the model's connection ended in the middle of its answer."""


@asynccontextmanager
async def model_proxy(model_url: str, file: RecordingFile) -> AsyncGenerator[str]:
    """Serve the proxy of a model at an address on loopback; yield the server's model URL.

    `model_url` is the real model's URL with its path, such as `https://api.openai.com/v1`. Raises
    `UsageError` if it is not a URL.
    """
    wrong = UsageError(f"--model-url {model_url}: expected an address such as https://host/v1")
    try:
        parts = urlsplit(model_url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError as error:  # A port above 65535, a bracket without its other.
        raise wrong from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise wrong
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    origin = f"{parts.scheme}://{host}{port}"
    limits = httpx.Timeout(None, connect=_MAX_CONNECT_SECONDS)
    async with httpx.AsyncClient(timeout=limits) as client, anyio.create_task_group() as tasks:
        async with serve_on_loopback(ModelProxy(origin, file, client), tasks) as address:
            yield address + parts.path.rstrip("/")
        tasks.cancel_scope.cancel()


def _end_to_end_headers(headers: Any) -> list[tuple[bytes, bytes]]:
    """Return the headers without those of one connection, and without `accept-encoding`."""
    return [(name, value) for name, value in headers if name.decode().lower() not in _HOP_HEADERS]


async def _start(send: Send, status: int, headers: list[tuple[bytes, bytes]]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def _cancel_when_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
