"""Exchanges of an agent with the MCP servers that the harness plays: a class for each mark.

No value of a variable and no token is in a mark: it says whether they are those of the play.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final

from harness.trace.marks import MarkBody


class McpTransport(StrEnum):
    """The way an agent speaks with a server: to a program, or to an address."""

    STDIO = "stdio"
    HTTP = "http"


class Held(StrEnum):
    """Possession of a value that the play gave: this one, another one, none."""

    SAME = "same"
    OTHER = "other"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class McpConfigured(MarkBody):
    """The configuration of the agent has this server.

    `args` are the last arguments of its program, `variables` the names in its `env`. `token` is the
    name of the variable of the agent's environment that holds its bearer token, "" for none.
    """

    kind: ClassVar[str] = "mcp-configured"
    server: str
    transport: McpTransport
    enabled: bool = True
    tools: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    token: str = ""


@dataclass(frozen=True, slots=True)
class McpVariable:
    """A variable that the configuration gives a program, and what the program has of it."""

    name: str
    held: Held


@dataclass(frozen=True, slots=True, kw_only=True)
class McpStarted(MarkBody):
    """The program of a server was started.

    `args` are the last arguments that it got. `tokens` are the names of the variables of the agent
    whose tokens stand in its own environment, under whatever name.
    """

    kind: ClassVar[str] = "mcp-started"
    server: str
    args: tuple[str, ...] = ()
    variables: tuple[McpVariable, ...] = ()
    tokens: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class McpRequest(MarkBody):
    """A server got a request, or a notification.

    `number` counts those of the play, from 1. `tool` and `arguments`, as JSON text, are those of a
    call; arguments that are very long are "". `token` is the bearer token that came with it.
    """

    kind: ClassVar[str] = "mcp-request"
    number: int
    server: str
    transport: McpTransport
    method: str
    tool: str = ""
    arguments: str = ""
    token: Held = Held.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class McpAnswer(MarkBody):
    """The harness answers a request by its `number`: the texts of a result, and how it went.

    `refused` says that it asks for another token, `failed` that the tool says that it failed.
    """

    kind: ClassVar[str] = "mcp-answer"
    number: int
    texts: tuple[str, ...] = ()
    failed: bool = False
    refused: bool = False


MCP_BODIES: Final[tuple[type[MarkBody], ...]] = (
    McpConfigured,
    McpStarted,
    McpRequest,
    McpAnswer,
)
