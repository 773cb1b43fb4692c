"""Tools: the payloads of their calls, and the tools that a client offers.

None of it is shown in the document (session-protocol "ThreadItem": internal shapes not shown); the
shapes are the shipping server's.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from harness.protocol.wire.base import Json, NullIsMissing, OpenObject, WireModel


class McpToolResult(WireModel):
    """The result of an MCP tool: content blocks as MCP has them."""

    content: list[Json]
    structured_content: Json = None


class McpToolError(WireModel):
    """The reason why an MCP tool call failed."""

    message: str


class InputText(WireModel):
    """A text for the model."""

    type: Literal["inputText"] = "inputText"
    text: str


class InputImage(WireModel):
    """An image for the model, by URL (`data:` included)."""

    type: Literal["inputImage"] = "inputImage"
    image_url: str


ToolOutput = Annotated[InputText | InputImage, Field(discriminator="type")]
"""The content of a client's answer to a call of its tool."""
ToolContent = Annotated[ToolOutput | OpenObject, Field(union_mode="left_to_right")]
"""A `ToolOutput` in a dynamicToolCall item, where other objects are read too."""


class DynamicTool(NullIsMissing):
    """A tool that the client offers for a thread; `inputSchema` is a JSON Schema.

    Without a description only the name describes the tool; without a schema it has no arguments.
    """

    name: str
    description: str = ""
    input_schema: OpenObject = Field(default_factory=dict[str, Any])


class ToolCallParams(WireModel):
    """Params of the server request `item/tool/call`; `callId` is the id of the item."""

    thread_id: str
    turn_id: str
    call_id: str
    tool: str
    arguments: OpenObject


class ToolCallResult(NullIsMissing):
    """The client's answer to `item/tool/call`; `contentItems` may be missing."""

    success: bool
    content_items: list[ToolOutput] = Field(default_factory=list[ToolOutput])


class McpToolCallProgressNotification(WireModel):
    """Params of `item/mcpToolCall/progress`; not shown in the document, the shipping server's."""

    thread_id: str
    turn_id: str
    item_id: str
    message: str
