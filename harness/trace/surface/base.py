"""The interface of a surface: a way to talk to an agent, as the judge sees it.

A surface classifies lines, gives the topics that rules listen to, the view of a conversation so
far, and the open obligations. The surfaces are `session` (JSON-RPC over a connection), `exec` (the
events of one process), `command` (runs of `agent mcp`) and `sdk` (calls of an SDK).

Frames are ordered within a connection, which is a connection to a server, or one process.
"""

from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

from harness.protocol.spec.book import Book
from harness.trace.frame import Direction, Frame, Kind
from harness.trace.marks import MarkBody
from harness.trace.trace import Mark

# A topic that a rule can listen to: a family and a member, such as ("kind", "error"). Each
# surface has its own families; all have ("mark", kind).
Topic = tuple[str, str]
Topics = tuple[Topic, ...]


class View(Protocol):
    """The frames of one connection so far. It names the subjects of findings."""

    def feed(self, frame: Frame) -> None:
        """Add one frame to the view, before any rule sees it."""
        ...


class Ledger(Protocol):
    """Open obligations on one connection."""

    def feed(self, frame: Frame) -> None:
        """Update the ledger with one frame, before any rule sees it."""
        ...

    def feed_mark(self, mark: Mark[MarkBody]) -> None:
        """Update the ledger with one mark, before any rule sees it."""
        ...


V = TypeVar("V", bound=View)
L = TypeVar("L", bound=Ledger)
CL = TypeVar("CL", bound=Ledger, covariant=True)


class Ledgers(Protocol[CL]):
    """Open obligations on all connections of a trace, a ledger for each."""

    def ledger_of(self, connection: str) -> CL:
        """Return the ledger of a connection, empty at first."""
        ...

    def feed(self, frame: Frame) -> None:
        """Update the ledgers with one frame, before any rule sees it."""
        ...

    def feed_mark(self, mark: Mark[MarkBody]) -> None:
        """Update the ledgers with one mark, before any rule sees it."""
        ...

    def has_ambiguous_id(self, frames: Iterable[Frame], sender: Direction) -> bool:
        """Return whether `sender` reused the id of one of these messages in an open request."""
        ...


class SeparateLedgers(Generic[L]):
    """The ledgers of independent connections."""

    def __init__(self, new: Callable[[], L]) -> None:
        self._new = new
        self._ledgers: dict[str, L] = {}

    def ledger_of(self, connection: str) -> L:
        """Return the ledger of a connection, created on first use."""
        ledger = self._ledgers.get(connection)
        if ledger is None:
            ledger = self._ledgers[connection] = self._new()
        return ledger

    def feed(self, frame: Frame) -> None:
        """Update the ledger of the frame's connection."""
        self.ledger_of(frame.connection).feed(frame)

    def feed_mark(self, mark: Mark[MarkBody]) -> None:
        """Update all ledgers with one mark."""
        for ledger in self._ledgers.values():
            ledger.feed_mark(mark)

    def has_ambiguous_id(self, frames: Iterable[Frame], sender: Direction) -> bool:
        """Return False: the lines of these connections answer no request by its id."""
        return False


class Surface(Protocol[V, CL]):
    """One way to talk to an agent. State is in its views and ledgers, not in the surface."""

    @property
    def name(self) -> str:
        """The name of the surface in traces and rules."""
        ...

    def classify(self, value: Any, direction: Direction) -> Kind:
        """Return the kind of a line, by its JSON (`MISSING` if it has none) and direction."""
        ...

    def view(self) -> V:
        """Return the empty view of a new connection."""
        ...

    def ledgers(self) -> Ledgers[CL]:
        """Return the ledgers of a new trace."""
        ...

    def topics_of(self, frame: Frame, view: V, book: Book) -> Topics:
        """Return the topics of a frame; its view has taken it in already.

        Similar frames have equal topics: the judge caches their listeners.
        """
        ...
