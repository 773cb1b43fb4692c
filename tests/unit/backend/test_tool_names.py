"""Names under which servers offer the tools of MCP servers to the model."""

import pytest

from harness.model.tools import OfferedTool, choose_tool

VALUES = {"server": "tiny", "tool": "add", "arguments": {"a": 1}}


@pytest.mark.parametrize(
    "tool",
    [
        OfferedTool("mcp__tiny__add"),
        OfferedTool("add", "mcp__tiny"),
        OfferedTool("add", "mcp__tiny__"),
    ],
    ids=lambda tool: f"{tool.namespace} {tool.name}".strip(),
)
def test_tool_of_an_mcp_server_is_found_by_each_form_of_its_name(tool: OfferedTool) -> None:
    others = [OfferedTool("add"), OfferedTool("add", "mcp__west"), OfferedTool("tiny")]
    chosen = choose_tool([], [*others, tool], "mcp_call", VALUES)
    assert chosen is not None
    assert (chosen.tool, chosen.arguments) == (tool, {"a": 1})
    assert choose_tool([], others, "mcp_call", VALUES) is None
