"""Input that is added to a running turn.

It is recorded before the request is answered, so that it survives the end of the turn and of the
server. It joins the conversation with the next model call, since the current call does not hold it.
Source: session-protocol "turn/steer".
"""

from collections.abc import Callable
from typing import Any

from harness.protocol.wire.input import SkillInput, TextInput, UserInput
from harness.protocol.wire.item import UserMessageItem
from reference_server.engine.items import ItemLog
from reference_server.engine.tool_provider import ToolProvider
from reference_server.rollout.records import HistoryRecord, SteeredRecord
from reference_server.settings import ThreadSettings
from reference_server.words import (
    local_images,
    unread_image,
    user_message,
    without_known_skills,
)

Fields = dict[str, Any]


async def read_input(
    content: list[UserInput], settings: ThreadSettings, tools: ToolProvider
) -> Fields:
    """Read the local images and skills of input and return it as a Responses API item.

    It has all skill texts; `without_known_skills` removes those that the conversation holds.
    """
    images = await tools.images.image_parts(content, settings) if local_images(content) else ()
    skills = None
    if any(_may_name_skills(one) for one in content):
        from reference_server.skills.invoking import skill_texts

        skills = await skill_texts(content, settings, tools.skills, tools.sandbox)
    return user_message(content, images, skills)


def _may_name_skills(item: UserInput) -> bool:
    return isinstance(item, SkillInput) or (isinstance(item, TextInput) and "$" in item.text)


def unread_input(content: list[UserInput]) -> Fields:
    """Return input as a Responses API item, with a note in place of each local image."""
    reason = "the turn was interrupted"
    return user_message(content, [unread_image(path, reason) for path in local_images(content)])


class Steering:
    """Input that was added to one turn."""

    def __init__(self, log: ItemLog) -> None:
        self._log = log
        self._waiting: list[tuple[str, Fields]] = []

    @property
    def has_waiting(self) -> bool:
        """Return whether there is accepted input that no model call has had yet."""
        return bool(self._waiting)

    def accept(self, content: list[UserInput], words: Fields) -> Callable[[], None]:
        """Record input; `words` is the same as a Responses API item.

        Return a function that sends the item's notifications. Raises OSError; nothing is accepted
        then.
        """
        thread = self._log.thread
        message = UserMessageItem(id=thread.new_item_id(), content=content)
        thread.record(
            SteeredRecord(at=thread.clock(), turn_id=self._log.turn_id, item=message, history=words)
        )
        self._waiting.append((message.id, words))

        def tell() -> None:
            self._log.start_item(message)
            self._log.notify_completed(message)

        return tell

    def join(self) -> None:
        """Add all waiting input to the conversation and record it. Raises OSError after adding."""
        if not self._waiting:
            return
        joining, self._waiting = self._waiting, []
        thread = self._log.thread
        items: list[Fields] = []
        for _, words in joining:
            items.append(without_known_skills(words, [*thread.history, *items]))
        thread.history.extend(items)
        thread.record(
            HistoryRecord(
                at=thread.clock(),
                turn_id=self._log.turn_id,
                items=items,
                steered=[item_id for item_id, _ in joining],
            )
        )
