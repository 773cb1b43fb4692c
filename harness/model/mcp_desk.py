"""Addresses of the MCP servers of a play: by their programs, and over HTTP.

A program of the play shows the key of the play before anything is noted, and the address of an HTTP
server holds it, so that no other process can speak into a trace.
"""

import hashlib
import hmac
import json
import os
import secrets
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream

from harness.model import mcp_program
from harness.model.mcp_script import McpServer
from harness.model.mcp_server import McpServers
from harness.model.server import Receive, Scope, Send, body_of, loopback, whole
from harness.protocol.values import arr, obj, text
from harness.trace.mcp_marks import Held, McpStarted, McpTransport, McpVariable

MAX_LINE: Final = 4 * 1024 * 1024
_GONE = (
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
    anyio.IncompleteRead,
    anyio.DelimiterNotFound,
)


@dataclass(frozen=True, slots=True)
class McpDesk:
    """Settings for the agent of a play: `config`, and `env` for its environment."""

    servers: McpServers
    config: Mapping[str, Any]
    env: Mapping[str, str]


@asynccontextmanager
async def mcp_desk(
    servers: Mapping[str, McpServer], folder: Callable[[], Path]
) -> AsyncGenerator[McpDesk]:
    """Answer for these servers for the length of the block; `folder` makes a private folder.

    With none nothing is opened. What leaves the block leaves it as it is, and in no group.
    """
    tokens = {
        one.bearer_token_env_var: secrets.token_hex(24)
        for one in servers.values()
        if one.bearer_token_env_var is not None
    }
    played = McpServers(servers, tokens)
    if not servers:
        yield McpDesk(played, {}, {})
        return
    key, failure = secrets.token_hex(16), None
    async with AsyncExitStack() as stack:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        await stack.enter_async_context(listener)
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        tables: dict[str, Any] = {}
        if any(one.transport == "stdio" for one in servers.values()):
            tasks.start_soon(listener.serve, _Programs(played, key).serve)
            told = folder() / "told.json"
            _write(told, _told(listener.extra(anyio.abc.SocketAttribute.local_port), key, played))
            for name, one in servers.items():
                if one.transport == "stdio":
                    words = ["-I", mcp_program.__file__, str(told), name, *one.args]
                    command = {"type": "stdio", "command": sys.executable, "args": words}
                    tables[name] = one.table(command)
        if any(one.transport == "http" for one in servers.values()):
            url = await stack.enter_async_context(loopback(_Addresses(played, key), tasks))
            for name, one in servers.items():
                if one.transport == "http":
                    reached = {"type": "streamable_http", "url": f"{url}/{key}/{name}"}
                    tables[name] = one.table(reached)
        try:
            yield McpDesk(played, {"mcp_servers": tables}, tokens)
        except Exception as error:
            failure = error  # Through the task group it would come out as one of a group.
    if failure is not None:
        raise failure


def _told(port: int, key: str, played: McpServers) -> dict[str, Any]:
    """Return the settings of the programs, see mcp_program."""
    return {
        "port": port,
        "key": key,
        "servers": {
            name: {variable: _digest(value) for variable, value in one.env.items()}
            for name, one in played.servers.items()
        },
        "tokens": {name: _digest(token) for name, token in played.tokens.items()},
    }


def _write(path: Path, value: Any) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(value, file)


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()


@dataclass(frozen=True, slots=True)
class _Programs:
    """Answers the programs of stdio servers, a connection each."""

    played: McpServers
    key: str

    async def serve(self, stream: ByteStream) -> None:
        async with stream:
            lines = BufferedByteReceiveStream(stream)
            try:
                server = self._greeted(_parsed(await lines.receive_until(b"\n", MAX_LINE)))
                while server and not self.played.overrun:
                    message = _parsed(await lines.receive_until(b"\n", MAX_LINE))
                    reply = self.played.answer(server, McpTransport.STDIO, message)
                    if reply is not None:
                        await stream.send(json.dumps(reply).encode() + b"\n")
            except _GONE:
                return

    def _greeted(self, hello: Any) -> str:
        """The server for which a program speaks, "" where it is none of the play."""
        said = obj(hello)
        server = text(said.get("server"))
        known = hmac.compare_digest(
            text(said.get("key")).encode("utf-8", "replace"), self.key.encode()
        )
        if not known or server not in self.played.servers:
            return ""
        held = obj(said.get("variables"))
        self.played.started(
            McpStarted(
                server=server,
                args=tuple(map(text, arr(said.get("args")))),
                variables=tuple(McpVariable(name, Held(text(held[name]))) for name in held),
                tokens=tuple(map(text, arr(said.get("tokens")))),
            )
        )
        return server


@dataclass(frozen=True, slots=True)
class _Addresses:
    """Answers the streamable HTTP servers: each message by itself, in JSON, without a session."""

    played: McpServers
    key: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI application."""
        if scope["type"] != "http":
            return
        server = self._server(str(scope["path"]))
        body = await body_of(receive)
        if body is None:
            return
        if server is None or self.played.overrun:
            await whole(send, 404, b"{}")
            return
        if scope["method"] != "POST":
            await whole(send, 405, b"{}", {"allow": "POST"})
            return
        message = _parsed(body) if len(body) <= MAX_LINE else None
        if not obj(message):
            await whole(send, 400, b'{"error":"expected one message of JSON-RPC"}')
            return
        token = self._token(server, scope["headers"])
        if self.played.servers[server].bearer_token_env_var is not None and token is not Held.SAME:
            self.played.refused(server, message, token)
            await whole(send, 401, b"{}", {"www-authenticate": "Bearer"})
            return
        reply = self.played.answer(server, McpTransport.HTTP, message, token)
        if reply is None:
            await whole(send, 202, b"")
        else:
            await whole(send, 200, json.dumps(reply).encode())

    def _server(self, path: str) -> str | None:
        key, _, name = path.removeprefix("/").partition("/")
        known = hmac.compare_digest(key.encode("utf-8", "replace"), self.key.encode())
        served = self.played.servers.get(name) if known else None
        return name if served is not None and served.transport == "http" else None

    def _token(self, server: str, headers: list[tuple[bytes, bytes]]) -> Held:
        """Return this server's token as a request has it; it must name the scheme `Bearer`."""
        given = [value for name, value in headers if name.lower() == b"authorization"]
        if not given:
            return Held.NONE
        variable = self.played.servers[server].bearer_token_env_var
        token = self.played.tokens.get(variable or "", "")
        scheme, _, shown = given[0].partition(b" ")
        same = scheme.lower() == b"bearer" and len(given) == 1
        same = same and bool(token) and hmac.compare_digest(shown.strip(), token.encode())
        return Held.SAME if same else Held.OTHER


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None
