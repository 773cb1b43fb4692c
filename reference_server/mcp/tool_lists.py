"""Removal of invalid tools from the lists that servers send.

The SDK rejects a whole list for one invalid tool, so such tools are removed first.
"""

import json
from typing import Any, cast

from mcp.types import Tool
from pydantic import ValidationError

from reference_server.brief import brief

Fields = dict[str, Any]
_NEEDED = ("name", "description", "inputSchema")
"""Members of a tool that this server uses."""


def clean_page(result: Fields) -> list[str]:
    """Remove from a page, in place, what the SDK rejects; return a message for each removal."""
    left_out: list[str] = []
    tools: list[Fields] = []
    for number, tool in enumerate(cast("list[Any]", result["tools"]), 1):
        if objection := objection_to(tool):
            left_out.append(f"its tool {_display_name(tool, number)} is not offered: {objection}")
        else:
            tools.append(_clean_tool(tool))
    result["tools"] = tools
    if not isinstance(result.get("nextCursor"), str | None):
        del result["nextCursor"]
        left_out.append("the rest of its tools is not known: its nextCursor is not a string")
    return left_out


def objection_to(tool: Any) -> str:
    """Return why a tool cannot be offered, "" if it can."""
    if not isinstance(tool, dict):
        return "it is not an object"
    members = cast("Fields", tool)
    if not isinstance(members.get("name"), str) or not members["name"]:
        return "its name is missing or not a string"
    if "inputSchema" not in members:
        return "its inputSchema is missing"
    schema = members["inputSchema"]
    if not isinstance(schema, dict):
        return f"its inputSchema must be an object, not {brief(json.dumps(schema))}"
    if "type" not in schema:
        return "its inputSchema must have the type object, and has none"
    if (kind := cast("Fields", schema)["type"]) != "object":
        return f"its inputSchema must have the type object, not {brief(json.dumps(kind))}"
    return ""


def _clean_tool(tool: Fields) -> Fields:
    """Return a tool, if it is not valid MCP with only the members that are used here."""
    try:
        Tool.model_validate(tool, by_name=False)
    except ValidationError:
        needed = {name: tool[name] for name in _NEEDED if name in tool}
        if not isinstance(needed.get("description"), str):
            needed.pop("description", None)
        return needed
    return tool


def _display_name(tool: Any, number: int) -> str:
    name = cast("Fields", tool).get("name") if isinstance(tool, dict) else None
    return brief(name) if isinstance(name, str) and name else f"number {number}"
