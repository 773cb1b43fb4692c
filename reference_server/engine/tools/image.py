"""The tool `view_image`: the model looks at an image of the disk.

Source: session-protocol "ThreadItem" (imageView).
"""

from typing import Any

from harness.protocol.wire.item import ImageViewItem
from reference_server.brief import brief
from reference_server.engine.calls import CallError, Output, ToolCall
from reference_server.engine.images import LocalImages, NoImage, absolute
from reference_server.engine.tools.base import ToolContext
from reference_server.engine.tools.offered import VIEW_IMAGE

Fields = dict[str, Any]


class ViewImageTool:
    """Sends an image file to the model."""

    name = VIEW_IMAGE

    def __init__(self, images: LocalImages) -> None:
        self._images = images

    async def run(self, call: ToolCall, context: ToolContext) -> Output:
        """Read the file and show an imageView item; none if it cannot be read.

        Raises CallError, OSError.
        """
        path = call.arguments().get("path")
        if not isinstance(path, str) or not path:
            raise CallError("view_image: `path` must be the path of a file")
        whole = absolute(context.settings.cwd, path)
        try:
            part = await self._images.part(whole, context.settings, context.image_budget)
        except NoImage as error:
            raise CallError(f"view_image: failed to read {brief(whole)}: {error}") from None
        item = ImageViewItem(id=context.thread.new_item_id(), path=whole)
        context.log.started(item)
        context.log.completed(item)
        return [part]
