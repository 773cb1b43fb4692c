"""Hosting of the MCP servers of a play: as programs, and over HTTP.

A program of the play sends the play's key before anything is recorded, and the address of an HTTP
server contains it, so that no other process can write into a trace.
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
from harness.model.server import Receive, Scope, Send, read_body, send_response, serve_on_loopback
from harness.protocol.values import arr, obj, text
from harness.trace.mcp_marks import McpStarted, McpTransport, McpVariable, Possession

MAX_LINE_BYTES: Final = 4 * 1024 * 1024
_GONE = (
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
    anyio.IncompleteRead,
    anyio.DelimiterNotFound,
)


@dataclass(frozen=True, slots=True)
class McpSettings:
    """Settings for the agent of a play: `config`, and `env` for its environment."""

    servers: McpServers
    config: Mapping[str, Any]
    env: Mapping[str, str]


@asynccontextmanager
async def serve_mcp_servers(
    servers: Mapping[str, McpServer], folder: Callable[[], Path]
) -> AsyncGenerator[McpSettings]:
    """Serve these MCP servers for the length of the block; `folder` makes a private folder.

    Without servers nothing is opened. An exception in the block is raised unchanged, in no group.
    """
    tokens = {
        server.bearer_token_env_var: secrets.token_hex(24)
        for server in servers.values()
        if server.bearer_token_env_var is not None
    }
    mcp_servers = McpServers(servers, tokens)
    if not servers:
        yield McpSettings(mcp_servers, {}, {})
        return
    key, failure = secrets.token_hex(16), None
    async with AsyncExitStack() as stack:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        await stack.enter_async_context(listener)
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        tables: dict[str, Any] = {}
        if any(server.transport == "stdio" for server in servers.values()):
            tasks.start_soon(listener.serve, _ProgramHost(mcp_servers, key).serve)
            settings_file = folder() / "told.json"
            _write(
                settings_file,
                _program_settings(
                    listener.extra(anyio.abc.SocketAttribute.local_port), key, mcp_servers
                ),
            )
            for name, server in servers.items():
                if server.transport == "stdio":
                    words = ["-I", mcp_program.__file__, str(settings_file), name, *server.args]
                    command = {"type": "stdio", "command": sys.executable, "args": words}
                    tables[name] = server.table(command)
        if any(server.transport == "http" for server in servers.values()):
            url = await stack.enter_async_context(
                serve_on_loopback(_HttpHost(mcp_servers, key), tasks)
            )
            for name, server in servers.items():
                if server.transport == "http":
                    address = {"type": "streamable_http", "url": f"{url}/{key}/{name}"}
                    tables[name] = server.table(address)
        try:
            yield McpSettings(mcp_servers, {"mcp_servers": tables}, tokens)
        except Exception as error:
            failure = error  # Raised below, since a task group would wrap it.
    if failure is not None:
        raise failure


def _program_settings(port: int, key: str, mcp_servers: McpServers) -> dict[str, Any]:
    """Return the contents of the settings file for `mcp_program`."""
    return {
        "port": port,
        "key": key,
        "servers": {
            name: {variable: _digest(value) for variable, value in server.env.items()}
            for name, server in mcp_servers.servers.items()
        },
        "tokens": {name: _digest(token) for name, token in mcp_servers.tokens.items()},
    }


def _write(path: Path, value: Any) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(value, file)


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()


@dataclass(frozen=True, slots=True)
class _ProgramHost:
    """Server for the programs of stdio MCP servers, each on a connection of its own."""

    servers: McpServers
    key: str

    async def serve(self, stream: ByteStream) -> None:
        async with stream:
            lines = BufferedByteReceiveStream(stream)
            try:
                server = self._server_of_hello(
                    _parse_json(await lines.receive_until(b"\n", MAX_LINE_BYTES))
                )
                while server and not self.servers.is_overrun:
                    message = _parse_json(await lines.receive_until(b"\n", MAX_LINE_BYTES))
                    reply = self.servers.answer(server, McpTransport.STDIO, message)
                    if reply is not None:
                        await stream.send(json.dumps(reply).encode() + b"\n")
            except _GONE:
                return

    def _server_of_hello(self, hello: Any) -> str:
        """Record the start of a program and return its server; "" without the right key."""
        members = obj(hello)
        server = text(members.get("server"))
        is_key_right = hmac.compare_digest(
            text(members.get("key")).encode("utf-8", "replace"), self.key.encode()
        )
        if not is_key_right or server not in self.servers.servers:
            return ""
        variables = obj(members.get("variables"))
        self.servers.add_program_start(
            McpStarted(
                server=server,
                args=tuple(map(text, arr(members.get("args")))),
                variables=tuple(
                    McpVariable(name, Possession(text(variables[name]))) for name in variables
                ),
                tokens=tuple(map(text, arr(members.get("tokens")))),
            )
        )
        return server


@dataclass(frozen=True, slots=True)
class _HttpHost:
    """ASGI app of the streamable HTTP servers: messages one by one, as JSON, without session."""

    servers: McpServers
    key: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI request."""
        if scope["type"] != "http":
            return
        server = self._server(str(scope["path"]))
        body = await read_body(receive)
        if body is None:
            return
        if server is None or self.servers.is_overrun:
            await send_response(send, 404, b"{}")
            return
        if scope["method"] != "POST":
            await send_response(send, 405, b"{}", {"allow": "POST"})
            return
        message = _parse_json(body) if len(body) <= MAX_LINE_BYTES else None
        if not obj(message):
            await send_response(send, 400, b'{"error":"expected one message of JSON-RPC"}')
            return
        token = self._token(server, scope["headers"])
        if (
            self.servers.servers[server].bearer_token_env_var is not None
            and token is not Possession.SAME
        ):
            self.servers.add_refusal(server, message, token)
            await send_response(send, 401, b"{}", {"www-authenticate": "Bearer"})
            return
        reply = self.servers.answer(server, McpTransport.HTTP, message, token)
        if reply is None:
            await send_response(send, 202, b"")
        else:
            await send_response(send, 200, json.dumps(reply).encode())

    def _server(self, path: str) -> str | None:
        key, _, name = path.removeprefix("/").partition("/")
        is_key_right = hmac.compare_digest(key.encode("utf-8", "replace"), self.key.encode())
        server = self.servers.servers.get(name) if is_key_right else None
        return name if server is not None and server.transport == "http" else None

    def _token(self, server: str, headers: list[tuple[bytes, bytes]]) -> Possession:
        """Return whether a request has this server's bearer token, another one, or none."""
        values = [value for name, value in headers if name.lower() == b"authorization"]
        if not values:
            return Possession.NONE
        variable = self.servers.servers[server].bearer_token_env_var
        token = self.servers.tokens.get(variable or "", "")
        scheme, _, token_sent = values[0].partition(b" ")
        is_same = scheme.lower() == b"bearer" and len(values) == 1
        is_same = (
            is_same and bool(token) and hmac.compare_digest(token_sent.strip(), token.encode())
        )
        return Possession.SAME if is_same else Possession.OTHER


def _parse_json(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None
