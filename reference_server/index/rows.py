"""Rows of the index, one for each rollout file.

`upkeep` decides when to write a row, `pages` which rows a list shows.
"""

import os
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reference_server.index.database import Database
from reference_server.index.summary import Stamp, Summary

SESSIONS, ARCHIVED, HIDDEN, UNREADABLE = range(4)
"""Shelves of rows, by which lists select them. HIDDEN: another file has the same thread."""

COLUMNS = (
    "key, folder, file, id, shelf, unreadable, inode, size, changed, read_to, mark, "
    "moved, created, updated, provider, source, cwd, name, preview"
)
_WRITTEN = (
    "folder, file, id, shelf, unreadable, inode, size, changed, read_to, mark, "
    "moved, created, updated, provider, source, cwd, name, preview, long"
)
_ALWAYS = (int, bytes, bytes, str, *[int] * 8, float, float, str, str, str)
_TYPES = ((*_ALWAYS, bytes, bytes), (*_ALWAYS, type(None), bytes))
"""Types of the values of COLUMNS, with and without a name."""
_INSERT = f"INSERT INTO threads ({_WRITTEN}) VALUES ({', '.join('?' * 19)})"
_UPDATE = f"UPDATE threads SET ({_WRITTEN}) = ({', '.join('?' * 19)}) WHERE key = ?"

TITLE_LENGTH = 1000
"""Characters of a title in the full-text table; longer titles are examined in each search."""


@dataclass(frozen=True, slots=True)
class Place:
    """Place of a rollout: its folder below the home, its file name, and the id of its thread.

    Folder and file are bytes, since file names need not be text.
    """

    folder: bytes
    file: bytes
    id: str

    def path(self, root: Path) -> Path:
        """Return the whole path."""
        return root / os.fsdecode(self.folder) / os.fsdecode(self.file)

    @property
    def is_archived(self) -> bool:
        """Return whether the rollout is in the archive."""
        return self.folder.split(b"/", 1)[0] == b"archived_sessions"


@dataclass(frozen=True, slots=True)
class Row:
    """A row. `summary` is None for a file that cannot be read.

    `move_number` rises with every change of `updated` in any row, and is at least the time of the
    change in microseconds. In a rebuilt index it is the time when the file was written.
    """

    key: int
    place: Place
    shelf: int
    stamp: Stamp
    move_number: int
    summary: Summary | None


def row_of(values: tuple[Any, ...]) -> Row:
    """Return the row of the values of COLUMNS. Raises sqlite3.DatabaseError for wrong types."""
    if tuple(map(type, values)) not in _TYPES:
        raise sqlite3.DatabaseError("a row is damaged")
    key, folder, file, thread, shelf, unreadable, inode, size, changed, read_to, mark = values[:11]
    moved, created, updated, provider, source, cwd, name, preview = values[11:]
    stamp = Stamp(inode, size, changed)
    summary = None
    if not unreadable:
        summary = Summary(
            id=thread,
            provider=provider,
            cwd=cwd,
            source=source,
            created_at=created,
            updated_at=updated,
            name=None if name is None else _text(name),
            preview=_text(preview),
            stamp=stamp,
            offset=read_to,
            mark=mark,
        )
    return Row(key, Place(folder, file, thread), shelf, stamp, moved, summary)


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise sqlite3.DatabaseError("a row is damaged") from None


def row_at(connection: sqlite3.Connection, place: Place) -> Row | None:
    """Return the row of a file; None if there is none."""
    values = connection.execute(
        f"SELECT {COLUMNS} FROM threads WHERE folder = ? AND file = ?", (place.folder, place.file)
    ).fetchone()
    return None if values is None else row_of(values)


def rows_in(
    connection: sqlite3.Connection, folder: bytes
) -> Iterator[tuple[bytes, bool, Stamp, str]]:
    """Yield file name, whether unreadable, stamp and thread of each row of a folder."""
    for file, unreadable, inode, size, changed, thread in connection.execute(
        "SELECT file, unreadable, inode, size, changed, id FROM threads WHERE folder = ?", (folder,)
    ):
        yield file, bool(unreadable), Stamp(inode, size, changed), thread


def unreadable_rows(connection: sqlite3.Connection, limit: int) -> list[tuple[Place, Stamp]]:
    """Return the place and stamp of files that could not be read, the newest rows first."""
    rows = connection.execute(
        "SELECT folder, file, id, inode, size, changed FROM threads INDEXED BY by_created "
        "WHERE shelf = ? ORDER BY key DESC LIMIT ?",
        (UNREADABLE, limit),
    ).fetchall()
    return [(Place(*values[:3]), Stamp(*values[3:])) for values in rows]


