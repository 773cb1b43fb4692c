"""Bytes to lines and back, so that what no fault touches leaves as the bytes that came.

A line end is a line feed alone: a carriage return before it belongs to the line, and empty lines
are lines.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from harness.trace.frame import MAX_FRAME_BYTES, Damage, DamageKind, Frame

# What is wrong with a piece that is no whole line. Faults see no message in it.
_HEAD = Damage(DamageKind.TOO_LONG, "a piece of a line that is too long to be held")
_TAIL = Damage(DamageKind.NOT_KEPT, "the end of a line that is too long to be held")
_UNENDED = Damage(DamageKind.CUT_OFF, "the stream ended before the line did")


@dataclass(frozen=True, slots=True)
class Piece:
    """A line without its line end; with `damage` a part of one."""

    raw: bytes
    damage: Damage | None = None


@dataclass(slots=True)
class Cutter:
    """Cuts what one side writes into lines. A line over `limit` bytes passes in pieces."""

    limit: int = MAX_FRAME_BYTES
    _buffer: bytearray = field(default_factory=bytearray)
    _within: bool = False

    def feed(self, chunk: bytes) -> list[Piece]:
        """Add some bytes; give the lines that are complete, and what is too long to wait for."""
        *ended, rest = chunk.split(b"\n")
        found: list[Piece] = []
        for line in ended:
            self._buffer += line
            found.append(Piece(self._taken(), _TAIL if self._within else None))
            self._within = False
        self._buffer += rest
        if self._buffer and (self._within or len(self._buffer) > self.limit):
            found.append(Piece(self._taken(), _HEAD))
            self._within = True
        return found

    def end(self) -> list[Piece]:
        """The stream ended: give what has no line end."""
        return [Piece(self._taken(), _UNENDED)] if self._buffer else []

    def _taken(self) -> bytes:
        raw = bytes(self._buffer)
        self._buffer.clear()
        return raw


def written(frame: Frame) -> bytes:
    """The bytes of what is passed on, with the line end that it had."""
    kind = frame.damage.kind if frame.damage is not None else None
    ended = kind not in (DamageKind.TOO_LONG, DamageKind.CUT_OFF)
    return frame.raw + b"\n" if ended else frame.raw


def all_written(frames: Iterable[Frame]) -> bytes:
    """The bytes of several, in order."""
    return b"".join(map(written, frames))
