"""MCP servers over HTTP for tests of the reference server: that of the SDK, and broken ones."""

import gzip
import json
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import uvicorn
from mcp.server.mcpserver import Context, MCPServer

from reference_server.config.mcp import McpServer

Message = dict[str, Any]
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
TOKEN = "remote-secret-3"
BOUND = 5.0


@dataclass
class Remote:
    """An application before a server, which records requests and can answer some itself.

    `answer` maps the method of a message to an application that answers it instead;
    `authorizations` has the header of each request, None without one.
    """

    app: App
    token: str = ""
    answer: dict[str, App] = field(default_factory=dict[str, App])
    authorizations: list[str | None] = field(default_factory=list[str | None])
    methods: list[str] = field(default_factory=list[str])
    url: str = ""

    def settings(self, **more: Any) -> McpServer:
        return McpServer("remote", url=self.url, **more)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if not hasattr(self.app, "router"):
                raise TypeError("it has no lifespan")
            return await self.app(scope, receive, send)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.authorizations.append(headers.get("authorization"))
        if self.token and headers.get("authorization") != f"Bearer {self.token}":
            return await answered(401)(scope, receive, send)
        body = b""
        if scope["method"] == "POST":
            while (part := await receive()).get("type") == "http.request":
                body += part["body"]
                if not part.get("more_body"):
                    break
        method = json.loads(body).get("method", "") if body else scope["method"]
        self.methods.append(method)
        read = False

        async def again() -> Message:
            nonlocal read
            if read:
                return await receive()
            read = True
            return {"type": "http.request", "body": body}

        await self.answer.get(method, self.app)(scope, again, send)


def answered(status: int, body: bytes = b"", **headers: str) -> App:
    """Return an application that answers with this status, body and headers."""

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        pairs = [
            (name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()
        ]
        await send({"type": "http.response.start", "status": status, "headers": pairs})
        await send({"type": "http.response.body", "body": body})

    return app


def packed(size: int) -> App:
    """Return an application whose answer has `size` bytes after decompression."""
    body = gzip.compress(b" " * size)
    return answered(200, body, content_type="application/json", content_encoding="gzip")


async def hanging(_scope: Scope, receive: Receive, _send: Send) -> None:
    """Answer nothing until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def breaking(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Begin an event stream and break it off."""
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b": hello\n\n", "more_body": True})
    raise ConnectionError("broken off")


def plain_server() -> MCPServer:
    """Return a server of the SDK with the tools `add`, which reports progress, and `fail`."""
    server = MCPServer("remote")

    @server.tool()
    async def add(a: int, b: int, context: Context) -> str:
        """Adds two numbers."""
        await context.report_progress(1, 2, "half")
        return f"the sum is {a + b}"

    @server.tool()
    async def fail() -> str:
        """Always fails."""
        raise ValueError("it always fails")

    return server


@asynccontextmanager
async def serving(app: App) -> AsyncGenerator[str]:
    """Serve an application on loopback and yield its URL without a path."""
    config = uvicorn.Config(
        app,  # pyright: ignore[reportArgumentType]
        log_config=None,
        timeout_graceful_shutdown=0,
        lifespan="auto",
        ws="none",
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with anyio.create_task_group() as tasks:
            started = anyio.Event()
            original = server.startup

            async def startup(sockets: Any = None) -> None:
                await original(sockets)
                started.set()

            server.startup = startup
            tasks.start_soon(server._serve, [listener])
            with anyio.fail_after(BOUND):
                await started.wait()
            try:
                yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            finally:
                server.should_exit = True
                server.force_exit = True


@asynccontextmanager
async def remote_server(token: str = "", **options: Any) -> AsyncGenerator[Remote]:
    """Serve the plain server over streamable HTTP, demanding `token` if given."""
    remote = Remote(cast("App", plain_server().streamable_http_app(**options)), token)
    async with serving(remote) as address:
        remote.url = f"{address}/mcp"
        yield remote
