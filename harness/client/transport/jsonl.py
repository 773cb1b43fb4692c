"""JSON Lines, without I/O: bytes in, lines out.

The specification leaves the transport open; implementations send one message per line on stdio
(protocol/spec/unspecified.yaml).
"""

from dataclasses import dataclass

from harness.trace.frame import MAX_FRAME_BYTES, Damage, DamageKind

# Bytes kept of a line over the limit, enough to recognise it.
MAX_KEPT_BYTES_OF_LONG_LINE = 1024


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its line end; `damage` describes invalid or missing bytes."""

    raw: bytes
    damage: Damage | None = None


class LineSplitter:
    """Splitter of chunks into lines.

    Empty lines are skipped. A line longer than `limit` bytes is returned once, truncated, and its
    damage states the full length; memory stays below the limit whatever arrives.
    """

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._dropped = 0

    @property
    def partial(self) -> bytes:
        """Return the bytes of a line that has not ended yet."""
        return bytes(self._buffer)

    @property
    def partial_size(self) -> int:
        """Return the number of bytes of the unfinished line, including those not kept."""
        return len(self._buffer) + self._dropped

    def feed(self, chunk: bytes) -> list[Line]:
        """Add a chunk; return the lines that are now complete."""
        lines: list[Line] = []
        pieces = chunk.split(b"\n")
        for piece in pieces[:-1]:
            self._append(piece)
            line = self._take()
            if line is not None:
                lines.append(line)
        self._append(pieces[-1])
        return lines

    def finish(self) -> Line | None:
        """Return the unfinished line at the end of the stream, None if there is none."""
        line = self._take()
        if line is None:
            return None
        cut_off = Damage(DamageKind.CUT_OFF, "the stream ended before the line did")
        return Line(line.raw, line.damage or cut_off)

    def _append(self, piece: bytes) -> None:
        if self._dropped:
            self._dropped += len(piece)
        else:
            self._buffer += piece
            if len(self._buffer) > self._limit:
                self._dropped = len(self._buffer) - MAX_KEPT_BYTES_OF_LONG_LINE
                del self._buffer[MAX_KEPT_BYTES_OF_LONG_LINE:]

    def _take(self) -> Line | None:
        raw = bytes(self._buffer)
        self._buffer.clear()
        if self._dropped:
            length, self._dropped = len(raw) + self._dropped, 0
            words = f"a line of {length} bytes; the limit is {self._limit}"
            return Line(raw, Damage(DamageKind.TOO_LONG, words))
        raw = raw.removesuffix(b"\r")
        return Line(raw) if raw.strip() else None
