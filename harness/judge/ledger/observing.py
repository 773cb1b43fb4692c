"""Running the observers over a trace: every choice in it, bounded.

Frames are dispatched by topic, so that each costs only what the observers interested in it cost.
"""

import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

from harness.judge.ledger.base import Choice, Choices, Observer, Scene
from harness.judge.ledger.discovery import all_observers
from harness.protocol.spec.book import Book
from harness.trace.frame import Frame
from harness.trace.marks import MarkBody
from harness.trace.surface.base import Topic, Topics
from harness.trace.surface.known import surface_named
from harness.trace.surfaces import SESSION
from harness.trace.trace import Mark, Trace

# Of one point in one situation so many values are kept of a trace; the others are counted as one.
MAX_VALUES = 40
OTHERS = "other values"
# A target may make up names without end; who listens is remembered for this many sets of topics.
MAX_TOPICS = 500
BROKEN = "not read: the observer broke"

Handler = Callable[[Any, Any], Choices]
Bound = tuple[int, Handler]


@dataclass(slots=True)
class Sighting:
    """A value at a point in one trace: how often, and the number of the first frame with it."""

    point: str
    about: str
    value: str
    count: int
    frame: int


@dataclass(slots=True)
class _Plan:
    observers: tuple[type[Observer], ...]
    topics: dict[Topic, list[Bound]]
    remembered: dict[Topics, list[Bound]] = field(default_factory=dict[Topics, list[Bound]])

    def bound(self, topics: Topics) -> list[Bound]:
        found = self.remembered.get(topics)
        if found is None:
            found = [bound for topic in topics for bound in self.topics.get(topic, ())]
            if len(self.remembered) < MAX_TOPICS:
                self.remembered[topics] = found
        return found


@cache
def _plan(surface: str) -> _Plan:
    observers = tuple(one for one in all_observers() if one.surface == surface)
    topics: dict[Topic, list[Bound]] = defaultdict(list)
    for place, observer in enumerate(observers):
        for name in dir(observer):
            handler = getattr(observer, name, None)
            for topic in getattr(handler, "topics", ()):
                topics[topic].append((place, cast("Handler", handler)))
    return _Plan(observers, dict(topics))


class Observing:
    """Observes one trace, fed frame by frame. Raises `ValueError` for an unknown surface."""

    def __init__(self, book: Book, trace: Trace) -> None:
        self._plan = _plan(trace.header.surface)
        self._surface = surface_named(trace.header.surface)
        self._scene = Scene(book, trace)
        self._observers = [observer(self._scene) for observer in self._plan.observers]
        self._seen: dict[tuple[str, str, str], Sighting] = {}
        self._values: dict[tuple[str, str], int] = defaultdict(int)
        self.broken: list[str] = []

    @property
    def view(self) -> Any:
        """The surface's view of the connection of the last frame."""
        return self._scene.view

    def feed(self, frame: Frame) -> Frame | None:
        """Observe one frame; gives the request of the session that it answers."""
        scene = self._scene
        view = scene.views.get(frame.connection)
        if view is None:
            view = scene.views[frame.connection] = self._surface.view()
        view.feed(frame)
        scene.view = view
        for place, handler in self._plan.bound(self._surface.topics_of(frame, view, scene.book)):
            self._hand(place, handler, frame)
        if self._surface.name != SESSION:
            return None
        asked = scene.asked(frame)
        scene.facts.feed(frame, asked)
        return asked

    def feed_mark(self, mark: Mark[MarkBody]) -> None:
        """Observe one mark."""
        for place, handler in self._plan.topics.get(("mark", mark.kind), ()):
            self._hand(place, handler, mark)
        self._scene.facts.feed_mark(mark.body)

    def _hand(self, place: int, handler: Handler, what: Any) -> None:
        try:
            choices = handler(self._observers[place], what)
            if choices is not None:
                self._keep(choices)
        except Exception:
            self._broke(place)

    def _broke(self, place: int) -> None:
        """An observer that raises must show: a point would else look as if nothing were chosen."""
        self.broken.append(traceback.format_exc(limit=-3))
        for point in self._plan.observers[place].points:
            self._count(point, "", BROKEN, -1)

    def _keep(self, choices: Iterable[Choice]) -> None:
        for choice in choices:
            self._count(choice.point, choice.about, choice.value, choice.frame.seq)

    def _count(self, point: str, about: str, value: str, frame: int) -> None:
        known = self._seen.get((point, about, value))
        if known is None:
            if self._values[point, about] >= MAX_VALUES:
                value = OTHERS
            self._values[point, about] += 1
            known = self._seen.setdefault(
                (point, about, value), Sighting(point, about, value, 0, frame)
            )
        known.count += 1

    def finish(self) -> list[Sighting]:
        """Return all sightings, with those that show only at the end."""
        for place, observer in enumerate(self._observers):
            try:
                self._keep(observer.finish() or ())
            except Exception:
                self._broke(place)
        return list(self._seen.values())
