"""What an observer is: it says which choice a server made where the text leaves one.

Here: `Choice`, `Scene`, `Observer` and the registry. Not here: any observer, the dispatch
(observing), what a rule is (judge.base, whose decorators observers use to say what they listen to).
An observer fails nobody. It gets each frame that it asked for once, in order, and yields a choice
each time it sees one.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from harness.ledger.facts import Facts
from harness.spec.book import Book
from harness.trace.frame import Frame
from harness.trace.trace import Trace
from harness.trace.views import Conversation


@dataclass(frozen=True, slots=True)
class Choice:
    """What a server did at a point that the text leaves open.

    `point` is the id of a row of unspecified.yaml. `value` is a short word that is the same
    whenever the server does the same: it holds no id, no time and no path. `about` names the
    situation where a point has several, such as a method; a server can choose differently in each.
    """

    point: str
    value: str
    frame: Frame
    about: str = ""


Choices = Iterable[Choice] | None


class Scene:
    """What observers may ask of the trace so far.

    `conversation` is the view of the connection of the frame that is being handled, with that frame
    in it; `facts` are of all connections, without it.
    """

    def __init__(self, book: Book, trace: Trace) -> None:
        self.book = book
        self.trace = trace
        self.facts = Facts()
        self.conversation = Conversation()
        self.conversations: dict[str, Conversation] = {}

    @property
    def scenario(self) -> str:
        """The id of the scenario that was played."""
        return self.trace.header.scenario

    def asked(self, answer: Frame) -> Frame | None:
        """The request that an answer on the current connection belongs to."""
        return self.conversation.request_of(answer)


class Observer:
    """Watches for the choices at some points, in one trace with all its connections."""

    points: ClassVar[tuple[str, ...]]

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.begin()

    def begin(self) -> None:
        """Set up the observer's own state; called once, before any frame."""

    def finish(self) -> Choices:
        """What shows only when the trace is over; called once, however it ended."""
        return None


_OBSERVERS: list[type[Observer]] = []

Kind = TypeVar("Kind", bound=type[Observer])


def observes(*points: str) -> Callable[[Kind], Kind]:
    """Register an observer of these points."""

    def register(observer: Kind) -> Kind:
        observer.points = points
        _OBSERVERS.append(observer)
        return observer

    return register


def registered() -> tuple[type[Observer], ...]:
    """The observers whose modules were imported so far."""
    return tuple(_OBSERVERS)
