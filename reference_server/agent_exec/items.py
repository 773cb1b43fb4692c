"""Protocol items in the words of the SDK.

Both vocabularies have the same ids, so an item can be found in the thread again. Source:
mcp-cli-and-sdk "SDK thread items"; fields that it lacks (`id`, the status words, `null` for what is
not known yet) are the shipping program's. Items that the SDK has no word for are not shown.
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
"""The protocol's word -> the SDK's."""
ITEMS_WITH_START = frozenset({"commandExecution", "fileChange", "mcpToolCall", "webSearch"})
"""Items that are reported when they start, too. Others are reported once, when complete."""


@dataclass(frozen=True, slots=True)
class View:
    """The form of items. Paths start at `cwd`; `raw_reasoning`: with raw blocks of reasoning."""

    cwd: str
    raw_reasoning: bool = False


def sdk_item(item: Fields, view: View) -> Fields | None:
    """Return an item as the SDK has it; None for one that it does not have."""
    shape = _SHAPES.get(str(item.get("type")))
    return None if shape is None else shape(item, view)


def error_item(item_id: str, message: str) -> Fields:
    """Return the item of something that went wrong without ending the turn."""
    return {"id": item_id, "type": "error", "message": message}


def todo_list(item_id: str, plan: list[Fields]) -> Fields:
    """Return the item of a plan; a step in progress is one that is not completed."""
    return {
        "id": item_id,
        "type": "todo_list",
        "items": [
            {"text": step.get("step", ""), "completed": step.get("status") == "completed"}
            for step in plan
        ],
    }


def _message(item: Fields, _view: View) -> Fields | None:
    # Without a text all of it was a plan, which is an item of its own.
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
    """Return the paths that a change touches: a file that is moved has two."""
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
    # The SDK has no word for a proposed plan, which is often the whole answer of the agent.
    "plan": _message,
    "reasoning": _reasoning,
    "commandExecution": _command,
    "fileChange": _file_change,
    "mcpToolCall": _mcp_call,
    "webSearch": _web_search,
}
