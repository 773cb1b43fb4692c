"""The tools of a server: what is offered to the model, and who carries out a call.

Here lives the look-up, and what the model is told of calls that cannot be carried out. To add a
tool: a module beside this one, and its line in `standard`.
"""

from collections.abc import Iterable
from typing import Any

from reference_server.engine.calls import CallError, ToolCall
from reference_server.engine.tools.base import Scene, Tool

Fields = dict[str, Any]


class Toolbox:
    """Tools by name; `hosted` are those that the provider carries out itself."""

    def __init__(self, tools: Iterable[Tool] = (), hosted: Iterable[Fields] = ()) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._hosted = list(hosted)

    def offers(self) -> list[Fields]:
        """Give `tools` of a model call."""
        return [*(tool.offer() for tool in self._tools.values()), *self._hosted]

    async def carry_out(self, call: ToolCall, scene: Scene) -> Fields:
        """Give the output item of a call. Raises OSError where it cannot be recorded."""
        tool = self._tools.get(call.name)
        if tool is None:
            return call.answered(f"unsupported call: {call.name}")
        try:
            return call.answered(await tool.run(call, scene))
        except CallError as error:
            return call.answered(str(error))
