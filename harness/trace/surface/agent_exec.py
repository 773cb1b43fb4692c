"""The surface of `agent exec`: a program that writes events, one turn per process.

Its lines on standard output are JSON objects with a `type`; it reads its standard input as text and
answers nothing. So a connection is one process, there are no answers to correlate, and a turn is
known by its place in the stream. The start and the end of the program are marks that name the
connection (trace.marks: ProgramStarted, ProgramErrors, ProgramEnded).
"""

from dataclasses import dataclass, field
from typing import Any

from harness.protocol.spec.book import Book
from harness.protocol.values import obj, text
from harness.trace.frame import Direction, Frame, Kind
from harness.trace.marks import MarkBody
from harness.trace.surface.base import SeparateLedgers, Topics
from harness.trace.trace import Mark

TURN_ENDS = ("turn.completed", "turn.failed")
ITEM_EVENTS = ("item.started", "item.updated", "item.completed")
FATAL = "error"


@dataclass(slots=True, eq=False)
class StreamTurn:
    """One turn of a stream: its start event and its end events."""

    number: int
    start: Frame
    ends: list[Frame] = field(default_factory=list[Frame])

    @property
    def subject(self) -> str:
        """The name of the turn in findings."""
        return f"turn {self.number} of {self.start.connection}"


class Stream:
    """The events of one process so far.

    `stray` are ends before any turn started, `fatal` the `error` events, `items` the events of
    items.
    """

    def __init__(self) -> None:
        self.threads: list[Frame] = []
        self.turns: list[StreamTurn] = []
        self.stray: list[Frame] = []
        self.fatal: list[Frame] = []
        self.items: list[Frame] = []

    def feed(self, frame: Frame) -> None:
        """Add one frame to the view."""
        kind = event_type(frame)
        if kind == "thread.started":
            self.threads.append(frame)
        elif kind == "turn.started":
            self.turns.append(StreamTurn(len(self.turns) + 1, frame))
        elif kind in TURN_ENDS:
            (self.turns[-1].ends if self.turns else self.stray).append(frame)
        elif kind == FATAL:
            self.fatal.append(frame)
        elif kind in ITEM_EVENTS:
            self.items.append(frame)


class StreamLedger:
    """Open obligations of a process: an end for each turn that it started, or a fatal error."""

    def __init__(self) -> None:
        self._stream = Stream()

    def feed(self, frame: Frame) -> None:
        """Update the ledger with one frame."""
        self._stream.feed(frame)

    def feed_mark(self, mark: Mark[MarkBody]) -> None:
        """Do nothing: no mark meets an obligation."""

    def open_turns(self) -> list[StreamTurn]:
        """Return the open turns, oldest first; a fatal error ends all before it."""
        last = max((frame.seq for frame in self._stream.fatal), default=-1)
        return [turn for turn in self._stream.turns if not turn.ends and turn.start.seq > last]


class Exec:
    """The surface `exec`. Subjects are turns of a process, and processes (its connections).

    Topics: ("event", type) for events, ("kind", kind) for all lines and input.
    """

    name = "exec"

    def classify(self, value: Any, direction: Direction) -> Kind:
        """Return INPUT for text of the harness, EVENT for a line with a type, else MALFORMED."""
        if direction is Direction.TO_TARGET:
            return Kind.INPUT
        return Kind.EVENT if isinstance(obj(value).get("type"), str) else Kind.MALFORMED

    def view(self) -> Stream:
        """Return an empty view of the events of one process."""
        return Stream()

    def ledgers(self) -> SeparateLedgers[StreamLedger]:
        """Return empty ledgers of the turns that must end, one per process."""
        return SeparateLedgers(StreamLedger)

    def topics_of(self, frame: Frame, view: Stream, book: Book) -> Topics:
        """Return the topics of a frame: its kind, and the type of an event."""
        kind = ("kind", str(frame.kind))
        return (kind, ("event", event_type(frame))) if frame.kind is Kind.EVENT else (kind,)


def event_type(frame: Frame) -> str:
    """Return the type of an event, "" for any other frame."""
    return text(obj(frame.json).get("type")) if frame.kind is Kind.EVENT else ""
