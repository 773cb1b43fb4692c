"""The items of a thread: messages, reasoning, commands, file changes and tool calls.

Each type of the specification has a class; any other type becomes an `UnknownItem`. `raw` holds
the whole object as the agent sent it, including members without a field here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agent_sdk.fields import integer, objects, optional_text, text


def _raw() -> Any:
    """Return the dataclass field `raw`, left out of `repr` and of comparisons."""
    return field(default_factory=dict[str, Any], repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMessageItem:
    """A message of the agent; with an output schema, the text is JSON."""

    text: str
    id: str | None = None
    raw: Mapping[str, Any] = _raw()
    type: Literal["agent_message"] = field(default="agent_message", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningItem:
    """A summary of the model's reasoning."""

    text: str
    id: str | None = None
    raw: Mapping[str, Any] = _raw()
    type: Literal["reasoning"] = field(default="reasoning", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandExecutionItem:
    """A command that the agent ran; `exit_code` is None while it runs."""

    command: str
    aggregated_output: str = ""
    exit_code: int | None = None
    status: str = ""
    id: str | None = None
    raw: Mapping[str, Any] = _raw()
    type: Literal["command_execution"] = field(default="command_execution", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """A changed file; `kind` is "add", "update" or "delete"."""

    path: str
    kind: str
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChangeItem:
    """Changes of one or more files, applied together."""

    changes: tuple[FileChange, ...]
    status: str = ""
    id: str | None = None
    raw: Mapping[str, Any] = _raw()
    type: Literal["file_change"] = field(default="file_change", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class McpToolCallItem:
    """A tool call to an MCP server. `arguments`, `result` and `error` are any JSON value."""

    server: str
    tool: str
    arguments: Any = field(default=None, hash=False)
    result: Any = field(default=None, hash=False)
    error: Any = field(default=None, hash=False)
    status: str = ""
    id: str | None = None
    raw: Mapping[str, Any] = _raw()
    type: Literal["mcp_tool_call"] = field(default="mcp_tool_call", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSearchItem:
    """A search on the web."""

    query: str
    id: str | None = None
    raw: Mapping[str, Any] = _raw()
    type: Literal["web_search"] = field(default="web_search", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TodoItem:
    """A step of the agent's plan."""

    text: str
    completed: bool
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class TodoListItem:
    """The agent's plan; it is updated during the turn."""

    items: tuple[TodoItem, ...]
    id: str | None = None
    raw: Mapping[str, Any] = _raw()
    type: Literal["todo_list"] = field(default="todo_list", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorItem:
    """An error that did not end the turn."""

    message: str
    id: str | None = None
    raw: Mapping[str, Any] = _raw()
    type: Literal["error"] = field(default="error", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownItem:
    """An item of a type that this SDK does not know."""

    type: str
    id: str | None = None
    raw: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)


ThreadItem = (
    AgentMessageItem
    | ReasoningItem
    | CommandExecutionItem
    | FileChangeItem
    | McpToolCallItem
    | WebSearchItem
    | TodoListItem
    | ErrorItem
    | UnknownItem
)


def parse_item(raw: Mapping[str, Any]) -> ThreadItem:
    """Return the item for a JSON object; an `UnknownItem` if its type is not known."""
    kind, item_id = text(raw, "type"), optional_text(raw, "id")
    status = text(raw, "status")
    match kind:
        case "agent_message":
            return AgentMessageItem(text=text(raw, "text"), id=item_id, raw=raw)
        case "reasoning":
            return ReasoningItem(text=text(raw, "text"), id=item_id, raw=raw)
        case "command_execution":
            return CommandExecutionItem(
                command=text(raw, "command"),
                aggregated_output=text(raw, "aggregated_output"),
                exit_code=integer(raw, "exit_code"),
                status=status,
                id=item_id,
                raw=raw,
            )
        case "file_change":
            changes = tuple(
                FileChange(path=text(one, "path"), kind=text(one, "kind"), raw=one)
                for one in objects(raw, "changes")
            )
            return FileChangeItem(changes=changes, status=status, id=item_id, raw=raw)
        case "mcp_tool_call":
            return McpToolCallItem(
                server=text(raw, "server"),
                tool=text(raw, "tool"),
                arguments=raw.get("arguments"),
                result=raw.get("result"),
                error=raw.get("error"),
                status=status,
                id=item_id,
                raw=raw,
            )
        case "web_search":
            return WebSearchItem(query=text(raw, "query"), id=item_id, raw=raw)
        case "todo_list":
            steps = tuple(
                TodoItem(text=text(one, "text"), completed=one.get("completed") is True, raw=one)
                for one in objects(raw, "items")
            )
            return TodoListItem(items=steps, id=item_id, raw=raw)
        case "error":
            return ErrorItem(message=text(raw, "message"), id=item_id, raw=raw)
        case _:
            return UnknownItem(type=kind, id=item_id, raw=raw)
