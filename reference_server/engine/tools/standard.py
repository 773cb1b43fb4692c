"""The tools of a server, put together."""

from collections.abc import Mapping

from reference_server.config.home import Home
from reference_server.engine.tools.execution import Execution
from reference_server.engine.tools.patch import PatchTool
from reference_server.engine.tools.shell import ShellTool
from reference_server.engine.tools.toolbox import Toolbox


def standard_tools(home: Home, environment: Mapping[str, str]) -> Toolbox:
    """Make the tools that every thread has."""
    patches = PatchTool()
    return Toolbox([ShellTool(Execution(home, environment), patches), patches])
