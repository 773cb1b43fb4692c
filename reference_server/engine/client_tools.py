"""Tools that a client provides for a thread: `dynamicTools` of thread/start.

`tools.dynamic` calls them; it takes longer to import. Source: session-protocol "ThreadItem"
(dynamicToolCall). How a client provides a tool is not shown: the member is the shipping server's,
the limits are ours.
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from harness.protocol.wire.tool import DynamicTool
from reference_server.brief import brief_value
from reference_server.engine.tools.tool_definitions import (
    APPLY_PATCH,
    EXEC_COMMAND,
    UPDATE_PLAN,
    VIEW_IMAGE,
    WEB_SEARCH,
)
from reference_server.limits import MAX_DEPTH, is_too_deep
from reference_server.refusal import invalid_params

Fields = dict[str, Any]

MAX_TOOLS = 128
"""Maximum tools of one thread: a model takes no more in one call."""
MAX_TOOLS_CHARACTERS = 256 * 1024
"""Maximum characters of all tools of one thread together: each model call holds them."""
OF_MCP = "mcp__"
"""Prefix of the names of MCP servers' tools."""
OWN_NAMES = frozenset({EXEC_COMMAND, APPLY_PATCH, UPDATE_PLAN, VIEW_IMAGE, WEB_SEARCH})
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def check_client_tools(tools: Sequence[DynamicTool]) -> None:
    """Raise Refusal if a list of tools cannot be offered to a model as it is."""
    if len(tools) > MAX_TOOLS:
        raise invalid_params(f"dynamicTools: has more than {MAX_TOOLS} tools")
    names: set[str] = set()
    for position, tool in enumerate(tools):
        if objection := _objection(tool, names):
            raise invalid_params(f"dynamicTools[{position}].{objection}")
        names.add(tool.name)
    try:
        size = len(json.dumps(offers(tools), allow_nan=False))
    except (ValueError, RecursionError) as error:
        raise invalid_params(f"dynamicTools: cannot be written as JSON: {error}") from None
    if size > MAX_TOOLS_CHARACTERS:
        raise invalid_params(f"dynamicTools: has more than {MAX_TOOLS_CHARACTERS:,} characters")


def _objection(tool: DynamicTool, names: set[str]) -> str | None:
    """Return `member: mistake` of a tool, else None; `names` are those of the tools before it."""
    name = brief_value(tool.name)
    if not _NAME.fullmatch(tool.name):
        return f"name: {name} must be 1 to 64 letters, digits, `_` or `-`, as models take it"
    if tool.name in names:
        return f"name: {name} is there twice"
    if tool.name in OWN_NAMES or tool.name.startswith(OF_MCP):
        return f"name: {name} is a name of the server's own tools; choose another"
    if (kind := tool.input_schema.get("type", "object")) != "object":
        return f"inputSchema.type: must be 'object', not {brief_value(kind)}"
    if is_too_deep(tool.input_schema):
        return f"inputSchema: has more than {MAX_DEPTH} levels"
    return None


def offers(tools: Iterable[DynamicTool]) -> list[Fields]:
    """Return the entries of a client's tools for `tools` of a model call.

    A tool with the name of a server's own, which an old thread may have, is left out.
    """
    return [_offer(tool) for tool in tools if tool.name not in OWN_NAMES]


def _offer(tool: DynamicTool) -> Fields:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "strict": False,
        # Model providers reject a schema without these two.
        "parameters": {"type": "object", "properties": {}, **tool.input_schema},
    }
