"""Splitting of bytes into lines, without I/O. A line need not be JSON."""

from reference_server.transport.base import Incoming, Oversized

LINE_LIMIT = 10 * 1024 * 1024
"""Bytes of the longest line taken; a longer one is skipped and reported as `Oversized`.

Parsed, JSON that consists of small objects takes up to 47 times its length in memory.
"""


class LineSplitter:
    """Splitter of bytes, fed in any pieces, into complete lines without blank ones.

    The last line of a stream counts as complete when `end` is called, newline or not.
    """

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._held_bytes = 0
        self._skipping = False

    def feed(self, data: bytes) -> list[Incoming]:
        """Take the next bytes and return the lines they complete."""
        first, *rest = data.split(b"\n")
        lines: list[Incoming] = []
        self._hold(first, lines)
        for piece in rest:
            self._finish(lines)
            self._hold(piece, lines)
        return lines

    def end(self) -> list[Incoming]:
        """Take the end of the stream and return its last line, if that has no newline."""
        lines: list[Incoming] = []
        self._finish(lines)
        return lines

    def _hold(self, piece: bytes, lines: list[Incoming]) -> None:
        if self._skipping or not piece:
            return
        self._held_bytes += len(piece)
        if self._held_bytes > self._limit:
            # Reported now and not at its newline, which the peer may never send.
            self._skipping = True
            self._pieces.clear()
            lines.append(Oversized(self._limit))
        else:
            self._pieces.append(piece)

    def _finish(self, lines: list[Incoming]) -> None:
        line = b"".join(self._pieces)
        if line.strip():
            lines.append(line)
        self._pieces.clear()
        self._held_bytes = 0
        self._skipping = False
