"""The items of a thread: what the agent said, thought and did.

A class for each type of the specification. A type that is not known here is an `UnknownItem`.
`raw` of each has the whole object as it was sent, with the members that are not known here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agent_sdk.fields import integer, objects, optional_text, text


def _raw() -> Any:
    """Return the field `raw`: neither shown nor compared."""
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
    """A summary of what the model thought."""

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
    """A file that was changed; `kind` says how (add, update, delete)."""

    path: str
    kind: str
    raw: Mapping[str, Any] = _raw()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChangeItem:
    """Files that the agent changed in one go."""

    changes: tuple[FileChange, ...]
    status: str = ""
    id: str | None = None
    raw: Mapping[str, Any] = _raw()
    type: Literal["file_change"] = field(default="file_change", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class McpToolCallItem:
    """A call of a tool of an MCP server. `arguments`, `result` and `error` are values of JSON."""

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
    """The agent's plan; it is updated as the turn goes on."""

    items: tuple[TodoItem, ...]
    id: str | None = None
    raw: Mapping[str, Any] = _raw()
    type: Literal["todo_list"] = field(default="todo_list", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorItem:
    """Something that went wrong without ending the turn."""

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
    """Return the item of an object of JSON; it always gives one."""
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
