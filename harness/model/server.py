"""The scripted model over HTTP on loopback.

One server runs as long as its worker. `set_model` sets the model that answers; after `add_model`
several share the server, and the markers in a call choose one. Calls that no model answers are
listed in `strays`. Each chunk is sent at once, and a caller that disconnects is noticed at once,
even while the stream waits at a gate. With `listen` its address can refuse connections for a while.
"""

import contextlib
import json
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import uvicorn
from anyio.abc import TaskGroup

from harness.model.encoder import Encoder
from harness.model.model import ScriptedModel, model_list
from harness.model.performance import StreamCut
from harness.model.wire.registry import wire_of

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MAX_BODY_BYTES = 64 * 1024 * 1024


class ModelServer:
    """HTTP server of the scripted model; `url` is the base URL for a server under test.

    The port is reserved for its whole life: a socket holds it even while nothing listens. Raises
    `OSError` if the address is not available.
    """

    def __init__(self, tasks: TaskGroup, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self._tasks = tasks
        self._host = host
        self._socket = _bind_socket(port, host)
        self._server: _Server | None = None
        self.url = f"{_url_of(self._socket)}/v1"
        self.strays: list[str] = []
        self._models: list[ScriptedModel] = []

    async def listen(self, *, listening: bool) -> None:
        """Accept or refuse new connections; answers in progress are finished."""
        if listening and self._server is None:
            self._server = _Server(_config(self))
            self._tasks.start_soon(self._server.run_on, self._socket)
            await self._server.ready.wait()
        elif not listening and self._server is not None:
            port: int = self._socket.getsockname()[1]
            await self._stop(self._server)
            self._socket = _bind_socket(port, self._host)

    async def close(self) -> None:
        """Stop the server and release its port."""
        if self._server is not None:
            await self._stop(self._server)
        self._socket.close()

    async def _stop(self, server: "_Server") -> None:
        self._server = None
        server.should_exit = server.force_exit = True
        with anyio.CancelScope(shield=True):
            await server.done.wait()

    def set_model(self, model: ScriptedModel | None) -> None:
        """Make this model answer all calls from now on; None for no model."""
        self._models = [] if model is None else [model]

    def add_model(self, model: ScriptedModel) -> None:
        """Add a model; of several, the one whose marker a call contains answers it."""
        self._models.append(model)

    def remove_model(self, model: ScriptedModel) -> None:
        """Remove a model."""
        self._models.remove(model)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI request."""
        if scope["type"] != "http":
            return
        path = str(scope["path"]).rstrip("/")
        if scope["method"] == "GET" and path.endswith("/models"):
            await send_response(send, 200, json.dumps(model_list()).encode())
        elif scope["method"] == "POST" and (wire := wire_of(path)) is not None:
            await self._call(wire, receive, send)
        else:
            self.note_stray(f"{scope['method']} {path}")
            await send_response(
                send, 404, b'{"error":{"message":"the scripted model has no such path"}}'
            )

    def note_stray(self, words: str) -> None:
        """Record a request that no model answered."""
        self.strays.append(words)

    def model_of(self, body: bytes, wire: Encoder) -> ScriptedModel | None:
        """Return the model that answers a call, None if there is none."""
        if len(self._models) == 1:
            return self._models[0]
        return next((model for model in self._models if model.claims(body, wire)), None)

    async def _call(self, wire: Encoder, receive: Receive, send: Send) -> None:
        body = await read_body(receive)
        if body is None:
            return  # The caller disconnected before its request was complete.
        await self.reply(body, wire, receive, send)

    async def reply(self, body: bytes, wire: Encoder, receive: Receive, send: Send) -> None:
        """Answer a call whose body was read; 503 if no model answers it."""
        model = self.model_of(body, wire)
        if model is None:
            reason = "of no running scenario" if self._models else "while no scenario was running"
            self.note_stray(f"a model call {reason}")
            await send_response(send, 503, b'{"error":{"message":"no scenario is running"}}')
            return
        answer = model.answer(body, wire)
        if answer.chunks is None:
            await send_response(send, answer.status, answer.body, answer.headers)
            return
        await _start(send, answer.status, answer.headers)
        cut = False
        async with contextlib.aclosing(answer.chunks) as chunks, anyio.create_task_group() as tasks:
            tasks.start_soon(_cancel_on_disconnect, receive, tasks.cancel_scope)
            try:
                async for chunk in chunks:
                    if not chunk:
                        continue
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                    # `send` does not wait, so a disconnect is noticed only here.
                    await anyio.lowlevel.checkpoint()
                await send({"type": "http.response.body", "body": b""})
            except StreamCut:
                cut = True
            tasks.cancel_scope.cancel()
        if cut:
            # An exception now makes the server drop the connection in the middle of the body: to
            # the caller that is a lost connection, as the script demands.
            raise StreamCut


@asynccontextmanager
async def model_server() -> AsyncGenerator[ModelServer]:
    """Run a model server on a free loopback port for the length of the block."""
    async with anyio.create_task_group() as tasks:
        app = ModelServer(tasks)
        try:
            await app.listen(listening=True)
            yield app
        finally:
            await app.close()


def _bind_socket(port: int, host: str = "127.0.0.1") -> socket.socket:
    """Return a socket that is bound to the port (0 for a free one) but does not listen."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle's algorithm only if the protocol is given: chunks are sent at once.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise
    return listener


def _url_of(listener: socket.socket) -> str:
    """Return the URL of a bound socket as reached from this machine."""
    name: tuple[str, int] = listener.getsockname()[:2]
    host, port = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name[0], name[0]), name[1]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@asynccontextmanager
async def serve_on_loopback(app: Any, tasks: TaskGroup, port: int = 0) -> AsyncGenerator[str]:
    """Serve an ASGI app on a loopback port for the length of the block; yield its URL.

    Port 0 is any free one. Raises `OSError` if the port is taken.
    """
    listener = _bind_socket(port)
    server = _Server(_config(app))
    tasks.start_soon(server.run_on, listener)
    await server.ready.wait()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = server.force_exit = True
        with anyio.CancelScope(shield=True):
            await server.done.wait()


def _config(app: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=None,
        log_level="critical",
        access_log=False,
        lifespan="off",
        date_header=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )


class _Server(uvicorn.Server):
    """uvicorn inside our event loop, without signal handlers; `ready` and `done` are events."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = anyio.Event()
        self.done = anyio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.ready.set()

    async def run_on(self, listener: socket.socket) -> None:
        try:
            await self.serve(sockets=[listener])
        finally:
            self.ready.set()
            self.done.set()


async def _cancel_on_disconnect(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def read_body(receive: Receive) -> bytes | None:
    """Return the whole body, None if the caller disconnects before its end.

    Reading stops after `MAX_BODY_BYTES`; the rest is missing.
    """
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if not message.get("more_body") or len(body) > MAX_BODY_BYTES:
            return bytes(body)


async def _start(send: Send, status: int, headers: dict[str, str]) -> None:
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})


async def send_response(
    send: Send, status: int, body: bytes, headers: dict[str, str] | None = None
) -> None:
    """Send a whole response at once; the default content type is JSON."""
    await _start(send, status, headers or {"content-type": "application/json"})
    await send({"type": "http.response.body", "body": body})
