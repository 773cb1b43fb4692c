"""Delta notifications as bytes, on the one hot path of the server.

Several deltas may become one with the same text. Source: session-protocol "Events" ("concatenating
`delta` values of one `itemId` rebuilds the reply").
"""

import json

from harness.protocol.wire.base import WireModel
from harness.protocol.wire.methods import BY_PARAMS
from reference_server.envelope import encode_notification

_quote = json.JSONEncoder(ensure_ascii=False).encode
_ENDING = b'"}}'
MERGED_LIMIT = 1 << 18
"""Maximum bytes of a line of joined deltas; further deltas begin another line."""


class DeltaLine:
    """A delta notification, encoded except for its text.

    `prefix` is the line up to the quotation mark of the text.
    """

    def __init__(self, params: WireModel) -> None:
        message = encode_notification(BY_PARAMS[type(params)], params)
        if not message.endswith(b'"delta":"' + _ENDING):
            raise ValueError(f"{type(params).__name__} must have an empty `delta` as last field")
        self.prefix = message[: -len(b'"' + _ENDING)]

    def with_text(self, text: str) -> bytes:
        """Return the line for one piece of text."""
        return b"%b%b}}" % (self.prefix, _quote(text).encode())


class MergedDeltas:
    """Lines of deltas with one prefix, to be written as one line."""

    def __init__(self, prefix: bytes, line: bytes) -> None:
        self._prefix = prefix
        self._pieces = [line[: -len(_ENDING)]]
        self.size = len(line)

    def add(self, line: bytes) -> int:
        """Append a line of the same prefix; return the bytes by which the joined line grew."""
        # The text stays escaped as it is: the end of one JSON string and the start of the next go.
        piece = line[len(self._prefix) + 1 : -len(_ENDING)]
        self._pieces.append(piece)
        self.size += len(piece)
        return len(piece)

    def line(self) -> bytes:
        """Return the joined line."""
        return b"".join(self._pieces) + _ENDING
