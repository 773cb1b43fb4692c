"""Schema of `[mcp_servers.NAME]` of config.toml.

Source: mcp-cli-and-sdk "MCP server configuration": `transport` is an inline table. The shipping
server has `command`, `args` and `url` beside the other keys instead: both forms are accepted. Keys
that the specification lacks (`cwd`, timeouts, lists of tools) are the shipping server's.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from reference_server.config.mcp import CALL, STARTUP, McpServer
from reference_server.config.values import (
    Address,
    Flag,
    KeyVariable,
    Table,
    Text,
    VariableName,
    VariableValue,
    expect,
    mistake,
    one_of,
)

MAX_SECONDS = 86_400
"""Maximum seconds of a timeout: a day."""
SCOPE = r"^[\x21\x23-\x5b\x5d-\x7e]+$"
"""Pattern of a valid scope (RFC 6749, 3.3)."""
Kind = Literal["stdio", "streamable_http"]
ServerName = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9_-]+$"),
    expect("a name of letters, digits, hyphens and underscores"),
]
# Secret: a wrong value can be a whole command line with a key in it.
Strings = Annotated[list[str], expect("an array of strings", secret=True)]
Scopes = Annotated[
    list[Annotated[str, Field(pattern=SCOPE)]],
    expect("an array of scopes, words without spaces and quotes"),
]
ClientId = Annotated[
    str, Field(pattern=r"^[\x20-\x7e]+$"), expect("the id of a client, in printable ASCII")
]
Program = Annotated[
    str, Field(min_length=1, pattern=r"^[^\x00]*$"), expect("a program, without NUL", secret=True)
]
Seconds = Annotated[
    float,
    Field(gt=0, le=MAX_SECONDS, allow_inf_nan=False),
    expect(f"a number of seconds, more than 0 and at most {MAX_SECONDS}"),
]


class TransportTable(Table):
    """The transport of an MCP server. A server of type stdio has command and args, one of type
    streamable_http has url. The same keys may stand in the table of the server itself."""

    type: Annotated[Kind, one_of(Kind)] | None = None
    """The type, which may be left out: `command` or `url` implies it."""
    command: Program | None = None
    """The program of a stdio server."""
    args: Strings | None = None
    """The arguments of the program."""
    url: Address | None = None
    """The address of a streamable HTTP server."""


class McpTable(TransportTable):
    """An MCP server, whose tools are offered to the model as `mcp__NAME__TOOL`."""

    transport: TransportTable | None = None
    enabled: Flag = True
    """A server that is not enabled is never started, and its tools are not offered."""
    env: dict[VariableName, VariableValue] = Field(default_factory=dict[str, str])
    """Environment variables of the program in addition to a few that all programs need."""
    cwd: Text | None = None
    """The folder in which the program runs; if absent, that of the server."""
    bearer_token_env_var: KeyVariable | None = None
    """The environment variable that holds the bearer token for the address."""
    scopes: Scopes | None = None
    """The OAuth scopes that `agent mcp login` requests; if absent, those that the server names."""
    oauth_client_id: ClientId | None = None
    """The id of an OAuth client registered by hand, for servers without client registration."""
    startup_timeout_sec: Seconds = STARTUP
    """Seconds in which the server must start and list its tools."""
    tool_timeout_sec: Seconds = CALL
    """Seconds that a tool call may take."""
    enabled_tools: Strings | None = None
    """The tools that are offered to the model; if absent, all."""
    disabled_tools: Strings = Field(default_factory=list[str])
    """Tools that are not offered to the model."""

    @property
    def _transport(self) -> TransportTable:
        return self.transport or self

    @model_validator(mode="after")
    def _check_transport(self) -> Self:
        transport = self._transport
        if self.transport is not None and (self.command or self.url or self.args is not None):
            raise mistake("a table with either `transport` or `command` and `url` beside it")
        if transport.command is None and transport.url is None:
            raise mistake("a table with the `command` of a program or the `url` of a server")
        if transport.command is not None and (
            transport.url is not None or transport.type == "streamable_http"
        ):
            raise mistake("a table of one kind: stdio has `command`, streamable_http has `url`")
        if transport.url is not None and (transport.args is not None or transport.type == "stdio"):
            raise mistake("a table of one kind: stdio has `command`, streamable_http has `url`")
        return self

    def settings(self, name: str) -> McpServer:
        """Return the server of this table; an HTTP server has no `env`, a program no token."""
        transport = self._transport
        return McpServer(
            name=name,
            command=transport.command or "",
            args=tuple(transport.args or ()),
            env=self.env if transport.command else {},
            cwd=self.cwd,
            url=transport.url or "",
            token_variable=self.bearer_token_env_var if transport.url else None,
            scopes=tuple(self.scopes or ()),
            client_id=self.oauth_client_id,
            startup_timeout=self.startup_timeout_sec,
            call_timeout=self.tool_timeout_sec,
            only=None if self.enabled_tools is None else frozenset(self.enabled_tools),
            without=frozenset(self.disabled_tools),
            enabled=self.enabled,
        )
