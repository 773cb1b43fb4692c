"""The judge of a trace, stored or live: it runs all rules over it."""

from collections.abc import Iterable
from typing import Any

from harness.judge.base import Monitor
from harness.judge.connection import ConnectionJudge, plan_of
from harness.judge.rows import TraceRows
from harness.judge.verdict import Row
from harness.protocol.spec.book import Book
from harness.trace.frame import Frame
from harness.trace.marks import ClientLeft, Closed, MarkBody, Setup
from harness.trace.surface.registry import surface_named
from harness.trace.trace import End, Mark, Trace


class Judge:
    """Judge of one trace: `feed` frames and marks in order, then `finish`.

    Every connection has its own monitors of the `rules` (see `Monitor`). Rules of other surfaces
    are skipped. Raises `ValueError` for a trace of an unknown surface.
    """

    def __init__(self, book: Book, trace: Trace, rules: Iterable[type[Monitor]]) -> None:
        self._book = book
        self._trace = trace
        self._surface = surface_named(trace.header.surface)
        self._plan = plan_of(tuple(rules), self._surface.name)
        self._ledgers = self._surface.ledgers()
        self._rows = TraceRows(self._ledgers.has_ambiguous_id)
        self._connections: dict[str, ConnectionJudge] = {}
        self._setup = False

    def feed(self, frame: Frame) -> None:
        """Judge one frame."""
        connection = self._connections.get(frame.connection) or self._begin_connection(
            frame.connection
        )
        self._ledgers.feed(frame)
        connection.feed(frame, setup=self._setup)

    def _begin_connection(self, name: str) -> ConnectionJudge:
        owed = self._ledgers.ledger_of(name)
        connection = ConnectionJudge(
            self._plan, self._surface, owed, self._rows, self._book, self._trace
        )
        self._connections[name] = connection
        connection.mark_setup(active=self._setup)
        return connection

    def feed_mark(self, mark: Mark[MarkBody]) -> None:
        """Judge one mark; between two `Setup` marks no witness counts.

        A mark that names no connection goes to the only open one; if several are open, their
        monitors get `on_missed_mark`. After a `Closed` mark, missing messages of its connection are
        not judged.
        """
        self._ledgers.feed_mark(mark)
        connection_id = mark.body.connection_id
        if isinstance(mark.body, Setup):
            self._setup = mark.body.active
            for connection in self._connections.values():
                connection.mark_setup(active=self._setup)
        elif isinstance(mark.body, Closed):
            closed_connection = self._connections.get(mark.body.connection)
            if closed_connection is not None:
                closed_connection.closed = True
        elif (
            connection_id is not None
            and connection_id not in self._connections
            and not isinstance(mark.body, ClientLeft)
        ):
            self._begin_connection(connection_id)
        still_open = self._open_connections()
        for name, connection in still_open.items():
            if len(still_open) == 1 or name == connection_id:
                connection.feed_mark(mark, setup=self._setup)
            elif connection_id is None:
                connection.feed_missed_mark(mark)

    def _open_connections(self) -> dict[str, ConnectionJudge]:
        """Return the connections that the harness has not ended."""
        return {name: one for name, one in self._connections.items() if not one.closed}

    @property
    def open_ledgers(self) -> list[Any]:
        """The ledgers of the connections that the harness has not ended."""
        return [connection.ledger for connection in self._open_connections().values()]

    def take_new_violations(self) -> list[Row]:
        """Return the violations found since the last call, so that they can be shown at once."""
        violations, self._rows.new_violations = self._rows.new_violations, []
        return violations

    def finish(self, end: End) -> list[Row]:
        """Judge missing messages (only when QUIESCENT) and return all rows."""
        if end is End.QUIESCENT:
            for connection in self._open_connections().values():
                connection.finish()
        return self._rows.sorted_rows(self._plan.indexes)


def judge(book: Book, trace: Trace, rules: Iterable[type[Monitor]]) -> list[Row]:
    """Judge a stored trace and return its rows."""
    return feed_trace(book, trace, rules).finish(trace.end)


def feed_trace(book: Book, trace: Trace, rules: Iterable[type[Monitor]]) -> Judge:
    """Return a judge that has judged all frames and marks of a trace, but not its end."""
    judging = Judge(book, trace, rules)
    marks = sorted(trace.marks, key=lambda mark: mark.after)
    position = 0
    for frame in trace.frames:
        while position < len(marks) and marks[position].after < frame.seq:
            judging.feed_mark(marks[position])
            position += 1
        judging.feed(frame)
    for mark in marks[position:]:
        judging.feed_mark(mark)
    return judging
