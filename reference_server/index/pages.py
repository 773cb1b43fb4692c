"""One page of a list, from the rows.

Each walks an index in the order of the page and stops when the page is full, so its cost does not
grow with the number of threads; what it walks past are rows that a further filter or the search
leaves out.

A thread that nobody touches has its place in the order, and the cursor says where the last page
ended: so each comes once. But a touch can become known late, when another server writes it down or
a file is looked at again, and then the thread jumps over the cursor. Rows that have moved since the
last page, but whose thread was not touched since the first, are given first (`late`).
"""

import heapq
import itertools
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from reference_server.index.cursor import Position
from reference_server.index.database import Database
from reference_server.index.query import Query
from reference_server.index.rows import (
    ARCHIVED,
    COLUMNS,
    SESSIONS,
    Row,
    last_move,
    row_of,
    searchable,
)

MAX_WALKS = 8
"""Values of a filter, for each of which its own index is walked; with more, one walk filters."""
NEAR = 1000
"""Rows that are looked at for a word before it is looked up."""
FEW = 2000
"""Titles that may be sorted; where more hold a word, a walk finds a page of them soon."""
PART = 3
"""Characters: the parts by which titles are looked up."""
LOOKED_UP = 64
"""Characters of a word that are looked up; the rest is compared."""
_COLUMN = {name: number for number, name in enumerate(COLUMNS.split(", "))}
_ID, _MOVED = _COLUMN["id"], _COLUMN["moved"]


@dataclass(frozen=True, slots=True)
class Page:
    """Rows, and where the next page begins; None where there is none."""

    rows: list[Row]
    next: Position | None


def page_of(database: Database, query: Query, after: Position | None, now: float) -> Page:
    """Return the page after a position, or the first; `now` is in seconds since 1970."""
    begun = now if after is None else after.begun
    connection = database.connection
    moved = last_move(connection)
    if after is not None:
        # In an index made anew the last move can be an earlier one.
        moved = max(moved, after.moved)
    late: list[tuple[Any, ...]] = []
    if after is not None and query.sort == "updated" and moved > after.moved:
        late = _late(connection, query, after)
        if len(late) > query.limit:
            late = late[: query.limit]
            position = Position(after.key, after.id, late[-1][_MOVED], begun)
            return Page([row_of(one) for one in late], position)
    wanted = query.limit - len(late)
    rows = _walked(database, query, after, wanted + 1)
    more, rows = len(rows) > wanted, rows[:wanted]
    shown = [row_of(one) for one in (*late, *rows)]
    if not more:
        return Page(shown, None)
    if rows or after is None:
        return Page(shown, Position(rows[-1][_COLUMN[query.sort]], rows[-1][_ID], moved, begun))
    return Page(shown, Position(after.key, after.id, moved, begun))


def _late(connection: sqlite3.Connection, query: Query, after: Position) -> list[tuple[Any, ...]]:
    """Return rows that have jumped over the cursor although nobody touched their threads."""
    where, values = _filters(query, driven_by=None)
    return connection.execute(
        f"SELECT {COLUMNS} FROM threads INDEXED BY by_move WHERE shelf = ? AND moved > ? "
        f"AND (updated, id) > (?, ?) AND updated <= ? {where} ORDER BY moved LIMIT ?",
        (
            _shelf(query),
            after.moved,
            after.key,
            after.id,
            after.begun,
            *values,
            query.limit + 1,
        ),
    ).fetchall()


def _walked(
    database: Database, query: Query, after: Position | None, limit: int
) -> list[tuple[Any, ...]]:
    """Return the next rows in the order of the query."""
    if not query.term:
        return _walk(database.connection, query, after, limit)
    # A word that many titles hold is met soon; of the others there are few, which can be sorted.
    near = _walk(database.connection, query, after, limit, among=NEAR)
    if len(near) == limit:
        return near
    if database.has_titles and (match := _match(query.term)):
        few = database.connection.execute(
            "SELECT count(*) FROM (SELECT 1 FROM titles WHERE titles MATCH ? LIMIT ?)",
            (match, FEW),
        ).fetchone()[0]
        if few < FEW:
            return _looked_up(database.connection, query, after, limit, match)
    return _walk(database.connection, query, after, limit)


