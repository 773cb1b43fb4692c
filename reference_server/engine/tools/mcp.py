"""Calls of the tools of MCP servers, as mcpToolCall items.

`reference_server.mcp` has the servers. The client is not asked: the specification has approvals for
commands and file changes only, and configuring a server allows its calls (docs/security.md).
Source: session-protocol "ThreadItem" (mcpToolCall), "Events" (item/mcpToolCall/progress; its
payload is the shipping server's).
"""

import base64
import binascii
import json
import time
from collections.abc import Callable
from typing import Any, cast

import anyio

from harness.protocol.wire.item import McpToolCallItem, ToolStatus
from harness.protocol.wire.tool import McpToolCallProgressNotification, McpToolError, McpToolResult
from reference_server.brief import brief
from reference_server.engine.calls import Output, ToolCall
from reference_server.engine.images import IMAGE_LIMIT, ImageBudget, ImageError, media_type
from reference_server.engine.items import ItemLog
from reference_server.engine.tools.base import ToolContext
from reference_server.mcp.failure import McpFailure
from reference_server.mcp.results import limit_result, texts
from reference_server.mcp.servers import McpServers

Fields = dict[str, Any]

SHOWN_CHARACTERS = 40_000
"""Maximum characters of a result's texts for the model; the middle of longer ones is left out."""
ERROR_LIMIT = 100_000
"""Maximum characters of an error for the client."""
MAX_PROGRESS = 1_000
"""Maximum progress notifications of one call; further ones of the server are dropped."""
PROGRESS_LIMIT = 1_000
"""Maximum characters of a progress message."""
INTERRUPTED = "the turn was interrupted"


class McpToolCall:
    """A tool of an MCP server; `hide` redacts secrets in its errors."""

    def __init__(
        self, servers: McpServers, name: str, server: str, tool: str, hide: Callable[[str], str]
    ) -> None:
        self.name = name
        self._servers = servers
        self._server = server
        self._tool = tool
        self._hide = hide

    async def run(self, call: ToolCall, context: ToolContext) -> Output:
        """Call the tool and return its output. Raises CallError for bad arguments, OSError.

        A failure is an output too; a cancelled call's item fails.
        """
        arguments = call.arguments()
        work = _Work(context.log, self._server, self._tool, arguments)
        try:
            result = await self._servers.call(self._server, self._tool, arguments, work.progress)
        except McpFailure as error:
            return self._fail(work, str(error))
        except anyio.get_cancelled_exc_class():
            work.complete("failed", error=McpToolError(message=INTERRUPTED))
            raise
        if result.is_error:
            text = "\n".join(texts(result.content))
            return self._fail(work, text or "the tool failed, and does not say why")
        content, structured = limit_result(result.content, result.structured_content)
        work.complete(
            "completed",
            result=McpToolResult(content=cast("list[Any]", content), structured_content=structured),
        )
        return _model_output(content, structured, context.image_budget)

    def _fail(self, work: "_Work", words: str) -> str:
        words = self._hide(brief(words, ERROR_LIMIT))
        work.complete("failed", error=McpToolError(message=words))
        return f"failed: {brief(words, SHOWN_CHARACTERS)}"


class _Work:
    """An mcpToolCall item, from its start to its one completion."""

    def __init__(self, log: ItemLog, server: str, tool: str, arguments: Fields) -> None:
        self._log = log
        self._began = time.monotonic()
        self._progress_count = 0
        self._item = McpToolCallItem(
            id=log.thread.new_item_id(),
            server=server,
            tool=tool,
            status="inProgress",
            arguments=arguments,
        )
        log.start_item(self._item)

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Send a progress notification, unless the call is complete or has sent MAX_PROGRESS."""
        if self._item.status != "inProgress" or self._progress_count == MAX_PROGRESS:
            return
        self._progress_count += 1
        thread = self._log.thread
        thread.subscribers.notify(
            McpToolCallProgressNotification(
                thread_id=thread.id,
                turn_id=self._log.turn_id,
                item_id=self._item.id,
                message=brief(message or _format_progress(progress, total), PROGRESS_LIMIT),
            )
        )

    def complete(
        self,
        status: ToolStatus,
        *,
        result: McpToolResult | None = None,
        error: McpToolError | None = None,
    ) -> None:
        """Complete the item, with `error` if given, else with `result`. Raises OSError."""
        outcome = {"result": result} if error is None else {"error": error}
        duration_ms = round((time.monotonic() - self._began) * 1000)
        self._item = self._item.model_copy(
            update={"status": status, "duration_ms": duration_ms, **outcome}
        )
        self._log.complete_item(self._item)


def _format_progress(done: float, total: float | None) -> str:
    return f"{done:g}" if total is None else f"{done:g} of {total:g}"


def _model_output(content: list[Fields], structured: Any, budget: ImageBudget) -> Output:
    """Return a result as the output of the call: a text, or parts if there are images."""
    words = list[str]()
    images: list[Fields] = []
    for block in content:
        if block.get("type") == "image":
            try:
                images.append(_image(block, budget))
            except ImageError as error:
                words.append(f"[an image that cannot be shown: {error}]")
        elif block_texts := list(texts([block])):
            words += block_texts
        else:
            words.append(json.dumps({**block, **_without_data(block)}, ensure_ascii=False))
    if not any(texts(content)) and structured is not None:
        words.append(json.dumps(structured, ensure_ascii=False))
    text = brief("\n".join(words), SHOWN_CHARACTERS)
    if not images:
        return text or "The tool gave nothing."
    return [{"type": "input_text", "text": text}, *images] if text else images


def _without_data(block: Fields) -> Fields:
    """Return the size, as text, of each member with binary data, which a model cannot read."""
    return {
        key: f"[{len(value):,} characters]"
        for key, value in block.items()
        if key in ("data", "blob") and isinstance(value, str)
    }


def _image(block: Fields, budget: ImageBudget) -> Fields:
    """Return an image as a part. Raises ImageError if it is not a supported one or too large."""
    data: Any = block.get("data")
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise ImageError("its data is no base64") from None
    if (kind := media_type(content)) is None:
        raise ImageError("it is no PNG, JPEG, GIF or WebP")
    if len(content) > IMAGE_LIMIT:
        raise ImageError(f"it is larger than {IMAGE_LIMIT} bytes")
    budget.take(len(content))
    return {"type": "input_image", "image_url": f"data:{kind};base64,{data}"}
