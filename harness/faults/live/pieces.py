"""Lines of bytes, split and joined without changing a byte.

A line ends with a line feed: a carriage return before it belongs to the line, and empty lines are
lines.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from harness.trace.frame import MAX_FRAME_BYTES, Damage, DamageKind, Frame

# Damage of pieces that are not whole lines. Faults see no message in them.
_HEAD = Damage(DamageKind.TOO_LONG, "a piece of a line that is too long to be held")
_TAIL = Damage(DamageKind.NOT_KEPT, "the end of a line that is too long to be held")
_CUT_OFF = Damage(DamageKind.CUT_OFF, "the stream ended before the line did")


@dataclass(frozen=True, slots=True)
class Piece:
    """A line without its line end, or a part of a line if `damage` is set."""

    raw: bytes
    damage: Damage | None = None


@dataclass(slots=True)
class Cutter:
    """A splitter of one side's bytes into lines; a line over `limit` bytes passes in pieces."""

    limit: int = MAX_FRAME_BYTES
    _buffer: bytearray = field(default_factory=bytearray)
    _in_long_line: bool = False

    def feed(self, chunk: bytes) -> list[Piece]:
        """Add some bytes; return the lines that are complete now, and pieces of overlong ones."""
        *ended, rest = chunk.split(b"\n")
        pieces: list[Piece] = []
        for line in ended:
            self._buffer += line
            pieces.append(Piece(self._take_buffer(), _TAIL if self._in_long_line else None))
            self._in_long_line = False
        self._buffer += rest
        if self._buffer and (self._in_long_line or len(self._buffer) > self.limit):
            pieces.append(Piece(self._take_buffer(), _HEAD))
            self._in_long_line = True
        return pieces

    def end(self) -> list[Piece]:
        """Return the unterminated last line at the end of the stream, [] if there is none."""
        return [Piece(self._take_buffer(), _CUT_OFF)] if self._buffer else []

    def _take_buffer(self) -> bytes:
        raw = bytes(self._buffer)
        self._buffer.clear()
        return raw


def encode_frame(frame: Frame) -> bytes:
    """Return the bytes of a frame with its line end, if it had one."""
    kind = frame.damage.kind if frame.damage is not None else None
    ended = kind not in (DamageKind.TOO_LONG, DamageKind.CUT_OFF)
    return frame.raw + b"\n" if ended else frame.raw


def encode_frames(frames: Iterable[Frame]) -> bytes:
    """Return the bytes of several frames, in order."""
    return b"".join(map(encode_frame, frames))
