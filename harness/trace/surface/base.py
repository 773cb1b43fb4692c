"""A way to talk to an agent, as far as the judge must know it.

A surface says what kind of message a line is, which rules want to see it, what a conversation looks
like so far, and what is still owed. Each kind of conversation has one: `session` (JSON-RPC over a
connection), `exec` (the events that one process writes).

A connection is whatever has an order of its own: a connection to a server, or one process.
"""

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from harness.protocol.spec.book import Book
from harness.trace.frame import Direction, Frame, Kind
from harness.trace.marks import MarkBody
from harness.trace.trace import Mark

# What a rule can listen to: a family of topics, and one of them, such as ("kind", "error"). Each
# surface has families of its own; ("mark", kind) is every surface's.
Topic = tuple[str, str]
Topics = tuple[Topic, ...]


class View(Protocol):
    """The frames of one connection so far. It names the subjects of findings."""

    def feed(self, frame: Frame) -> None:
        """Take one frame in, before any rule sees it."""
        ...


class Ledger(Protocol):
    """Open obligations on one connection."""

    def feed(self, frame: Frame) -> None:
        """Take one frame in, before any rule sees it."""
        ...

    def feed_mark(self, mark: Mark[MarkBody]) -> None:
        """Take one mark in, before any rule sees it."""
        ...


V = TypeVar("V", bound=View)
L = TypeVar("L", bound=Ledger)
CL = TypeVar("CL", bound=Ledger, covariant=True)


class Ledgers(Protocol[CL]):
    """Open obligations on all connections of a trace, a ledger for each."""

    def of(self, connection: str) -> CL:
        """The ledger of a connection, made when first asked for: nothing is owed yet."""
        ...

    def feed(self, frame: Frame) -> None:
        """Take one frame in, before any rule sees it."""
        ...

    def feed_mark(self, mark: Mark[MarkBody]) -> None:
        """Take one mark in, before any rule sees it."""
        ...


class SeparateLedgers(Generic[L]):
    """The ledgers of connections that have nothing to do with each other."""

    def __init__(self, new: Callable[[], L]) -> None:
        self._new = new
        self._ledgers: dict[str, L] = {}

    def of(self, connection: str) -> L:
        """The ledger of a connection, made when first asked for."""
        ledger = self._ledgers.get(connection)
        if ledger is None:
            ledger = self._ledgers[connection] = self._new()
        return ledger

    def feed(self, frame: Frame) -> None:
        """Take one frame in."""
        self.of(frame.connection).feed(frame)

    def feed_mark(self, mark: Mark[MarkBody]) -> None:
        """Take one mark in."""
        for ledger in self._ledgers.values():
            ledger.feed_mark(mark)


class Surface(Protocol[V, CL]):
    """One way to talk to an agent. A surface has no state: views and ledgers have it."""

    @property
    def name(self) -> str:
        """Return its name in traces and rules."""
        ...

    def classify(self, value: Any, direction: Direction) -> Kind:
        """The kind of a line: its parsed JSON (`MISSING` where it is none), and its direction."""
        ...

    def view(self) -> V:
        """The empty view of a new connection."""
        ...

    def ledgers(self) -> Ledgers[CL]:
        """The ledgers of a new trace."""
        ...

    def topics_of(self, frame: Frame, view: V, book: Book) -> Topics:
        """Return the topics of a frame; its view has taken it in already.

        Frames that are alike give equal topics: the judge remembers who listens to them.
        """
        ...
