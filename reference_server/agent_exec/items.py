"""Conversion of protocol items to SDK items.

Both have the same ids, so an item can be found in the thread. Source: mcp-cli-and-sdk "SDK thread
items"; fields that it lacks (`id`, the status values, `null` for unknown values) are the shipping
program's. Items of types that the SDK lacks are not reported.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

Fields = dict[str, Any]

_STATUS = {
    "inProgress": "in_progress",
    "completed": "completed",
    "failed": "failed",
    "declined": "declined",
}
"""The SDK's status by the protocol's."""
ITEMS_WITH_START = frozenset({"commandExecution", "fileChange", "mcpToolCall", "webSearch"})
"""Types of items that are reported at their start too; others only when complete."""


@dataclass(frozen=True, slots=True)
class View:
    """Options of the conversion. Paths start at `cwd`; `raw_reasoning`: include raw blocks."""

    cwd: str
    raw_reasoning: bool = False


def sdk_item(item: Fields, view: View) -> Fields | None:
    """Return the SDK's form of an item; None if it has none or the item is empty."""
    shape = _SHAPES.get(str(item.get("type")))
    return None if shape is None else shape(item, view)


def error_item(item_id: str, message: str) -> Fields:
    """Return the item of an error that does not end the turn."""
    return {"id": item_id, "type": "error", "message": message}


def todo_list(item_id: str, plan: list[Fields]) -> Fields:
    """Return the item of a plan; steps in progress count as not completed."""
    return {
        "id": item_id,
        "type": "todo_list",
        "items": [
            {"text": step.get("step", ""), "completed": step.get("status") == "completed"}
            for step in plan
        ],
    }


def _message(item: Fields, _view: View) -> Fields | None:
    # Without a text the whole message was a plan, which is a separate item.
    text: str = item.get("text", "")
    return {"id": item["id"], "type": "agent_message", "text": text} if text else None


def _reasoning(item: Fields, view: View) -> Fields | None:
    sections: list[str] = list(item.get("summary", ()))
    if view.raw_reasoning:
        sections += item.get("content", ())
    text = "\n".join(sections)
    return {"id": item["id"], "type": "reasoning", "text": text} if text else None


def _command(item: Fields, _view: View) -> Fields:
    return {
        "id": item["id"],
        "type": "command_execution",
        "command": item["command"],
        "aggregated_output": item.get("aggregatedOutput") or "",
        "exit_code": item.get("exitCode"),
        "status": _STATUS[item["status"]],
    }


def _file_change(item: Fields, view: View) -> Fields:
    return {
        "id": item["id"],
        "type": "file_change",
        "changes": [one for change in item["changes"] for one in _changes(change, view)],
        "status": _STATUS[item["status"]],
    }


def _changes(change: Fields, view: View) -> list[Fields]:
    """Return the SDK's changes for one change: two for a moved file."""
    kind = cast("Fields", change["kind"])
    path = os.path.join(view.cwd, change["path"])
    new_path: str | None = kind.get("move_path")
    if new_path is None:
        return [{"kind": kind["type"], "path": path}]
    return [
        {"kind": "delete", "path": path},
        {"kind": "add", "path": os.path.join(view.cwd, new_path)},
    ]


def _mcp_call(item: Fields, _view: View) -> Fields:
    result = cast("Fields | None", item.get("result"))
    return {
        "id": item["id"],
        "type": "mcp_tool_call",
        "server": item["server"],
        "tool": item["tool"],
        "arguments": item["arguments"],
        "result": result
        and {
            "content": result.get("content", []),
            "structured_content": result.get("structuredContent"),
        },
        "error": item.get("error"),
        "status": _STATUS[item["status"]],
    }


def _web_search(item: Fields, _view: View) -> Fields:
    return {"id": item["id"], "type": "web_search", "query": item["query"]}


_SHAPES: dict[str, Callable[[Fields, View], Fields | None]] = {
    "agentMessage": _message,
    # The SDK has no proposed plan, which is often the agent's whole answer, so it is a message.
    "plan": _message,
    "reasoning": _reasoning,
    "commandExecution": _command,
    "fileChange": _file_change,
    "mcpToolCall": _mcp_call,
    "webSearch": _web_search,
}
