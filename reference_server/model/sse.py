"""Server-sent events without I/O: bytes in, the data of whole events out.

Of the HTML standard's format, `data` and `event` fields are read; comments and other fields are
passed over. The data is not interpreted.
"""

EVENT_LIMIT = 8 << 20
"""Bytes of the largest event that is waited for."""


class EventTooLong(Exception):
    """An event does not come to its end."""


class SseParser:
    """Feed it bytes in any pieces; it gives the data of each event they complete.

    `began` tells whether any event has been completed.
    """

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._rest_size = 0
        self._data: list[bytes] = []
        self._data_size = 0
        self.began = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes and give the data of the events that ended in them.

        Raises EventTooLong.
        """
        half = bool(self._rest) and self._rest[-1].endswith(b"\r")
        self._hold(chunk)
        if not half and b"\n" not in chunk and b"\r" not in chunk:
            # A long line is put together once, not with each of its pieces.
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
        # The text after the last newline is not a whole line yet.
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
