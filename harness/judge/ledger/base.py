"""The base class of observers, which report a server's choices at open points.

An observer gives no verdict. It gets each frame that it listens to once, in order, and yields the
choices that it sees.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from harness.judge.ledger.facts import Facts
from harness.protocol.spec.book import Book
from harness.trace.frame import Frame
from harness.trace.surfaces import SESSION
from harness.trace.trace import Trace
from harness.trace.views import Conversation


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice of a server at a point that the specification leaves open.

    `point` is the id of a row of unspecified.yaml. `value` is a short text that is the same
    whenever the server does the same, so it holds no id, no time and no path. `situation` names the
    situation if a point has several, such as a method; a server can choose differently in each.
    """

    point: str
    value: str
    frame: Frame
    situation: str = ""


Choices = Iterable[Choice] | None


class Scene:
    """The trace so far, as observers see it.

    `view` is the surface's view of the connection of the current frame, with that frame in it;
    `views` has the views of all connections. `conversation` is the view in a session. `facts` are
    those of a session on all connections, without the current frame.
    """

    def __init__(self, book: Book, trace: Trace) -> None:
        self.book = book
        self.trace = trace
        self.facts = Facts()
        self.view: Any = Conversation()
        self.views: dict[str, Any] = {}

    @property
    def conversation(self) -> Conversation:
        """The view of the current frame's connection; only in a session."""
        view: Conversation = self.view
        return view

    @property
    def scenario(self) -> str:
        """The id of the scenario that was played."""
        return self.trace.header.scenario

    def request_of(self, answer: Frame) -> Frame | None:
        """Return the request of an answer on the current connection, None if it has none."""
        return self.conversation.request_of(answer)


class Observer:
    """An observer of one trace, with all its connections, that reports choices at some points.

    It sees only traces of its surface.
    """

    points: ClassVar[tuple[str, ...]]
    surface: ClassVar[str] = SESSION

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.begin()

    def begin(self) -> None:
        """Set up the observer's own state; called once, before any frame."""

    def finish(self) -> Choices:
        """Return the choices that only the end of the trace shows; called once."""
        return None


_OBSERVERS: list[type[Observer]] = []

Kind = TypeVar("Kind", bound=type[Observer])


def observes(*points: str, surface: str = SESSION) -> Callable[[Kind], Kind]:
    """Register an observer of these points, on traces of one surface."""

    def register(observer: Kind) -> Kind:
        observer.points = points
        observer.surface = surface
        _OBSERVERS.append(observer)
        return observer

    return register


def registered_observers() -> tuple[type[Observer], ...]:
    """Return the observers whose modules have been imported."""
    return tuple(_OBSERVERS)
