"""Answers of the MCP servers of a play, and marks of the requests that they get.

Messages in, messages out, without a socket. Marks have a bounded part of each message, with the
tokens of the play masked; a play makes a bounded number of marks.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from harness.model.mcp_script import McpServer, McpTool
from harness.protocol.values import obj, text
from harness.trace.marks import MarkBody, McpToolCall
from harness.trace.mcp_marks import (
    McpAnswer,
    McpConfigured,
    McpRequest,
    McpStarted,
    McpTransport,
    Possession,
)

PROTOCOL_VERSION: Final = "2025-06-18"
# Limits of names and arguments in marks.
MAX_NAME_CHARACTERS: Final = 200
MAX_ARGUMENTS_CHARACTERS: Final = 64 * 1024
MAX_MESSAGES: Final = 5_000
TOKEN_MASK: Final = "(the token of the play)"
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602


@dataclass(slots=True)
class McpServers:
    """The servers of one play, by their names.

    `note` takes the marks. `tokens` maps the names of variables to bearer tokens.
    """

    servers: Mapping[str, McpServer]
    tokens: Mapping[str, str]
    note: Callable[[MarkBody], object] = field(default=lambda _body: None)
    _count: int = 0
    _starts: int = 0

    def begin(self, note: Callable[[MarkBody], object]) -> None:
        """Send the marks to `note` from now on, first one for each configured server."""
        self.note = note
        for name, server in self.servers.items():
            note(
                McpConfigured(
                    server=name,
                    transport=McpTransport(server.transport),
                    enabled=server.enabled,
                    tools=tuple(server.tools),
                    args=tuple(server.args),
                    variables=tuple(server.env),
                    token=server.bearer_token_env_var or "",
                )
            )

    @property
    def tools(self) -> list[McpToolCall]:
        """Return the tools of all servers."""
        return [
            McpToolCall(name, tool)
            for name, server in self.servers.items()
            for tool in server.tools
        ]

    @property
    def is_overrun(self) -> bool:
        """Return whether the limit of recorded messages is reached; then no more are answered."""
        return self._count + self._starts >= MAX_MESSAGES

    def add_program_start(self, program: McpStarted) -> None:
        """Mark the start of a server's program."""
        self._starts += 1
        args = tuple(
            self._mask_tokens(argument)[:MAX_ARGUMENTS_CHARACTERS] for argument in program.args
        )
        self.note(
            McpStarted(
                server=program.server, args=args, variables=program.variables, tokens=program.tokens
            )
        )

    def answer(
        self,
        server: str,
        transport: McpTransport,
        message: Any,
        token: Possession = Possession.NONE,
    ) -> dict[str, Any] | None:
        """Mark a request and return its answer; None if it needs none."""
        request, params = obj(message), obj(obj(message).get("params"))
        method = text(request.get("method"))
        if not method:
            return None  # Neither a request nor a notification; these servers expect no answers.
        is_call = method == "tools/call"
        number = self._note_request(
            server,
            transport,
            method,
            token,
            tool=text(params.get("name")) if is_call else "",
            arguments=_as_json(params.get("arguments")) if is_call else "",
        )
        if "id" not in request:
            return None
        result = self._result(self.servers[server], method, params)
        if isinstance(result, McpTool):
            self.note(McpAnswer(number=number, texts=(result.says,), failed=result.fails))
            result = _tool_result(result)
        if result is None:
            code, words = (
                (INVALID_PARAMS, "no such tool")
                if is_call
                else (METHOD_NOT_FOUND, "no such method")
            )
            return {
                "jsonrpc": "2.0",
                "id": request["id"],
                "error": {"code": code, "message": words},
            }
        return {"jsonrpc": "2.0", "id": request["id"], "result": result}

    def add_refusal(self, server: str, message: Any, token: Possession) -> None:
        """Mark a message without the right token, which was rejected."""
        method = text(obj(message).get("method"))
        if not method:
            return
        number = self._note_request(server, McpTransport.HTTP, method, token)
        self.note(McpAnswer(number=number, refused=True))

    def _note_request(
        self,
        server: str,
        transport: McpTransport,
        method: str,
        token: Possession,
        *,
        tool: str = "",
        arguments: str = "",
    ) -> int:
        self._count += 1
        self.note(
            McpRequest(
                number=self._count,
                server=server,
                transport=transport,
                method=self._mask_tokens(method)[:MAX_NAME_CHARACTERS],
                tool=self._mask_tokens(tool)[:MAX_NAME_CHARACTERS],
                arguments=""
                if len(arguments) > MAX_ARGUMENTS_CHARACTERS
                else self._mask_tokens(arguments),
                token=token,
            )
        )
        return self._count

    def _mask_tokens(self, words: str) -> str:
        for token in self.tokens.values():
            words = words.replace(token, TOKEN_MASK)
        return words

    def _result(
        self, server: McpServer, method: str, params: dict[str, Any]
    ) -> dict[str, Any] | McpTool | None:
        match method:
            case "initialize":
                version = params.get("protocolVersion")
                return {
                    "protocolVersion": version if isinstance(version, str) else PROTOCOL_VERSION,
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "harness", "version": "1"},
                }
            case "ping":
                return {}
            case "tools/list":
                return {"tools": [_tool_listing(name, tool) for name, tool in server.tools.items()]}
            case "tools/call":
                return server.tools.get(text(params.get("name")))
            case _:
                return None


def _tool_listing(name: str, tool: McpTool) -> dict[str, Any]:
    schema = {"type": "object", "properties": tool.takes}
    return {"name": name, "description": tool.description, "inputSchema": schema}


def _tool_result(tool: McpTool) -> dict[str, Any]:
    result: dict[str, Any] = {"content": [{"type": "text", "text": tool.says}]}
    if tool.structured is not None:
        result["structuredContent"] = tool.structured
    return {**result, "isError": True} if tool.fails else result


def _as_json(value: Any) -> str:
    try:
        return json.dumps({} if value is None else value)
    except RecursionError:
        return ""
