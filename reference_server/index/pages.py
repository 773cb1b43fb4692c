"""Pages of a list, queried from the rows.

A query walks an SQL index in the order of the page and stops when the page is full, so its cost
does not grow with the number of threads; it only walks past rows that another filter or the search
rejects.

A thread that is not updated keeps its place in the order, and the cursor marks the end of the last
page, so each thread is listed once. But an update can become known late, when another server writes
it or a file is checked again; then the row moves over the cursor. Rows that have moved since the
last page, but whose thread was not updated since the first page, come first (`_late_rows`).
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
"""Maximum values of a filter with a walk of the filter's index for each; else one walk filters."""
ROWS_BEFORE_LOOKUP = 1000
"""Rows that are searched for a term before the full-text table is used."""
MAX_SORTED_TITLES = 2000
"""Maximum matching titles that are sorted; if more match, a walk finds a page of them soon."""
TRIGRAM_LENGTH = 3
"""Minimum characters of a term for the full-text table."""
MAX_LOOKUP_CHARACTERS = 64
"""Maximum characters of a term for the full-text table; the rest is compared."""
_COLUMN = {name: number for number, name in enumerate(COLUMNS.split(", "))}
_ID, _MOVED = _COLUMN["id"], _COLUMN["moved"]


@dataclass(frozen=True, slots=True)
class Page:
    """Rows of a page; `next` is where the next page begins, None after the last one."""

    rows: list[Row]
    next: Position | None


def page_of(database: Database, query: Query, after: Position | None, now: float) -> Page:
    """Return the page after a position, or the first; `now` is in seconds since 1970."""
    started_at = now if after is None else after.started_at
    connection = database.connection
    moved = last_move(connection)
    if after is not None:
        # In a rebuilt index the last move number can be lower.
        moved = max(moved, after.last_move)
    late_rows: list[tuple[Any, ...]] = []
    if after is not None and query.sort == "updated" and moved > after.last_move:
        late_rows = _late_rows(connection, query, after)
        if len(late_rows) > query.limit:
            late_rows = late_rows[: query.limit]
            position = Position(after.key, after.id, late_rows[-1][_MOVED], started_at)
            return Page([row_of(one) for one in late_rows], position)
    remaining = query.limit - len(late_rows)
    rows = _next_rows(database, query, after, remaining + 1)
    more, rows = len(rows) > remaining, rows[:remaining]
    shown_rows = [row_of(one) for one in (*late_rows, *rows)]
    if not more:
        return Page(shown_rows, None)
    if rows or after is None:
        return Page(
            shown_rows, Position(rows[-1][_COLUMN[query.sort]], rows[-1][_ID], moved, started_at)
        )
    return Page(shown_rows, Position(after.key, after.id, moved, started_at))


def _late_rows(
    connection: sqlite3.Connection, query: Query, after: Position
) -> list[tuple[Any, ...]]:
    """Return rows that moved over the cursor although their threads were not updated."""
    conditions, values = _filters(query, driven_by=None)
    return connection.execute(
        f"SELECT {COLUMNS} FROM threads INDEXED BY by_move WHERE shelf = ? AND moved > ? "
        f"AND (updated, id) > (?, ?) AND updated <= ? {conditions} ORDER BY moved LIMIT ?",
        (
            _shelf(query),
            after.last_move,
            after.key,
            after.id,
            after.started_at,
            *values,
            query.limit + 1,
        ),
    ).fetchall()


def _next_rows(
    database: Database, query: Query, after: Position | None, limit: int
) -> list[tuple[Any, ...]]:
    """Return the next rows in the order of the query."""
    if not query.term:
        return _walk(database.connection, query, after, limit)
    # A common term is found soon; the rows with a rare one are few, and can be sorted.
    first_rows = _walk(database.connection, query, after, limit, among=ROWS_BEFORE_LOOKUP)
    if len(first_rows) == limit:
        return first_rows
    if database.has_titles and (match := _match(query.term)):
        few = database.connection.execute(
            "SELECT count(*) FROM (SELECT 1 FROM titles WHERE titles MATCH ? LIMIT ?)",
            (match, MAX_SORTED_TITLES),
        ).fetchone()[0]
        if few < MAX_SORTED_TITLES:
            return _rows_by_title(database.connection, query, after, limit, match)
    return _walk(database.connection, query, after, limit)


