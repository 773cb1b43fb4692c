"""Configuration of one MCP server; `config.mcp_tables` has its form in config.toml."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

STARTUP = 10.0
"""Default seconds in which a server must start and list its tools."""
CALL = 60.0
"""Default seconds that a tool call may take."""


@dataclass(frozen=True, slots=True)
class McpServer:
    """Settings of one server: a `command` that speaks over its streams, or a `url` for HTTP.

    `env`: variables of the program in addition to a few that all programs need; `cwd`: its folder,
    this server's own if None. `token_variable`: the environment variable with the bearer token.
    `scopes`: requested at a login, unless its options name others; `client_id`: an OAuth client
    registered by hand. Timeouts in seconds. `only`: tools offered to the model, None for all;
    `without`: tools not offered. A server that is not `enabled` is never started.
    """

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: str | None = None
    url: str = ""
    token_variable: str | None = None
    scopes: tuple[str, ...] = ()
    client_id: str | None = None
    startup_timeout: float = STARTUP
    call_timeout: float = CALL
    only: Set[str] | None = None
    without: Set[str] = frozenset()
    enabled: bool = True

    def offers(self, tool: str) -> bool:
        """Return whether a tool of that name is offered to the model."""
        return (self.only is None or tool in self.only) and tool not in self.without
