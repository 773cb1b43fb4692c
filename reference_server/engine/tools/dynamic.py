"""Calls of the tools that the client provides: dynamicToolCall items.

Source: session-protocol "ThreadItem" (dynamicToolCall), "Item lifecycle". Not shown there, and as
in the shipping server: the request `item/tool/call` and its result. Like an approval request it is
sent to all subscribers, the first answer counts, and without one the turn waits until it is
interrupted. The answer "method not found" leaves the call to the other subscribers. Another error,
or an answer of another shape, is a failed call: its output says so, and the turn continues.
"""

import logging
import time
from dataclasses import dataclass
from typing import Any, Literal, cast

import anyio
from pydantic import ValidationError

from harness.protocol.wire.item import DynamicToolCallItem
from harness.protocol.wire.tool import (
    InputImage,
    InputText,
    ToolCallParams,
    ToolCallResult,
    ToolOutput,
)
from reference_server.brief import brief, brief_value
from reference_server.engine.calls import Output, ToolCall
from reference_server.engine.images import ImageBudget, ImageError
from reference_server.engine.tools.base import ToolContext
from reference_server.limits import LimitExceeded, check_lists

_log = logging.getLogger(__name__)
Fields = dict[str, Any]

SHOWN_CHARACTERS = 20_000
"""Characters of a tool's text that the model gets from its beginning, and as many from its end."""
MAX_CONTENT_ITEMS = 1_000
"""Maximum texts and images of one answer."""
MAX_CONTENT_CHARACTERS = 4 * 2**20
"""Maximum characters of one answer: it is stored with the thread and sent to its clients."""
_WORDS_LIMIT = 400
"""Characters of a client's error message that the model gets."""
_URLS = ("data:image/", "https://", "http://")
"""Beginnings of image URLs that model providers accept."""


@dataclass(frozen=True, slots=True)
class ClientAnswer:
    """Result of a call; with `success` its item ends as completed, else as failed."""

    success: bool
    content: list[ToolOutput]


class ClientTool:
    """A tool of the client, with the client's name for it."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def run(self, call: ToolCall, context: ToolContext) -> Output:
        """Ask the client to carry out a call. Raises CallError for bad arguments, OSError."""
        answer = await _ClientCall(call.name, call.arguments(), context).carry_out()
        return model_output(answer, context.image_budget)


class _ClientCall:
    """One call, from its started item to its completed one."""

    def __init__(self, tool: str, arguments: Fields, context: ToolContext) -> None:
        self._context = context
        self._began = time.monotonic()
        self._item = DynamicToolCallItem(
            id=context.thread.new_item_id(), tool=tool, arguments=arguments, status="inProgress"
        )

    async def carry_out(self) -> ClientAnswer:
        """Send the request and return the client's answer; a cancelled call's item fails."""
        context, item = self._context, self._item
        context.log.start_item(item)
        params = ToolCallParams(
            thread_id=context.thread.id,
            turn_id=context.log.turn_id,
            call_id=item.id,
            tool=item.tool,
            arguments=item.arguments,
        )
        try:
            response = await context.server_requests.ask(
                context.thread.id,
                context.thread.subscribers,
                "item/tool/call",
                params,
                may_pass=True,
            )
        except anyio.get_cancelled_exc_class():
            # It is unknown whether the client has carried it out.
            self._complete("failed")
            raise
        answer = read_answer(response)
        self._complete(
            "completed" if answer.success else "failed",
            content_items=answer.content,
            success=answer.success,
        )
        return answer

    def _complete(self, status: Literal["completed", "failed"], **found: Any) -> None:
        lasted = round((time.monotonic() - self._began) * 1000)
        update = {"status": status, **found, "duration_ms": lasted}
        self._context.log.complete_item(self._item.model_copy(update=update))


def read_answer(answer: Fields) -> ClientAnswer:
    """Parse `{id, result | error}`; anything but a tool's result is a failure with its reason."""
    if "error" in answer:
        return _failure(f"the client answered with an error: {_words(answer['error'])}")
    try:
        check_lists(answer.get("result"))
        result = ToolCallResult.parse(answer.get("result"))
    except (ValidationError, LimitExceeded):
        _log.warning("not a result of a tool: %s", brief_value(answer.get("result")))
        return _failure(
            "the client's answer must have `success`, true or false, and may have "
            "`contentItems`, an array of inputText and inputImage"
        )
    if len(result.content_items) > MAX_CONTENT_ITEMS:
        return _failure(f"the client's answer has more than {MAX_CONTENT_ITEMS:,} contentItems")
    if sum(map(_size, result.content_items)) > MAX_CONTENT_CHARACTERS:
        return _failure(f"the client's answer has more than {MAX_CONTENT_CHARACTERS:,} characters")
    return ClientAnswer(result.success, result.content_items)


def _size(output: ToolOutput) -> int:
    return len(output.text if isinstance(output, InputText) else output.image_url)


def _failure(reason: str) -> ClientAnswer:
    return ClientAnswer(success=False, content=[InputText(text=reason)])


def _words(error: Any) -> str:
    """Return the message of a JSON-RPC error, or the error as text."""
    message = cast("Fields", error).get("message") if isinstance(error, dict) else None
    return brief(message if isinstance(message, str) else str(cast("object", error)), _WORDS_LIMIT)


def model_output(answer: ClientAnswer, budget: ImageBudget) -> Output:
    """Return the output for the model: a text, or content parts if there are images.

    A failure is a text part, since the output has no other place for it.
    """
    parts = [] if answer.success else [_text("failed:" if answer.content else "failed")]
    parts += [_part(one, budget) for one in answer.content]
    if any(part["type"] != "input_text" for part in parts):
        return parts
    return "\n".join(part["text"] for part in parts)


def _part(output: ToolOutput, budget: ImageBudget) -> Fields:
    match output:
        case InputText(text=text):
            return _text(_shorten(text))
        case InputImage(image_url=url):
            try:
                if not url.startswith(_URLS):
                    raise ImageError("its URL is neither `data:image/` nor http")
                budget.take(len(url))
            except ImageError as error:
                return _text(f"The image {brief(url)} cannot be shown: {error}")
            return {"type": "input_image", "image_url": url}


def _text(text: str) -> Fields:
    return {"type": "input_text", "text": text}


def _shorten(text: str) -> str:
    """Return a text for the model, without the middle of a long one; clients have all of it."""
    cut = len(text) - 2 * SHOWN_CHARACTERS
    if cut <= 0:
        return text
    return f"{text[:SHOWN_CHARACTERS]}\n[... {cut} characters cut ...]\n{text[-SHOWN_CHARACTERS:]}"
