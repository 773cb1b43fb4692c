"""The run of all observers over a trace, which gives every choice in it, up to limits.

Observers are found by walking the package `observers`. Frames are dispatched by topic, so that each
reaches only the observers that listen to it.
"""

import importlib
import pkgutil
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

from harness.judge.ledger import observers
from harness.judge.ledger.base import Choice, Choices, Observer, Scene, registered_observers
from harness.protocol.escapes import visible
from harness.protocol.spec.book import Book
from harness.trace.frame import Frame
from harness.trace.marks import MarkBody
from harness.trace.surface.base import Topic, Topics
from harness.trace.surface.registry import surface_named
from harness.trace.surfaces import SESSION
from harness.trace.trace import Mark, Trace


@cache
def all_observers() -> tuple[type[Observer], ...]:
    """Return all observers, sorted by module and name."""
    for module in sorted(info.name for info in pkgutil.iter_modules(observers.__path__)):
        importlib.import_module(f"{observers.__name__}.{module}")
    return tuple(
        sorted(
            registered_observers(),
            key=lambda observer: (observer.__module__, observer.__qualname__),
        )
    )


# The number of different values kept of one point in one situation; further ones become `OTHERS`.
MAX_VALUES = 40
_MAX_TEXT_CHARACTERS = 1000
OTHERS = "other values"
# Listeners are cached for at most this many sets of topics: names may be invented without end.
MAX_TOPICS = 500
BROKEN = "not read: the observer broke"

Handler = Callable[[Any, Any], Choices]
Bound = tuple[int, Handler]


@dataclass(slots=True)
class Sighting:
    """A value at a point in one trace: its count, and the seq of its first frame, -1 for none."""

    point: str
    situation: str
    value: str
    count: int
    frame: int


@dataclass(slots=True)
class _Plan:
    observers: tuple[type[Observer], ...]
    topics: dict[Topic, list[Bound]]
    remembered: dict[Topics, list[Bound]] = field(default_factory=dict[Topics, list[Bound]])

    def bound(self, topics: Topics) -> list[Bound]:
        handlers = self.remembered.get(topics)
        if handlers is None:
            handlers = [bound for topic in topics for bound in self.topics.get(topic, ())]
            if len(self.remembered) < MAX_TOPICS:
                self.remembered[topics] = handlers
        return handlers


@cache
def _plan(surface: str) -> _Plan:
    observers = tuple(name for name in all_observers() if name.surface == surface)
    topics: dict[Topic, list[Bound]] = defaultdict(list)
    for place, observer in enumerate(observers):
        for name in dir(observer):
            handler = getattr(observer, name, None)
            for topic in getattr(handler, "topics", ()):
                topics[topic].append((place, cast("Handler", handler)))
    return _Plan(observers, dict(topics))


class TraceObserver:
    """The observers of one trace. `crashes` are the tracebacks of observers that raised.

    Raises `ValueError` for an unknown surface.
    """

    def __init__(self, book: Book, trace: Trace) -> None:
        self._plan = _plan(trace.header.surface)
        self._surface = surface_named(trace.header.surface)
        self._scene = Scene(book, trace)
        self._observers = [observer(self._scene) for observer in self._plan.observers]
        self._seen: dict[tuple[str, str, str], Sighting] = {}
        self._values: dict[tuple[str, str], int] = defaultdict(int)
        self.crashes: list[str] = []

    @property
    def view(self) -> Any:
        """The surface's view of the connection of the last frame."""
        return self._scene.view

    def feed(self, frame: Frame) -> Frame | None:
        """Observe one frame; return the request that it answers, None except in a session."""
        scene = self._scene
        view = scene.views.get(frame.connection)
        if view is None:
            view = scene.views[frame.connection] = self._surface.view()
        view.feed(frame)
        scene.view = view
        for place, handler in self._plan.bound(self._surface.topics_of(frame, view, scene.book)):
            self._handle(place, handler, frame)
        if self._surface.name != SESSION:
            return None
        request = scene.request_of(frame)
        scene.facts.feed(frame, request)
        return request

    def feed_mark(self, mark: Mark[MarkBody]) -> None:
        """Observe one mark."""
        for place, handler in self._plan.topics.get(("mark", mark.kind), ()):
            self._handle(place, handler, mark)
        self._scene.facts.feed_mark(mark.body)

    def _handle(self, place: int, handler: Handler, event: Any) -> None:
        try:
            choices = handler(self._observers[place], event)
            if choices is not None:
                self._record(choices)
        except Exception:
            self._record_crash(place)

    def _record_crash(self, place: int) -> None:
        """Record the value `BROKEN` at the points of an observer that raised."""
        self.crashes.append(traceback.format_exc(limit=-3))
        for point in self._plan.observers[place].points:
            self._count(point, "", BROKEN, -1)

    def _record(self, choices: Iterable[Choice]) -> None:
        for choice in choices:
            situation, value = (
                visible(text[:_MAX_TEXT_CHARACTERS]) for text in (choice.situation, choice.value)
            )
            self._count(choice.point, situation, value, choice.frame.seq)

    def _count(self, point: str, situation: str, value: str, frame: int) -> None:
        sighting = self._seen.get((point, situation, value))
        if sighting is None:
            if self._values[point, situation] >= MAX_VALUES:
                value = OTHERS
            self._values[point, situation] += 1
            sighting = self._seen.setdefault(
                (point, situation, value), Sighting(point, situation, value, 0, frame)
            )
        sighting.count += 1

    def finish(self) -> list[Sighting]:
        """Let the observers add choices that only the end shows; return all sightings."""
        for place, observer in enumerate(self._observers):
            try:
                self._record(observer.finish() or ())
            except Exception:
                self._record_crash(place)
        return list(self._seen.values())
