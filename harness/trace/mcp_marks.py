"""Exchanges of an agent with the MCP servers that the harness plays: a class for each mark.

A mark has no value of a variable and no token; it says whether they are the ones that the play set.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final

from harness.trace.marks import MarkBody


class McpTransport(StrEnum):
    """The way an agent reaches a server: as a program that it starts, or by an address."""

    STDIO = "stdio"
    HTTP = "http"


class Possession(StrEnum):
    """Comparison of a value with the one that the play set; NONE if there is no value."""

    SAME = "same"
    OTHER = "other"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class McpConfigured(MarkBody):
    """A server in the configuration of the agent.

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
    """A configured variable of a program, and whether the program has its value."""

    name: str
    held: Possession


@dataclass(frozen=True, slots=True, kw_only=True)
class McpStarted(MarkBody):
    """The start of a server's program.

    `args` are the last arguments that it got. `tokens` are the names of the agent's variables whose
    tokens are in the program's environment, under any name.
    """

    kind: ClassVar[str] = "mcp-started"
    server: str
    args: tuple[str, ...] = ()
    variables: tuple[McpVariable, ...] = ()
    tokens: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class McpRequest(MarkBody):
    """A request or notification that a server got.

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
    token: Possession = Possession.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class McpAnswer(MarkBody):
    """The harness's answer to the request `number`: the texts and the outcome.

    `refused`: the server demands another token; `failed`: the tool reports a failure.
    """

    kind: ClassVar[str] = "mcp-answer"
    number: int
    texts: tuple[str, ...] = ()
    failed: bool = False
    refused: bool = False


MCP_BODIES: Final[tuple[type[MarkBody], ...]] = (McpConfigured, McpStarted, McpRequest, McpAnswer)
