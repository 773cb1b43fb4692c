"""Strings that the server had sent before a client sent a message.

The check is lenient: the string may be anywhere in a message, on any connection.
"""

import json
from typing import Any, cast

from harness.trace.frame import Frame
from harness.trace.order import came_before
from harness.trace.trace import Trace


def server_sent_before(trace: Trace, frame: Frame, word: str) -> bool:
    """Return whether the server sent `word`, as a value in any message, before `frame`.

    Only then can the client know it.
    """
    quoted = json.dumps(word, ensure_ascii=False).encode("utf-8", "surrogatepass")
    for message in trace.frames:
        if not came_before(message, frame):
            return False
        perhaps = quoted in message.raw or b"\\" in message.raw
        if message.from_target and perhaps and _contains(message.json, word):
            return True
    return False


def _contains(value: Any, word: str) -> bool:
    """Return whether a string is a value anywhere in a JSON value; member names do not count."""
    remaining = [value]
    while remaining:
        element = remaining.pop()
        if isinstance(element, dict):
            remaining += cast("dict[str, Any]", element).values()
        elif isinstance(element, list):
            remaining += cast("list[Any]", element)
        elif element == word:
            return True
    return False
