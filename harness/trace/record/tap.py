"""A tap between a client and a server that writes down what passes, as it passes.

Each line is written before it is passed on, so that a recording has whatever the other side has
seen.
"""

from typing import Any

from harness.protocol.values import MISSING, obj
from harness.trace.correlation import RequestKey, request_key
from harness.trace.frame import Damage, Direction, Frame, Kind, Origin, classify, parse
from harness.trace.marks import Closed
from harness.trace.record.file import RecordingFile
from harness.trace.record.masks import Masker


class Tap:
    """Writes down the lines of one connection, and passes each on as it is."""

    held = 0
    """Nothing is ever kept back."""

    def __init__(self, file: RecordingFile, masker: Masker, connection: str = "c1") -> None:
        self._file = file
        self._masker = masker
        self._connection = connection
        self._open: set[RequestKey] = set()
        self._closed = False

    def feed(
        self, raw: bytes, direction: Direction, *, damage: Damage | None = None
    ) -> list[Frame]:
        """Write a line down; give it back to be passed on."""
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
        if not self._file.broken:
            self._write(raw, direction, damage)
        return [passed]

    def quiet(self) -> list[Frame]:
        """Nothing is held."""
        return []

    def end(self) -> list[Frame]:
        """Nothing is held."""
        return []

    def closed(self) -> None:
        """The connection has ended: nothing is owed on it. Idempotent."""
        if not self._closed:
            self._closed = True
            self._file.mark(Closed(self._connection))

    def _write(self, raw: bytes, direction: Direction, damage: Damage | None) -> None:
        self._file.frame(
            Frame(
                seq=self._file.next_seq(),
                at=self._file.now(),
                connection=self._connection,
                direction=direction,
                origin=_origin(direction),
                raw=self._masker.raw(raw),
                json=MISSING,
                kind=Kind.MALFORMED,
                deliberate=self._tries_out(raw, direction),
                damage=damage,
            )
        )

    def _tries_out(self, raw: bytes, direction: Direction) -> bool:
        """Return whether a client says what no client should, to see what comes of it: text that is
        no message, or a request with an id that its answer cannot be told by. No rule holds a
        server to an answer then.
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
    """Writes down a program's lines; what it reads is one frame, as in a trace of a run.

    The input has no lines for it: it is written when it has ended, or when the program says
    something, whichever comes first.
    """

    def __init__(self, file: RecordingFile, masker: Masker, connection: str = "p1") -> None:
        super().__init__(file, masker, connection)
        self._input = bytearray()
        self.given = False
        """Whether its input, or some of it, has been written down."""

    def _write(self, raw: bytes, direction: Direction, damage: Damage | None) -> None:
        if direction is Direction.TO_TARGET:
            self._input += raw if damage is not None else raw + b"\n"
            return
        self.flush(always=not self.given)
        super()._write(raw, direction, None)

    def flush(self, *, always: bool = False) -> None:
        """Write what the program was given; `always`, also where that is nothing."""
        if self._input or always:
            self.given = True
            given, self._input = bytes(self._input), bytearray()
            super()._write(given, Direction.TO_TARGET, None)

    def _tries_out(self, raw: bytes, direction: Direction) -> bool:
        return False


def _origin(direction: Direction) -> Origin:
    return Origin.TARGET if direction is Direction.FROM_TARGET else Origin.HARNESS


def _id_of(value: Any) -> Any:
    return obj(value).get("id", MISSING)
