"""The set of a server's own tools, and the tool `view_image`, which shows the model an image file.

`tool_definitions` has the descriptions for the model. Source: session-protocol "ThreadItem"
(imageView).
"""

from typing import Any

from harness.protocol.wire.item import ImageViewItem
from reference_server.brief import brief
from reference_server.config.home import Home
from reference_server.config.model import Config
from reference_server.engine.calls import CallError, Output, ToolCall
from reference_server.engine.images import ImageError, LocalImages, absolute_path
from reference_server.engine.tools.base import ToolContext
from reference_server.engine.tools.execution import Execution
from reference_server.engine.tools.patch import PatchTool
from reference_server.engine.tools.plan import PlanTool
from reference_server.engine.tools.shell import ShellTool
from reference_server.engine.tools.tool_definitions import VIEW_IMAGE
from reference_server.engine.tools.toolbox import Toolbox
from reference_server.sandbox.sandbox import Sandbox

Fields = dict[str, Any]


class ViewImageTool:
    """Tool that sends an image file to the model."""

    name = VIEW_IMAGE

    def __init__(self, images: LocalImages) -> None:
        self._images = images

    async def run(self, call: ToolCall, context: ToolContext) -> Output:
        """Return the image as content parts and emit an imageView item.

        Raises CallError, without an item, if it cannot be read; OSError.
        """
        path = call.arguments().get("path")
        if not isinstance(path, str) or not path:
            raise CallError("view_image: `path` must be the path of a file")
        full_path = absolute_path(context.settings.cwd, path)
        try:
            part = await self._images.image_part(full_path, context.settings, context.image_budget)
        except ImageError as error:
            raise CallError(f"view_image: failed to read {brief(full_path)}: {error}") from None
        item = ImageViewItem(id=context.thread.new_item_id(), path=full_path)
        context.log.start_item(item)
        context.log.complete_item(item)
        return [part]


def standard_tools(home: Home, config: Config, sandbox: Sandbox, images: LocalImages) -> Toolbox:
    """Return the tools that every thread has."""
    patches = PatchTool(sandbox)
    shell = ShellTool(Execution(home, config, sandbox), patches)
    return Toolbox([shell, patches, PlanTool(), ViewImageTool(images)])
