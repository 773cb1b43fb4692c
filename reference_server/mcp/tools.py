"""Tools of MCP servers as offered to a model.

They have limits, since their descriptions are part of each model call, and servers are not trusted.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from reference_server.brief import brief
from reference_server.config.mcp import McpServer

Fields = dict[str, Any]


class OnProgress(Protocol):
    """Callback for the progress of a call; `total` and `message` are None if not reported."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """Take a report of progress."""
        ...


MAX_TOOLS = 200
"""Maximum tools of one server."""
MAX_PAGES = 50
"""Maximum pages of a list of tools."""
DESCRIPTION_LIMIT = 4_000
"""Maximum characters of a description; the middle of a longer one is left out."""
SCHEMA_LIMIT = 32_000
"""Maximum characters of a schema's JSON; a tool with a larger one is not offered."""


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool as its server lists it; `schema` is a JSON Schema of its arguments."""

    name: str
    description: str
    schema: Fields


@dataclass(frozen=True, slots=True)
class Listing:
    """Tools of a server that are offered, and messages about others."""

    tools: tuple[McpTool, ...] = ()
    left_out: tuple[str, ...] = ()


MAX_LEFT_OUT = 20
"""Maximum messages about a server's tools that are not offered; the others are counted."""


def listing(server: McpServer, tools: Iterable[McpTool], left_out: Sequence[str] = ()) -> Listing:
    """Return the tools to offer, within the limits; `left_out`: messages about invalid tools."""
    offered: dict[str, McpTool] = {}
    left_out = list(left_out)
    for tool in tools:
        if not server.offers(tool.name) or tool.name in offered:
            continue
        if len(offered) == MAX_TOOLS:
            left_out.append(f"only {MAX_TOOLS} of its tools are offered")
            break
        if (size := len(json.dumps(tool.schema))) > SCHEMA_LIMIT:
            left_out.append(
                f"its tool {brief(tool.name)} is not offered: "
                f"its schema has {size:,} characters, more than {SCHEMA_LIMIT:,}"
            )
            continue
        offered[tool.name] = tool
    if (more := len(left_out) - MAX_LEFT_OUT) > 0:
        left_out[MAX_LEFT_OUT:] = [f"{more:,} more of its tools are not offered"]
    return Listing(tuple(offered.values()), tuple(left_out))


def offer(name: str, tool: McpTool) -> Fields:
    """Return the entry of `tools` in a model call; `name` is the tool's name for the model."""
    return {
        "type": "function",
        "name": name,
        "description": brief(tool.description, DESCRIPTION_LIMIT),
        "strict": False,
        "parameters": _parameters(tool.schema),
    }


def _parameters(schema: Mapping[str, Any]) -> Fields:
    """Return the schema with type object and, as models require, properties."""
    return {"properties": {}, **schema, "type": "object"}
