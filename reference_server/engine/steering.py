"""Input that joins a turn while it runs.

Here lives what happens to the input of `turn/steer`. It is recorded before the request is answered,
so that it survives the end of the turn and of the server. It joins the conversation with the next
model call, since the current call was made without it. Source: session-protocol "turn/steer".
"""

from collections.abc import Callable
from typing import Any

from harness.wire.input import UserInput
from harness.wire.item import UserMessageItem
from reference_server.engine.items import ItemLog
from reference_server.engine.tool_provider import ToolProvider
from reference_server.rollout.records import HistoryRecord, SteeredRecord
from reference_server.settings import ThreadSettings
from reference_server.words import local_images, unread_image, user_message

Fields = dict[str, Any]


async def read_input(
    content: list[UserInput], settings: ThreadSettings, tools: ToolProvider
) -> Fields:
    """Give input as a Responses API item; its local images are read, which may take a while."""
    if not local_images(content):
        return user_message(content)
    return user_message(content, await tools.images.parts(content, settings))


def unread_input(content: list[UserInput]) -> Fields:
    """Give input as a Responses API item, with a note in place of each local image."""
    why = "the turn was interrupted"
    return user_message(content, [unread_image(path, why) for path in local_images(content)])


class Steering:
    """The input that was added to one turn."""

    def __init__(self, log: ItemLog) -> None:
        self._log = log
        self._waiting: list[tuple[str, Fields]] = []

    @property
    def waiting(self) -> bool:
        """Whether there is accepted input that no model call has held yet."""
        return bool(self._waiting)

    def accept(self, content: list[UserInput], words: Fields) -> Callable[[], None]:
        """Record input; `words` is the same as a Responses API item. Raises OSError.

        Gives a function that sends the item's notifications. After an OSError nothing is accepted.
        """
        thread = self._log.thread
        message = UserMessageItem(id=thread.new_item_id(), content=content)
        thread.record(
            SteeredRecord(at=thread.clock(), turn_id=self._log.turn_id, item=message, history=words)
        )
        self._waiting.append((message.id, words))

        def tell() -> None:
            self._log.started(message)
            self._log.notify_completed(message)

        return tell

    def join(self) -> None:
        """Add all waiting input to the conversation. Raises OSError, after it is added."""
        if not self._waiting:
            return
        joining, self._waiting = self._waiting, []
        items = [words for _, words in joining]
        thread = self._log.thread
        thread.history.extend(items)
        thread.record(
            HistoryRecord(
                at=thread.clock(),
                turn_id=self._log.turn_id,
                items=items,
                steered=[item_id for item_id, _ in joining],
            )
        )
