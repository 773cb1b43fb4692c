"""Thread items: the parts of a turn.

Source: session-protocol "ThreadItem", "Item lifecycle" (the words of each status). "Not shown"
there, so chosen by this project, while other values are read too: MessagePhase, CommandAction,
FileUpdateChange `kind` and `diff`, and the webSearch actions other than `search`. Their shapes are
the shipping server's, their spelling is the document's.
"""

from typing import Annotated, Literal

from pydantic import Field

from harness.protocol.wire.base import Json, Number, OpenObject, WireModel
from harness.protocol.wire.input import UserInput
from harness.protocol.wire.tool import McpToolError, McpToolResult, ToolContent

DeclinableStatus = Literal["inProgress", "completed", "failed", "declined"]
"""The status of a commandExecution or fileChange."""
ToolStatus = Literal["inProgress", "completed", "failed"]
"""The status of an mcpToolCall or dynamicToolCall."""
MessagePhase = Literal["commentary", "final_answer"]
"""The values of this project; the document shows none."""


class UserMessageItem(WireModel):
    """A message of the user."""

    type: Literal["userMessage"] = "userMessage"
    id: str
    content: list[UserInput]


class AgentMessageItem(WireModel):
    """A message of the agent; `phase` is a MessagePhase, or another server's own value."""

    type: Literal["agentMessage"] = "agentMessage"
    id: str
    text: str
    phase: MessagePhase | Json = None


class PlanItem(WireModel):
    """A proposed plan (experimental); `text` may differ from the joined deltas, and prevails."""

    type: Literal["plan"] = "plan"
    id: str
    text: str


class ReasoningItem(WireModel):
    """The agent's thoughts: summary sections, and raw blocks where the model gives them."""

    type: Literal["reasoning"] = "reasoning"
    id: str
    summary: list[str]
    content: list[str]


class ReadAction(WireModel):
    """A command that shows a file; `name` is the file's own name."""

    type: Literal["read"] = "read"
    command: str
    name: str
    path: str


class ListFilesAction(WireModel):
    """A command that lists a folder."""

    type: Literal["listFiles"] = "listFiles"
    command: str
    path: str | None


class SearchAction(WireModel):
    """A command that searches files for a text."""

    type: Literal["search"] = "search"
    command: str
    query: str | None
    path: str | None


class UnknownAction(WireModel):
    """A command of another kind."""

    type: Literal["unknown"] = "unknown"
    command: str


_KnownAction = Annotated[
    ReadAction | ListFilesAction | SearchAction | UnknownAction, Field(discriminator="type")
]
CommandAction = Annotated[_KnownAction | OpenObject, Field(union_mode="left_to_right")]
"""One step of a command as the server understands it; other objects are read too."""


class CommandExecutionItem(WireModel):
    """A command that the agent runs; `aggregatedOutput` is stdout and stderr."""

    type: Literal["commandExecution"] = "commandExecution"
    id: str
    command: str
    cwd: str
    process_id: str | None = None
    status: DeclinableStatus
    command_actions: list[CommandAction]
    aggregated_output: str | None = None
    exit_code: Number | None = None
    duration_ms: Number | None = None


class AddKind(WireModel):
    """The file is new."""

    type: Literal["add"] = "add"


class DeleteKind(WireModel):
    """The file is deleted."""

    type: Literal["delete"] = "delete"


class UpdateKind(WireModel):
    """The file changes; `move_path`, in snake_case, is its new path, null if it is not moved."""

    type: Literal["update"] = "update"
    move_path: str | None = Field(alias="move_path")


_KnownKind = Annotated[AddKind | DeleteKind | UpdateKind, Field(discriminator="type")]
FileChangeKind = Annotated[_KnownKind | Json, Field(union_mode="left_to_right")]


class FileUpdateChange(WireModel):
    """One changed file. `diff`: hunks for an update, the content for an added or deleted file."""

    path: str
    kind: FileChangeKind
    diff: str | Json


class FileChangeItem(WireModel):
    """Files that the agent changes."""

    type: Literal["fileChange"] = "fileChange"
    id: str
    changes: list[FileUpdateChange]
    status: DeclinableStatus


class McpToolCallItem(WireModel):
    """A call of an MCP server's tool: `result` when completed, `error` when failed."""

    type: Literal["mcpToolCall"] = "mcpToolCall"
    id: str
    server: str
    tool: str
    status: ToolStatus
    arguments: OpenObject
    result: Annotated[McpToolResult | OpenObject | None, Field(union_mode="left_to_right")] = None
    error: Annotated[McpToolError | OpenObject | None, Field(union_mode="left_to_right")] = None
    duration_ms: Number | None = None


class DynamicToolCallItem(WireModel):
    """A call of a tool that the client itself offers."""

    type: Literal["dynamicToolCall"] = "dynamicToolCall"
    id: str
    tool: str
    arguments: OpenObject
    status: ToolStatus
    content_items: list[ToolContent] | None = None
    success: bool | None = None
    duration_ms: Number | None = None


class SearchWebAction(WireModel):
    """A search on the web."""

    type: Literal["search"] = "search"
    query: str


class OpenPageAction(WireModel):
    """An opened page; `url` is not in the document."""

    type: Literal["open_page"] = "open_page"
    url: Json = None


class FindInPageAction(WireModel):
    """A search within a page; `url` and `pattern` are not in the document."""

    type: Literal["find_in_page"] = "find_in_page"
    url: Json = None
    pattern: Json = None


WebSearchAction = Annotated[
    SearchWebAction | OpenPageAction | FindInPageAction, Field(discriminator="type")
]


class WebSearchItem(WireModel):
    """A search on the web, or a visit to a page."""

    type: Literal["webSearch"] = "webSearch"
    id: str
    query: str
    action: WebSearchAction | None = None


class ImageViewItem(WireModel):
    """An image that the agent looks at."""

    type: Literal["imageView"] = "imageView"
    id: str
    path: str


class EnteredReviewModeItem(WireModel):
    """A review begins; `review` is its short label."""

    type: Literal["enteredReviewMode"] = "enteredReviewMode"
    id: str
    review: str


class ExitedReviewModeItem(WireModel):
    """A review ends; `review` is its whole text: overall notes, then the findings as bullets."""

    type: Literal["exitedReviewMode"] = "exitedReviewMode"
    id: str
    review: str


class ContextCompactionItem(WireModel):
    """The conversation's history was made shorter."""

    type: Literal["contextCompaction"] = "contextCompaction"
    id: str


ThreadItem = Annotated[
    UserMessageItem
    | AgentMessageItem
    | PlanItem
    | ReasoningItem
    | CommandExecutionItem
    | FileChangeItem
    | McpToolCallItem
    | DynamicToolCallItem
    | WebSearchItem
    | ImageViewItem
    | EnteredReviewModeItem
    | ExitedReviewModeItem
    | ContextCompactionItem,
    Field(discriminator="type"),
]
