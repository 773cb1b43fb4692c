"""The scripted model of server tests: replies, served in process or over a real socket.

A reply is a list of parts: bytes are sent at once, an Event holds the stream until it is set, CUT
breaks the connection.
"""

import base64
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx
from anyio.abc import SocketStream

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)
"""The smallest image: a PNG of one pixel."""


class Cut:
    """Part of a reply at which the connection breaks."""


CUT = Cut()
Part = bytes | anyio.Event | Cut


@dataclass
class Reply:
    parts: Sequence[Part] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Refused:
    """Reply that refuses the connection."""


@dataclass
class ModelSide:
    """The model, which sends the replies in order and records the requests."""

    replies: list[Reply | Refused]
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[httpx.Headers] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    dropped: anyio.Event = field(default_factory=anyio.Event)

    def transport(self) -> httpx.AsyncBaseTransport:
        return httpx.MockTransport(self._handle)

    async def _handle(self, request: httpx.Request) -> httpx.Response:
        reply = self.take(request.url.path, request.headers, await request.aread())
        if isinstance(reply, Refused):
            raise httpx.ConnectError("refused")
        return httpx.Response(reply.status, headers=reply.headers, stream=_Stream(self, reply))

    def take(self, path: str, headers: httpx.Headers, body: bytes) -> Reply | Refused:
        self.paths.append(path)
        self.headers.append(headers)
        self.bodies.append(json.loads(body))
        return self.replies.pop(0)


class _Stream(httpx.AsyncByteStream):
    def __init__(self, side: ModelSide, reply: Reply) -> None:
        self._side = side
        self._reply = reply

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._reply.parts:
            match part:
                case bytes():
                    yield part
                case anyio.Event():
                    await part.wait()
                case Cut():
                    raise httpx.ReadError("cut")

    async def aclose(self) -> None:
        self._side.dropped.set()


@asynccontextmanager
async def over_a_socket(side: ModelSide) -> AsyncGenerator[str]:
    """Serve the replies on loopback and yield the base URL."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, lambda stream: _serve(side, stream))
        yield f"http://127.0.0.1:{port}/v1"
        tasks.cancel_scope.cancel()


async def _serve(side: ModelSide, stream: SocketStream) -> None:
    async with stream:
        try:
            while True:
                await _exchange(side, stream)
        except (anyio.EndOfStream, anyio.BrokenResourceError, ConnectionError, _Closed):
            return


class _Closed(Exception):
    pass


async def _exchange(side: ModelSide, stream: SocketStream) -> None:
    data = b""
    while b"\r\n\r\n" not in data:
        data += await stream.receive()
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = httpx.Headers(dict(line.split(": ", 1) for line in lines))
    while len(body) < int(headers["content-length"]):
        body += await stream.receive()
    reply = side.take(first.split()[1], headers, body)
    if isinstance(reply, Refused):
        raise _Closed
    extra = "".join(f"{name}: {value}\r\n" for name, value in reply.headers.items())
    status = f"HTTP/1.1 {reply.status} X\r\nTransfer-Encoding: chunked\r\n{extra}\r\n"
    await stream.send(status.encode())
    whole = False
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_watch, side, stream, tasks.cancel_scope)
        whole = await _send_parts(reply, stream)
        tasks.cancel_scope.cancel()
    if not whole:
        raise _Closed
    await stream.send(b"0\r\n\r\n")


async def _send_parts(reply: Reply, stream: SocketStream) -> bool:
    for part in reply.parts:
        match part:
            case bytes():
                await stream.send(b"%x\r\n%b\r\n" % (len(part), part))
            case anyio.Event():
                await part.wait()
            case Cut():
                return False
    return True


async def _watch(side: ModelSide, stream: SocketStream, scope: anyio.CancelScope) -> None:
    try:
        await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        # The caller disconnected and does not read the rest of this reply.
        side.dropped.set()
        scope.cancel()


def event(kind: str, **fields: Any) -> bytes:
    data = json.dumps({"type": kind, **fields})
    return f"event: {kind}\ndata: {data}\n\n".encode()


CREATED = event("response.created", response={"id": "resp_1"})
USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 15,
}


def completed(usage: dict[str, Any] | None = None) -> bytes:
    return event("response.completed", response={"id": "resp_1", "usage": usage})


def message_item(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text}] if text else []
    return {"type": "message", "role": "assistant", "id": "msg_1", "content": content}


def opened(index: int = 0) -> bytes:
    return event("response.output_item.added", output_index=index, item=message_item(""))


def delta(text: str, index: int = 0) -> bytes:
    return event("response.output_text.delta", output_index=index, delta=text)


def done(item: dict[str, Any], index: int = 0) -> bytes:
    return event("response.output_item.done", output_index=index, item=item)


def message(*deltas: str, index: int = 0) -> list[bytes]:
    whole = done(message_item("".join(deltas)), index)
    return [opened(index), *(delta(text, index) for text in deltas), whole]


def says(*deltas: str, usage: dict[str, Any] | None = None) -> Reply:
    return Reply([CREATED, *message(*deltas), completed(usage)])


def calls(name: str, call_id: str = "call_1", **arguments: Any) -> Reply:
    return Reply([CREATED, done(function_call(name, call_id, **arguments)), completed()])


def function_call(name: str, call_id: str = "call_1", **arguments: Any) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": "fc_1",
        "name": name,
        "call_id": call_id,
        "arguments": json.dumps(arguments),
    }


def runs(command: str, **arguments: Any) -> Reply:
    return calls("exec_command", cmd=command, **arguments)


def patches(*lines: str) -> Reply:
    item = {
        "type": "custom_tool_call",
        "id": "ctc_1",
        "name": "apply_patch",
        "call_id": "call_1",
        "input": "\n".join(["*** Begin Patch", *lines, "*** End Patch"]),
    }
    return Reply([CREATED, done(item), completed()])


def http_error(status: int, code: str = "x", **headers: str) -> Reply:
    body = json.dumps({"error": {"code": code, "message": "words of the provider"}}).encode()
    return Reply([body], status, {name.replace("_", "-"): v for name, v in headers.items()})
