"""JSON Lines, without I/O: bytes in, lines out.

The specification leaves the transport open; implementations send one message per line on stdio
(protocol/spec/unspecified.yaml).
"""

from dataclasses import dataclass

from harness.trace.frame import MAX_FRAME_BYTES, Damage, DamageKind

# So many bytes of a line over the limit are kept, enough to recognise it.
MAX_KEPT_BYTES_OF_LONG_LINE = 1024


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its line end; `damage` says what is wrong with its bytes."""

    raw: bytes
    damage: Damage | None = None


class LineSplitter:
    """Cuts chunks into lines.

    Empty lines are skipped. A line longer than `limit` bytes is given once, truncated, with
    its full length in words; memory stays below the limit whatever arrives.
    """

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._dropped = 0

    @property
    def partial(self) -> bytes:
        """The bytes of a line that has not ended yet."""
        return bytes(self._buffer)

    @property
    def partial_size(self) -> int:
        """Return the number of bytes of that line so far, those not kept with them."""
        return len(self._buffer) + self._dropped

    def feed(self, chunk: bytes) -> list[Line]:
        """Add a chunk; give the lines that are now complete."""
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
        """The stream ended: give the unfinished line, None if there is none."""
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
