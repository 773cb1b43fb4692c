"""Messages of earlier calls and answers that a model call contains.

A server sends the model the history of a thread with each call. The marks of calls would grow with
the square of a conversation if they held all of it; they name the earlier messages that came again.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from harness.model.wire import asking
from harness.trace.message_texts import is_in_text

MAX_TEXTS: Final = 100
MAX_TEXT_CHARACTERS: Final = 200


class EarlierTexts:
    """Beginnings of the messages that users and the model have said, without duplicates."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}

    def add(self, texts: Iterable[str]) -> None:
        """Add messages; those beyond MAX_TEXTS + 1 are left out."""
        for message in texts:
            beginning = message.strip()[:MAX_TEXT_CHARACTERS]
            if beginning and len(self._texts) <= MAX_TEXTS:
                self._texts[beginning] = None

    def contained_in(
        self, body: Mapping[str, Any], visible_texts: Sequence[str] = ()
    ) -> tuple[str, ...] | None:
        """Return the texts in the messages of a call, except those in `visible_texts`.

        None if there are too many texts, or if the call does not have the whole history itself.
        """
        if len(self._texts) > MAX_TEXTS or body.get("previous_response_id"):
            return None
        messages = [message.strip() for message in asking.message_texts(body)]
        return tuple(
            beginning
            for beginning in self._texts
            if any(is_in_text(beginning, message) for message in messages)
            and not any(is_in_text(beginning, message.strip()) for message in visible_texts)
        )
