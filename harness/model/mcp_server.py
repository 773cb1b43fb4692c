"""Answers of the MCP servers of a play, and notes on what they are asked.

Messages in, messages out: here is no socket. What an agent sends is cut before it is noted, and the
tokens of the play are replaced in it; a play notes a bounded number of messages.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from harness.model.mcp_script import McpServer, McpTool
from harness.protocol.values import obj, text
from harness.trace.marks import MarkBody, McpAsked
from harness.trace.mcp_marks import (
    Held,
    McpAnswer,
    McpConfigured,
    McpRequest,
    McpStarted,
    McpTransport,
)

VERSION: Final = "2025-06-18"
# What is noted of names, of a list of arguments and of the arguments of a call.
MAX_NAME_CHARACTERS: Final = 200
MAX_ARGUMENTS_CHARACTERS: Final = 64 * 1024
MAX_MESSAGES: Final = 5_000
MASKED: Final = "(the token of the play)"
NO_METHOD: Final = -32601
NO_PARAMS: Final = -32602


@dataclass(slots=True)
class McpServers:
    """The servers of one play, by their names.

    `note` takes the marks. `tokens` are the bearer tokens, by the names of their variables.
    """

    servers: Mapping[str, McpServer]
    tokens: Mapping[str, str]
    note: Callable[[MarkBody], object] = field(default=lambda _body: None)
    _count: int = 0
    _starts: int = 0

    def begin(self, note: Callable[[MarkBody], object]) -> None:
        """From now on this takes the marks; first, what is configured."""
        self.note = note
        for name, one in self.servers.items():
            note(
                McpConfigured(
                    server=name,
                    transport=McpTransport(one.transport),
                    enabled=one.enabled,
                    tools=tuple(one.tools),
                    args=tuple(one.args),
                    variables=tuple(one.env),
                    token=one.bearer_token_env_var or "",
                )
            )

    @property
    def tools(self) -> list[McpAsked]:
        """The tools of all servers."""
        return [McpAsked(name, tool) for name, one in self.servers.items() for tool in one.tools]

    @property
    def overrun(self) -> bool:
        """Return whether the agent has sent more than a play notes.

        Nothing is answered any more.
        """
        return self._count + self._starts >= MAX_MESSAGES

    def started(self, noted: McpStarted) -> None:
        """The program of a server was started."""
        self._starts += 1
        args = tuple(self._masked(one)[:MAX_ARGUMENTS_CHARACTERS] for one in noted.args)
        self.note(
            McpStarted(
                server=noted.server, args=args, variables=noted.variables, tokens=noted.tokens
            )
        )

    def answer(
        self, server: str, transport: McpTransport, message: Any, token: Held = Held.NONE
    ) -> dict[str, Any] | None:
        """The answer to a message, None where it needs none."""
        asked, params = obj(message), obj(obj(message).get("params"))
        method = text(asked.get("method"))
        if not method:
            return None  # An answer, or nothing that MCP has: these servers ask nothing.
        calls = method == "tools/call"
        number = self._noted(
            server,
            transport,
            method,
            token,
            tool=text(params.get("name")) if calls else "",
            arguments=_as_json(params.get("arguments")) if calls else "",
        )
        if "id" not in asked:
            return None
        result = self._result(self.servers[server], method, params)
        if isinstance(result, McpTool):
            self.note(McpAnswer(number=number, texts=(result.says,), failed=result.fails))
            result = _tool_result(result)
        if result is None:
            code, words = (NO_PARAMS, "no such tool") if calls else (NO_METHOD, "no such method")
            return {"jsonrpc": "2.0", "id": asked["id"], "error": {"code": code, "message": words}}
        return {"jsonrpc": "2.0", "id": asked["id"], "result": result}

    def refused(self, server: str, message: Any, token: Held) -> None:
        """A message came without the token of the play: it is noted, and not carried out."""
        method = text(obj(message).get("method"))
        if not method:
            return
        number = self._noted(server, McpTransport.HTTP, method, token)
        self.note(McpAnswer(number=number, refused=True))

    def _noted(
        self,
        server: str,
        transport: McpTransport,
        method: str,
        token: Held,
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
                method=self._masked(method)[:MAX_NAME_CHARACTERS],
                tool=self._masked(tool)[:MAX_NAME_CHARACTERS],
                arguments=""
                if len(arguments) > MAX_ARGUMENTS_CHARACTERS
                else self._masked(arguments),
                token=token,
            )
        )
        return self._count

    def _masked(self, words: str) -> str:
        for token in self.tokens.values():
            words = words.replace(token, MASKED)
        return words

    def _result(
        self, server: McpServer, method: str, params: dict[str, Any]
    ) -> dict[str, Any] | McpTool | None:
        match method:
            case "initialize":
                version = params.get("protocolVersion")
                return {
                    "protocolVersion": version if isinstance(version, str) else VERSION,
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "harness", "version": "1"},
                }
            case "ping":
                return {}
            case "tools/list":
                return {"tools": [_listed(name, one) for name, one in server.tools.items()]}
            case "tools/call":
                return server.tools.get(text(params.get("name")))
            case _:
                return None


def _listed(name: str, tool: McpTool) -> dict[str, Any]:
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
