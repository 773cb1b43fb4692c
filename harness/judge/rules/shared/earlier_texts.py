"""Ids and cursors that the server had sent before a client sent a message.

The check is lenient: any message on any connection counts, and a name need only say that its value
is a turn or a cursor. So `nextCursor`, `turnId` and a `last_turn_id` of a server's own all count.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

from harness.trace.frame import Frame
from harness.trace.order import came_before
from harness.trace.trace import Trace

# The word at the beginning of a name or of one of its parts: turn, turnId, lastTurn, not returned.
_TURN: Final = re.compile(r"(?:\b|_)turn|Turn")
# A turn has its items, whatever member or array holds it.
_TURN_MEMBER: Final = "items"


def turn_sent_before(trace: Trace, frame: Frame, turn: str) -> bool:
    """Return whether the server sent `turn` as the id of a turn before `frame`."""
    return _sent_before(trace, frame, turn, lambda name: _TURN.search(name) is not None)


def cursor_sent_before(trace: Trace, frame: Frame, cursor: str) -> bool:
    """Return whether the server sent `cursor` as a cursor before `frame`."""
    return _sent_before(trace, frame, cursor, lambda name: "cursor" in name.lower())


def _sent_before(trace: Trace, frame: Frame, word: str, is_name: Callable[[str], bool]) -> bool:
    quoted = json.dumps(word, ensure_ascii=False).encode("utf-8", "surrogatepass")
    for message in trace.frames:
        if not came_before(message, frame):
            return False
        perhaps = quoted in message.raw or b"\\" in message.raw
        if message.from_target and perhaps:
            names = (name for name, text in _named_texts(message.json) if text == word)
            if any(map(is_name, names)):
                return True
    return False


def _named_texts(value: Any) -> Iterator[tuple[str, str]]:
    """Yield each string of a JSON value with its name.

    That is the member that holds it; of an `id`, and of an element, the one around it.
    """
    remaining: list[tuple[str, Any]] = [("", value)]
    while remaining:
        name, element = remaining.pop()
        if isinstance(element, dict):
            members = cast("dict[str, Any]", element)
            is_turn = "thread" not in name.lower() and _TURN_MEMBER in members
            owner = "turn" if is_turn else name
            remaining += ((owner if key == "id" else key, each) for key, each in members.items())
        elif isinstance(element, list):
            remaining += ((name, each) for each in cast("list[Any]", element))
        elif isinstance(element, str):
            yield name, element
