"""Texts that the server had written before a client sent a message.

It asks the most lenient question: is a string anywhere in a message, on any connection?
"""

import json
from typing import Any, cast

from harness.trace.frame import Frame
from harness.trace.order import came_before
from harness.trace.trace import Trace


def told_before(trace: Trace, frame: Frame, word: str) -> bool:
    """Return whether a string was a value in a message of the server, on any connection, before
    `frame`.

    What came later the client cannot have known. That it came before says only that it can have.
    """
    quoted = json.dumps(word, ensure_ascii=False).encode("utf-8", "surrogatepass")
    for one in trace.frames:
        if not came_before(one, frame):
            return False
        perhaps = quoted in one.raw or b"\\" in one.raw
        if one.from_target and perhaps and _holds(one.json, word):
            return True
    return False


def _holds(value: Any, word: str) -> bool:
    """Return whether a string is a value, and not the name of a member, somewhere in a JSON
    value.
    """
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            left += cast("dict[str, Any]", one).values()
        elif isinstance(one, list):
            left += cast("list[Any]", one)
        elif one == word:
            return True
    return False
