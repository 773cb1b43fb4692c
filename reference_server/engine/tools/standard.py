"""The tools of a server, put together."""

from reference_server.config.home import Home
from reference_server.config.model import Config
from reference_server.engine.tools.execution import Execution
from reference_server.engine.tools.image import ViewImageTool
from reference_server.engine.tools.patch import PatchTool
from reference_server.engine.tools.plan import PlanTool
from reference_server.engine.tools.shell import ShellTool
from reference_server.engine.tools.toolbox import Toolbox

WEB_SEARCH = {"type": "web_search"}


def standard_tools(home: Home, config: Config) -> Toolbox:
    """Make the tools that every thread has."""
    patches = PatchTool()
    shell = ShellTool(Execution(home, config.environment), patches)
    return Toolbox(
        [shell, patches, PlanTool(), ViewImageTool()],
        [WEB_SEARCH] if config.web_search == "live" else [],
    )
