"""Copying the records of a thread for another one.

Here lives what of a rollout a fork takes over: all but the names, with new ids for turns. A turn
that is active is copied as far as it got, and no server runs the copy: it reads as interrupted. The
copy rests on nothing of the original, which may be removed afterwards.
"""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from threading import Event

from reference_server.rollout.fold import Fold, StoredThread
from reference_server.rollout.reader import records_of
from reference_server.rollout.records import NameRecord, Record, ThreadRecord, TurnStartedRecord
from reference_server.safe_files import make_private, open_regular

_TURN_ID = re.compile(rb'\{"type":"[a-z-]+","at":[-+.0-9e]+,"turnId":"([^"\\]*)"')
"""The beginning of a record as the writer writes it, up to the record's own turn id."""


class Original:
    """What is copied: the records, each with its line in the file, or without (b"")."""

    def __init__(self, records: Iterable[tuple[bytes, Record]]) -> None:
        self.first: ThreadRecord | None = None
        self.turns: dict[str, str] = {}
        """The ids of its turns, in order; `rename` gives each the id of its copy."""
        self._records: list[tuple[bytes, Record]] = []
        for line, record in records:
            if isinstance(record, ThreadRecord):
                self.first = self.first or record
            elif not isinstance(record, NameRecord):
                self._records.append((line, record))
                if (turn := _turn_of(record)) is not None:
                    self.turns.setdefault(turn, turn)

    @classmethod
    def read(cls, path: Path, given_up: Event) -> "Original":
        """Read a rollout. Raises OSError, UnreadableRollout, GivenUp."""
        return cls(records_of(path, given_up))

    def rename(self, turns: Sequence[str]) -> None:
        """Set the ids of the copied turns, as many as there are turns."""
        self.turns = dict(zip(self.turns, turns, strict=True))

    def copied(self) -> Iterator[tuple[bytes, Record]]:
        """Give the records of the copy, but the first one, each with its line."""
        for line, record in self._records:
            turn = _turn_of(record)
            if turn is None:
                yield line or _line(record), record
                continue
            update: dict[str, str | None] = {"turn_id": self.turns[turn]}
            if isinstance(record, TurnStartedRecord):
                # No server runs the copy.
                update["server"] = None
                line = b""
            copy = record.model_copy(update=update)
            yield _with_turn(line, turn, self.turns[turn]) or _line(copy), copy


def write_copy(original: Original, first: ThreadRecord, path: Path) -> StoredThread:
    """Write a copy, whose first record is `first`, to a new file. Raises OSError.

    The file is there as a whole or not at all.
    """
    folding = Fold()
    folding.take(first)
    make_private(path.parent)
    # Not the name of a rollout: nobody reads it before it is whole.
    draft = path.with_suffix(".new")
    with contextlib.ExitStack() as undo:
        descriptor = open_regular(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        undo.callback(draft.unlink, missing_ok=True)
        with open(descriptor, "wb") as file:
            file.write(_line(first))
            for line, record in original.copied():
                file.write(line)
                folding.take(record)
        draft.rename(path)
        undo.pop_all()
    return folding.finish()


def _turn_of(record: Record) -> str | None:
    turn = getattr(record, "turn_id", None)
    return turn if isinstance(turn, str) else None


def _line(record: Record) -> bytes:
    return record.encode() + b"\n"


def _with_turn(line: bytes, old: str, new: str) -> bytes:
    """Put another turn id into a line; b"" where the line is not as this server writes it."""
    found = _TURN_ID.match(line)
    if found is None or found[1] != old.encode():
        return b""
    return b"%b%b%b" % (line[: found.start(1)], new.encode(), line[found.end(1) :])
