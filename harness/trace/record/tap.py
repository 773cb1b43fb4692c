"""A tap between a client and a server that records the lines as they pass.

Each line is written before it is passed on, so that a recording has every line that the other
side has seen.
"""

from typing import Any

from harness.protocol.values import MISSING, obj
from harness.trace.correlation import RequestKey, request_key
from harness.trace.frame import Damage, Direction, Frame, Kind, Origin, classify, parse
from harness.trace.marks import ClientLeft, Closed
from harness.trace.record.file import RecordingFile
from harness.trace.record.masks import Masker


class Tap:
    """A tap that records the lines of one connection, and passes each on unchanged."""

    held_count = 0
    """The number of lines that are kept back: none ever."""

    def __init__(self, file: RecordingFile, masker: Masker, connection: str = "c1") -> None:
        self._file = file
        self._masker = masker
        self._connection = connection
        self._open: set[RequestKey] = set()
        self._closed = False
        self._has_client_left = False

    def feed(
        self, raw: bytes, direction: Direction, *, damage: Damage | None = None
    ) -> list[Frame]:
        """Record a line with its secrets masked; return it unchanged, to be passed on."""
        passed = Frame(
            seq=0,
            at=0.0,
            connection=self._connection,
            direction=direction,
            origin=_origin(direction),
            raw=raw,
            json=MISSING,
            kind=Kind.MALFORMED,
            damage=damage,
        )
        if not self._file.has_failed:
            self._write(raw, direction, damage)
        return [passed]

    def release_on_silence(self) -> list[Frame]:
        """Return no lines: none are held."""
        return []

    def end(self) -> list[Frame]:
        """Return no lines: none are held."""
        return []

    def note_client_left(self) -> None:
        """Record that the client has left, before the server ended. Idempotent."""
        if not (self._has_client_left or self._closed):
            self._has_client_left = True
            self._file.write_mark(ClientLeft(self._connection))

    def mark_closed(self) -> None:
        """Record that the connection has ended. Idempotent."""
        if not self._closed:
            self._closed = True
            self._file.write_mark(Closed(self._connection))

    def _write(self, raw: bytes, direction: Direction, damage: Damage | None) -> None:
        self._file.write_frame(
            Frame(
                seq=self._file.next_seq(),
                at=self._file.elapsed_seconds(),
                connection=self._connection,
                direction=direction,
                origin=_origin(direction),
                raw=self._masker.mask_bytes(raw),
                json=MISSING,
                kind=Kind.MALFORMED,
                deliberate=self._is_deliberate(raw, direction),
                damage=damage,
            )
        )

    def _is_deliberate(self, raw: bytes, direction: Direction) -> bool:
        """Return whether a client probes the server with an invalid message; note open ids.

        That is malformed text, or a request whose id is missing or in use. No rule demands an
        answer then.
        """
        value = parse(raw)
        kind = classify(value)
        key = request_key(self._connection, Direction.TO_TARGET, _id_of(value))
        if direction is Direction.FROM_TARGET:
            if kind in (Kind.RESPONSE, Kind.ERROR) and key is not None:
                self._open.discard(key)
            return False
        if kind is Kind.REQUEST:
            if key is None or key in self._open:
                return True
            self._open.add(key)
        return kind is Kind.MALFORMED


class ProgramTap(Tap):
    """A tap on a program's lines; the program's input is one frame, as in a trace of a run.

    The input is recorded when it has ended or when the program writes something, whichever comes
    first.
    """

    def __init__(self, file: RecordingFile, masker: Masker, connection: str = "p1") -> None:
        super().__init__(file, masker, connection)
        self._input = bytearray()
        self.input_written = False
        """True once the input, or a part of it, has been recorded."""

    def _write(self, raw: bytes, direction: Direction, damage: Damage | None) -> None:
        if direction is Direction.TO_TARGET:
            self._input += raw if damage is not None else raw + b"\n"
            return
        self.flush(always=not self.input_written)
        super()._write(raw, direction, None)

    def flush(self, *, always: bool = False) -> None:
        """Record the input collected so far; with `always` also if it is empty."""
        if self._input or always:
            self.input_written = True
            data, self._input = bytes(self._input), bytearray()
            super()._write(data, Direction.TO_TARGET, None)

    def _is_deliberate(self, raw: bytes, direction: Direction) -> bool:
        return False

    def note_client_left(self) -> None:
        """Record nothing: the end of its input is no message to a program."""


def _origin(direction: Direction) -> Origin:
    return Origin.TARGET if direction is Direction.FROM_TARGET else Origin.HARNESS


def _id_of(value: Any) -> Any:
    return obj(value).get("id", MISSING)