def write_row(
    database: Database,
    place: Place,
    stamp: Stamp,
    summary: Summary | None,
    *,
    earlier: Row | None,
    moved: int,
) -> None:
    """Write the row of a file, with `summary` None if it is unreadable.

    `earlier` is its present row, if any; `moved` the new move number.
    """
    connection = database.connection
    thread_values: tuple[Any, ...] = (0, 0, moved, 0.0, 0.0, "", "", "", None, b"")
    if summary is not None:
        thread_values = (
            summary.offset,
            summary.mark,
            moved,
            summary.created_at,
            summary.updated_at,
            summary.provider,
            summary.source,
            summary.cwd,
            None if summary.name is None else summary.name.encode(),
            summary.preview.encode(),
        )
    title = _title(summary)
    unreadable = summary is None
    values = (
        place.folder,
        place.file,
        place.id,
        # `_shelve` below corrects this if the thread has another file.
        _own_shelf(place, unreadable=unreadable) if earlier is None else earlier.shelf,
        unreadable,
        stamp.inode,
        stamp.size,
        stamp.changed_ns,
        *thread_values,
        len(title) > TITLE_LENGTH,
    )
    if earlier is None:
        key = connection.execute(_INSERT, values).lastrowid
    else:
        key = earlier.key
        connection.execute(_UPDATE, (*values, key))
    if database.has_titles and (earlier is None or _title(earlier.summary) != title):
        connection.execute("DELETE FROM titles WHERE rowid = ?", (key,))
        if title:
            connection.execute(
                "INSERT INTO titles (rowid, title) VALUES (?, ?)", (key, title[:TITLE_LENGTH])
            )
    _shelve(connection, place.id)


def remove_row(database: Database, place: Place) -> None:
    """Remove the row of a file."""
    connection = database.connection
    place_values = (place.folder, place.file)
    if database.has_titles:
        connection.execute(
            "DELETE FROM titles WHERE rowid = "
            "(SELECT key FROM threads WHERE folder = ? AND file = ?)",
            place_values,
        )
    connection.execute("DELETE FROM threads WHERE folder = ? AND file = ?", place_values)
    _shelve(connection, place.id)


def _title(summary: Summary | None) -> str:
    """Return the text for the full-text table: name and preview."""
    if summary is None:
        return ""
    return searchable(f"{summary.name or ''}\n{summary.preview}".strip("\n"))


def searchable(text: str) -> str:
    """Return a text without NUL, at which the full-text table would end it."""
    return text.replace("\0", "\ufffd")


def last_move(connection: sqlite3.Connection) -> int:
    """Return the highest `move_number`, 0 without rows."""
    highest = 0
    for shelf in (SESSIONS, ARCHIVED):
        (highest_of_shelf,) = connection.execute(
            "SELECT max(moved) FROM threads WHERE shelf = ?", (shelf,)
        ).fetchone()
        highest = max(highest, highest_of_shelf or 0)
    return highest


def next_move(connection: sqlite3.Connection) -> int:
    """Return the next `move_number`, higher than any before, in this index or one before it."""
    return max(last_move(connection) + 1, time.time_ns() // 1000)


def _shelve(connection: sqlite3.Connection, thread: str) -> None:
    """Set the shelves of a thread's rows: the first in order is shown, the others are HIDDEN."""
    rows = connection.execute(
        "SELECT key, folder, file, shelf, unreadable FROM threads WHERE id = ?", (thread,)
    ).fetchall()
    places = [
        (Place(folder, file, thread), key, shelf, unreadable)
        for key, folder, file, shelf, unreadable in rows
    ]
    # In the search order of `rollout.store`.
    places.sort(key=lambda one: (one[0].is_archived, one[0].folder + b"/" + one[0].file))
    for position, (place, key, shelf, unreadable) in enumerate(places):
        correct_shelf = HIDDEN if position else _own_shelf(place, unreadable=unreadable)
        if shelf != correct_shelf:
            connection.execute("UPDATE threads SET shelf = ? WHERE key = ?", (correct_shelf, key))


def _own_shelf(place: Place, *, unreadable: bool) -> int:
    if unreadable:
        return UNREADABLE
    return ARCHIVED if place.is_archived else SESSIONS
