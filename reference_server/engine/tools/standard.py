"""The tools of a server. Their descriptions for the model are in `offered`."""

from reference_server.config.home import Home
from reference_server.config.model import Config
from reference_server.engine.images import LocalImages
from reference_server.engine.tools.execution import Execution
from reference_server.engine.tools.image import ViewImageTool
from reference_server.engine.tools.patch import PatchTool
from reference_server.engine.tools.plan import PlanTool
from reference_server.engine.tools.shell import ShellTool
from reference_server.engine.tools.toolbox import Toolbox
from reference_server.sandbox.sandbox import Sandbox


def standard_tools(home: Home, config: Config, sandbox: Sandbox, images: LocalImages) -> Toolbox:
    """Make the tools that every thread has."""
    patches = PatchTool(sandbox)
    shell = ShellTool(Execution(home, config, sandbox), patches)
    return Toolbox([shell, patches, PlanTool(), ViewImageTool(images)])
