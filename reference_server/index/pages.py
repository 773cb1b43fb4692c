"""One page of a list, from the rows.

Here live the queries. Each walks an index in the order of the page and stops when the page is full,
so its cost does not grow with the number of threads; what it walks past are rows that a further
filter or the search leaves out.

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
from reference_server.index.query import Query
from reference_server.index.rows import ARCHIVED, COLUMNS, SESSIONS, Row, last_move, row_of

MOST_WALKS = 8
"""Values of a filter, for each of which its own index is walked; with more, one walk filters."""
_COLUMN = {name: number for number, name in enumerate(COLUMNS.split(", "))}
_ID, _MOVED = _COLUMN["id"], _COLUMN["moved"]


@dataclass(frozen=True, slots=True)
class Page:
    """Rows, and where the next page begins; None where there is none."""

    rows: list[Row]
    next: Position | None


def page_of(
    connection: sqlite3.Connection, query: Query, after: Position | None, now: float
) -> Page:
    """Give the page after a position, or the first; `now` is in seconds since 1970."""
    begun = now if after is None else after.begun
    moved = last_move(connection)
    late: list[tuple[Any, ...]] = []
    if after is not None and query.sort == "updated" and moved > after.moved:
        late = _late(connection, query, after)
        if len(late) > query.limit:
            late = late[: query.limit]
            position = Position(after.key, after.id, late[-1][_MOVED], begun)
            return Page([row_of(one) for one in late], position)
    wanted = query.limit - len(late)
    rows = _walked(connection, query, after, wanted + 1)
    more, rows = len(rows) > wanted, rows[:wanted]
    shown = [row_of(one) for one in (*late, *rows)]
    if not more:
        return Page(shown, None)
    if rows or after is None:
        return Page(shown, Position(rows[-1][_COLUMN[query.sort]], rows[-1][_ID], moved, begun))
    return Page(shown, Position(after.key, after.id, moved, begun))


def _late(connection: sqlite3.Connection, query: Query, after: Position) -> list[tuple[Any, ...]]:
    """Give rows that have jumped over the cursor although nobody touched their threads."""
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
    connection: sqlite3.Connection, query: Query, after: Position | None, limit: int
) -> list[tuple[Any, ...]]:
    column, wanted = _driver(query)
    where, values = _filters(query, driven_by=column)
    index = f"by_{query.sort}" if column is None else f"by_{column}_{query.sort}"
    if after is not None:
        where = f"AND ({query.sort}, id) < (?, ?) {where}"
        values = [after.key, after.id, *values]
    own = "" if column is None else f"AND {column} = ?"
    text = (
        f"SELECT {COLUMNS} FROM threads INDEXED BY {index} WHERE shelf = ? {own} {where} "
        f"ORDER BY {query.sort} DESC, id DESC LIMIT ?"
    )
    walks = [
        connection.execute(text, (_shelf(query), *one, *values, limit)).fetchall() for one in wanted
    ]
    return _merged(walks, query, limit)


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
        if 0 < len(values) <= MOST_WALKS:
            return column, [(value,) for value in values]
    return None, [()]


def _filters(query: Query, *, driven_by: str | None) -> tuple[str, list[Any]]:
    """Give the other filters as SQL, and their values."""
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
