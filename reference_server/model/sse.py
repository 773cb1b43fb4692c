"""Parser of server-sent events, without I/O.

Only `data` fields of the HTML standard's format are used; comments and other fields are ignored.
The data is not interpreted.
"""

EVENT_LIMIT = 8 << 20
"""Maximum bytes of an event."""


class EventTooLong(Exception):
    """An event is longer than EVENT_LIMIT."""


class SseParser:
    """Parser of bytes, fed in any pieces, into the data of complete events.

    `began` is True once an event was complete.
    """

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._rest_size = 0
        self._data: list[bytes] = []
        self._data_size = 0
        self.began = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes and return the data of each event that they complete.

        Raises EventTooLong for an event of more than EVENT_LIMIT bytes.
        """
        half = bool(self._rest) and self._rest[-1].endswith(b"\r")
        self._hold(chunk)
        if not half and b"\n" not in chunk and b"\r" not in chunk:
            # The pieces of a long line are joined once, at its end.
            self._check_size()
            return []
        text = b"".join(self._rest)
        held_back = b""
        if b"\r" in text:
            if text.endswith(b"\r"):
                # It may be the first half of a CR LF.
                text, held_back = text[:-1], b"\r"
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = text.split(b"\n")
        # The text after the last newline is not a complete line yet.
        self._rest, self._rest_size = [], 0
        self._hold(lines.pop() + held_back)
        events: list[bytes] = []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[6:] if line[5:6] == b" " else line[5:])
                self._data_size += len(line)
            elif not line and self._data:
                events.append(b"\n".join(self._data))
                self._data.clear()
                self._data_size = 0
        self._check_size()
        self.began = self.began or bool(events)
        return events

    def _hold(self, piece: bytes) -> None:
        if piece:
            self._rest.append(piece)
            self._rest_size += len(piece)

    def _check_size(self) -> None:
        if self._data_size + self._rest_size > EVENT_LIMIT:
            raise EventTooLong(f"an event is longer than {EVENT_LIMIT} bytes")