def _walk(
    connection: sqlite3.Connection,
    query: Query,
    after: Position | None,
    limit: int,
    *,
    among: int | None = None,
) -> list[tuple[Any, ...]]:
    """Return rows in order by walking one SQL index, or one index for each of several values.

    `among`: maximum rows examined in each walk.
    """
    column, values_walked = _driver(query)
    index = f"by_{query.sort}" if column is None else f"by_{column}_{query.sort}"
    column_condition = "" if column is None else f"AND {column} = ?"
    behind, position = _after_condition(query, after)
    conditions, values = _filters(query, driven_by=column)
    order = f"ORDER BY {query.sort} DESC, id DESC"
    rows = f"threads INDEXED BY {index} WHERE shelf = ? {column_condition} {behind}"
    if among is None:
        text = f"SELECT {COLUMNS} FROM {rows} {conditions} {order} LIMIT ?"
    else:
        text = (
            f"SELECT {COLUMNS} FROM (SELECT {COLUMNS} FROM {rows} {order} LIMIT {among}) "
            f"WHERE TRUE {conditions} LIMIT ?"
        )
    walks = [
        connection.execute(text, (_shelf(query), *one, *position, *values, limit)).fetchall()
        for one in values_walked
    ]
    return _merge_walks(walks, query, limit)


def _rows_by_title(
    connection: sqlite3.Connection, query: Query, after: Position | None, limit: int, match: str
) -> list[tuple[Any, ...]]:
    """Return rows in order by looking up titles that may hold the term, and sorting matches."""
    behind, position = _after_condition(query, after)
    conditions, values = _filters(query, driven_by=None)
    return connection.execute(
        f"SELECT {COLUMNS} FROM threads WHERE key IN (SELECT rowid FROM titles WHERE titles "
        "MATCH ? UNION ALL SELECT key FROM threads INDEXED BY by_length WHERE long) "
        f"AND +shelf = ? {behind} {conditions} ORDER BY +{query.sort} DESC, +id DESC LIMIT ?",
        (match, _shelf(query), *position, *values, limit),
    ).fetchall()


def _match(term: str) -> str | None:
    """Return the full-text query for the beginning of a term; None if the term is too short."""
    if len(term) < TRIGRAM_LENGTH:
        return None
    return '"' + searchable(term[:MAX_LOOKUP_CHARACTERS]).replace('"', '""') + '"'


def _after_condition(query: Query, after: Position | None) -> tuple[str, tuple[Any, ...]]:
    if after is None:
        return "", ()
    return f"AND ({query.sort}, id) < (?, ?)", (after.key, after.id)


def _merge_walks(
    walks: Iterable[list[tuple[Any, ...]]], query: Query, limit: int
) -> list[tuple[Any, ...]]:
    order = itemgetter(_COLUMN[query.sort], _ID)
    return list(itertools.islice(heapq.merge(*walks, key=order, reverse=True), limit))


def _driver(query: Query) -> tuple[str | None, list[tuple[str, ...]]]:
    """Return the column whose index is walked, and a value for each walk; (None, [()]) if none."""
    if query.cwd is not None:
        return "cwd", [(query.cwd,)]
    for column, words in (("provider", query.providers), ("source", query.sources)):
        values = sorted(set(words))
        if 0 < len(values) <= MAX_WALKS:
            return column, [(value,) for value in values]
    return None, [()]


def _filters(query: Query, *, driven_by: str | None) -> tuple[str, list[Any]]:
    """Return the filters, except on the column `driven_by`, as SQL and their values."""
    parts: list[str] = []
    values: list[Any] = []
    if query.cwd is not None and driven_by != "cwd":
        parts.append("AND cwd = ?")
        values.append(query.cwd)
    for column, words in (("provider", query.providers), ("source", query.sources)):
        if words and driven_by != column:
            distinct = sorted(set(words))
            parts.append(f"AND {column} IN ({', '.join('?' * len(distinct))})")
            values.extend(distinct)
    if query.term:
        # Compared as bytes: for text SQLite would count characters, and LIKE ignores case.
        term = query.term.encode()
        parts.append("AND (instr(preview, ?) OR instr(name, ?))")
        values.extend((term, term))
    return " ".join(parts), values


def _shelf(query: Query) -> int:
    return ARCHIVED if query.archived else SESSIONS