def _walk(
    connection: sqlite3.Connection,
    query: Query,
    after: Position | None,
    limit: int,
    *,
    among: int | None = None,
) -> list[tuple[Any, ...]]:
    """Walk one index, or several side by side; `among`: look at so many rows of each at most."""
    column, wanted = _driver(query)
    index = f"by_{query.sort}" if column is None else f"by_{column}_{query.sort}"
    own = "" if column is None else f"AND {column} = ?"
    behind, position = _behind(query, after)
    where, values = _filters(query, driven_by=column)
    order = f"ORDER BY {query.sort} DESC, id DESC"
    rows = f"threads INDEXED BY {index} WHERE shelf = ? {own} {behind}"
    if among is None:
        text = f"SELECT {COLUMNS} FROM {rows} {where} {order} LIMIT ?"
    else:
        text = (
            f"SELECT {COLUMNS} FROM (SELECT {COLUMNS} FROM {rows} {order} LIMIT {among}) "
            f"WHERE TRUE {where} LIMIT ?"
        )
    walks = [
        connection.execute(text, (_shelf(query), *one, *position, *values, limit)).fetchall()
        for one in wanted
    ]
    return _merged(walks, query, limit)


def _looked_up(
    connection: sqlite3.Connection, query: Query, after: Position | None, limit: int, match: str
) -> list[tuple[Any, ...]]:
    """Find the rows that can hold the word first, and sort those that do."""
    behind, position = _behind(query, after)
    where, values = _filters(query, driven_by=None)
    return connection.execute(
        f"SELECT {COLUMNS} FROM threads WHERE key IN (SELECT rowid FROM titles WHERE titles "
        "MATCH ? UNION ALL SELECT key FROM threads INDEXED BY by_length WHERE long) "
        f"AND +shelf = ? {behind} {where} ORDER BY +{query.sort} DESC, +id DESC LIMIT ?",
        (match, _shelf(query), *position, *values, limit),
    ).fetchall()


def _match(term: str) -> str | None:
    """Return the look-up for the beginning of a word; None where it has too few characters."""
    if len(term) < PART:
        return None
    return '"' + searchable(term[:LOOKED_UP]).replace('"', '""') + '"'


def _behind(query: Query, after: Position | None) -> tuple[str, tuple[Any, ...]]:
    if after is None:
        return "", ()
    return f"AND ({query.sort}, id) < (?, ?)", (after.key, after.id)


def _merged(
    walks: Iterable[list[tuple[Any, ...]]], query: Query, limit: int
) -> list[tuple[Any, ...]]:
    order = itemgetter(_COLUMN[query.sort], _ID)
    return list(itertools.islice(heapq.merge(*walks, key=order, reverse=True), limit))


def _driver(query: Query) -> tuple[str | None, list[tuple[str, ...]]]:
    """Choose the column whose index is walked, and the values: a walk for each."""
    if query.cwd is not None:
        return "cwd", [(query.cwd,)]
    for column, words in (("provider", query.providers), ("source", query.sources)):
        values = sorted(set(words))
        if 0 < len(values) <= MAX_WALKS:
            return column, [(value,) for value in values]
    return None, [()]


def _filters(query: Query, *, driven_by: str | None) -> tuple[str, list[Any]]:
    """Return the other filters as SQL, and their values."""
    parts: list[str] = []
    values: list[Any] = []
    if query.cwd is not None and driven_by != "cwd":
        parts.append("AND cwd = ?")
        values.append(query.cwd)
    for column, words in (("provider", query.providers), ("source", query.sources)):
        if words and driven_by != column:
            unlike = sorted(set(words))
            parts.append(f"AND {column} IN ({', '.join('?' * len(unlike))})")
            values.extend(unlike)
    if query.term:
        # Of bytes: of text, SQLite would count characters, and LIKE knows no case.
        term = query.term.encode()
        parts.append("AND (instr(preview, ?) OR instr(name, ?))")
        values.extend((term, term))
    return " ".join(parts), values


def _shelf(query: Query) -> int:
    return ARCHIVED if query.archived else SESSIONS
