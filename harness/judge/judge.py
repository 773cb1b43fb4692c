"""Runs all rules over a trace, stored or live."""

from collections.abc import Iterable
from typing import Any

from harness.judge.base import Monitor
from harness.judge.connection import ConnectionJudge, plan_of
from harness.judge.rows import TraceRows
from harness.judge.verdict import Row
from harness.protocol.spec.book import Book
from harness.trace.frame import Frame
from harness.trace.marks import Closed, MarkBody, Setup
from harness.trace.surface.known import surface_named
from harness.trace.trace import End, Mark, Trace


class Judge:
    """Judges one trace: `feed` frames and marks in order, then `finish`.

    Every connection has its own monitors of the `rules` (see `Monitor`). Rules of another surface
    than the trace's are left out. Raises `ValueError` for a trace of an unknown surface.
    """

    def __init__(self, book: Book, trace: Trace, rules: Iterable[type[Monitor]]) -> None:
        self._book = book
        self._trace = trace
        self._surface = surface_named(trace.header.surface)
        self._plan = plan_of(tuple(rules), self._surface.name)
        self._owed = self._surface.ledgers()
        self._rows = TraceRows()
        self._connections: dict[str, ConnectionJudge] = {}
        self._setup = False

    def feed(self, frame: Frame) -> None:
        """Judge one frame."""
        connection = self._connections.get(frame.connection) or self._begin(frame.connection)
        self._owed.feed(frame)
        connection.feed(frame, setup=self._setup)

    def _begin(self, name: str) -> ConnectionJudge:
        owed = self._owed.of(name)
        connection = ConnectionJudge(
            self._plan, self._surface, owed, self._rows, self._book, self._trace
        )
        self._connections[name] = connection
        connection.mark_setup(active=self._setup)
        return connection

    def feed_mark(self, mark: Mark[MarkBody]) -> None:
        """Take a mark; frames within a set-up step give no witness.

        A mark that names a connection is about that one. Another is about the only connection
        there is, and with several about none of them in particular: their rules are told that they
        do not get it. A connection that the harness
        ended (`closed`) is judged on what came, not on what did not.
        """
        self._owed.feed_mark(mark)
        named = mark.body.about
        if isinstance(mark.body, Setup):
            self._setup = mark.body.active
            for connection in self._connections.values():
                connection.mark_setup(active=self._setup)
        elif isinstance(mark.body, Closed):
            ended = self._connections.get(mark.body.connection)
            if ended is not None:
                ended.closed = True
        elif named is not None and named not in self._connections:
            self._begin(named)
        still_open = self._open()
        for name, connection in still_open.items():
            if len(still_open) == 1 or name == named:
                connection.feed_mark(mark, setup=self._setup)
            elif named is None:
                connection.miss(mark)

    def _open(self) -> dict[str, ConnectionJudge]:
        """The connections that the harness has not ended."""
        return {name: one for name, one in self._connections.items() if not one.closed}

    @property
    def owed(self) -> list[Any]:
        """The ledger of each connection that the harness has not ended."""
        return [connection.owed for connection in self._open().values()]

    def fresh(self) -> list[Row]:
        """The violations found since this was asked last, for who shows them as they come."""
        found, self._rows.fresh = self._rows.fresh, []
        return found

    def finish(self, end: End) -> list[Row]:
        """Judge what never came (only when QUIESCENT) and give all rows."""
        if end is End.QUIESCENT:
            for connection in self._open().values():
                connection.finish()
        return self._rows.rows(self._plan.places)


def judge(book: Book, trace: Trace, rules: Iterable[type[Monitor]]) -> list[Row]:
    """Judge a stored trace: the same monitors, fed from the file."""
    return judged(book, trace, rules).finish(trace.end)


def judged(book: Book, trace: Trace, rules: Iterable[type[Monitor]]) -> Judge:
    """A judge that has seen all frames and marks of a trace, and not its end."""
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
