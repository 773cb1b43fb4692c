"""The configuration of one MCP server, as a value.

How they are written in config.toml is in `config.mcp_tables`.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

STARTUP = 10.0
"""Seconds that a server has to start and to list its tools."""
CALL = 60.0
"""Seconds that a call of a tool may take."""


@dataclass(frozen=True, slots=True)
class McpServer:
    """One server: a program spoken with over its streams, or an address spoken with over HTTP.

    `env` is what the program gets beside the few variables that all programs need; `cwd` is where
    it runs, the server's own folder if None. `token_variable` names the environment variable that
    holds the bearer token. `scopes` are asked for at a login unless others are, `client_id` is the
    client that was registered for this agent by hand. Times in seconds. `only`: the tools that are
    offered, None for all; `without`: those that are not. One that is not `enabled` is never
    started.
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
