"""Copy of a thread's records for another thread.

It has all records except names, with new ids for turns. An active turn is copied as far as it is
recorded; since no server runs the copy, it counts as interrupted. The copy does not depend on the
original, which may be removed afterwards.
"""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from threading import Event

from reference_server.rollout.fold import Fold, StoredThread
from reference_server.rollout.reader import lost_beginning, record_in, whole_lines_of
from reference_server.rollout.records import NameRecord, Record, ThreadRecord
from reference_server.safe_files import make_private, open_regular

_TURN_ID = re.compile(rb'\{"type":"[a-z-]+","at":[-+.0-9e]+,"turnId":"([^"\\]*)"')
"""Beginning of a record, in the writer's format, up to the record's own turn id."""
_TURN_STARTED = b'{"type":"turn-started",'
_SERVER = re.compile(rb',"server":"[^"\\]*"\}\n$')
"""End of such a record, with the id of the server that runs the turn."""


class Original:
    """Lines of a rollout to copy, each with the place of its turn id, if it has one."""

    def __init__(self, path: Path | str, lines: Iterable[bytes]) -> None:
        self._path = path
        self.first: ThreadRecord | None = None
        self.turns: dict[bytes, bytes] = {}
        """New turn ids by the original ones, in order; set by `rename`."""
        self._lines: list[tuple[re.Match[bytes] | None, bytes]] = []
        self._foreign = False
        for number, line in enumerate(lines, start=1):
            if match := _TURN_ID.match(line):
                if self.first is None and (record := record_in(path, number, line)) is not None:
                    self.first = lost_beginning(path, record)
                self._keep(match, line)
            elif (record := record_in(path, number, line)) is not None:
                self._take(record)

    def _take(self, record: Record) -> None:
        """Take a record without a turn id, or not in the writer's format."""
        if isinstance(record, ThreadRecord):
            self.first = self.first or record
            self._foreign = record.id != self.first.id
        elif not isinstance(record, NameRecord):
            line = record.encode() + b"\n"
            self._keep(_TURN_ID.match(line), line)

    def _keep(self, turn: re.Match[bytes] | None, line: bytes) -> None:
        if self.first is not None and not self._foreign:
            self._lines.append((turn, line))
            if turn is not None:
                self.turns.setdefault(turn[1], turn[1])

    @classmethod
    def read(cls, path: Path, given_up: Event) -> "Original":
        """Read a rollout. Raises OSError, UnreadableRollout, GivenUp."""
        return cls(path, whole_lines_of(path, given_up))

    @classmethod
    def of_records(cls, records: Iterable[Record]) -> "Original":
        """Return the original of an ephemeral thread's records."""
        return cls("memory", (record.encode() + b"\n" for record in records))

    def rename(self, turns: Sequence[str]) -> None:
        """Set the ids of the copied turns, one for each turn, in order."""
        self.turns = dict(zip(self.turns, (turn.encode() for turn in turns), strict=True))

    def copied_records(self) -> Iterator[tuple[bytes, Record]]:
        """Yield (line, record) of the copy's records, without the first record."""
        for number, (turn, line) in enumerate(self._lines, start=1):
            copy = line if turn is None else self._rename_turn(turn, line)
            if copy.startswith(_TURN_STARTED):
                # No server runs the copy.
                copy = _SERVER.sub(b"}\n", copy)
            record = record_in(self._path, number, copy)
            if record is not None:
                yield copy, record

    def _rename_turn(self, turn: re.Match[bytes], line: bytes) -> bytes:
        start, end = turn.span(1)
        return line[:start] + self.turns[turn[1]] + line[end:]


def write_copy(original: Original, first: ThreadRecord, path: Path) -> StoredThread:
    """Write a copy, whose first record is `first`, to a new file, and return its thread.

    After an OSError there is no file.
    """
    folding = Fold()
    folding.take(first)
    make_private(path.parent)
    # Not named like a rollout, so no server reads it before it is complete.
    draft = path.with_suffix(".new")
    with contextlib.ExitStack() as undo:
        descriptor = open_regular(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        undo.callback(draft.unlink, missing_ok=True)
        with open(descriptor, "wb") as file:
            file.write(first.encode() + b"\n")
            for line, record in original.copied_records():
                file.write(line)
                folding.take(record)
        draft.rename(path)
        undo.pop_all()
    return folding.finish()
