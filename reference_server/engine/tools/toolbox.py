"""The toolbox, which finds the tool of a call.

To add a tool: a module beside this one, its line in `standard`, its entry in `tool_definitions`.
"""

from collections.abc import Iterable
from typing import Any

from reference_server.engine.calls import CallError, ToolCall
from reference_server.engine.tools.base import Tool, ToolContext

Fields = dict[str, Any]


class Toolbox:
    """Tools by name."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools = {tool.name: tool for tool in tools}

    @property
    def names(self) -> list[str]:
        """The names by which the model calls them."""
        return list(self._tools)

    async def carry_out(
        self, call: ToolCall, context: ToolContext, other: Tool | None = None
    ) -> Fields:
        """Carry out a call and return its output item, also for a failure or an unknown tool.

        `other` is used if neither the server nor the client has a tool of that name. Raises OSError
        if an item cannot be recorded.
        """
        tool = self._tools.get(call.name) or context.client_tools.get(call.name, other)
        if tool is None:
            return call.output_item(f"unsupported call: {call.name}")
        try:
            return call.output_item(await tool.run(call, context))
        except CallError as error:
            return call.output_item(str(error))
