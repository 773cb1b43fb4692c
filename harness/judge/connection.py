"""Judging one connection of a trace: its view, what is owed on it, and its monitors.

Frames are dispatched by topic, so that each costs only what the rules interested in it cost.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, cast

from harness.judge.base import Handler, Monitor, judges
from harness.judge.rows import TraceRows
from harness.protocol.spec.book import Book
from harness.trace.frame import Frame
from harness.trace.marks import MarkBody
from harness.trace.surface.base import Ledger, Surface, Topic, Topics
from harness.trace.trace import Mark, Trace

# A target may make up names without end; who listens is remembered for this many sets of topics.
MAX_TOPICS = 500

# A rule, by its place in the plan, and one of its handlers.
Bound = tuple[int, Handler]


@cache
def _handlers_of(rule: type[Monitor]) -> tuple[tuple[Topic, Handler], ...]:
    """Return the topics and handlers of a rule."""
    return tuple(
        (topic, cast("Handler", handler))
        for handler in (getattr(rule, name, None) for name in dir(rule))
        for topic in getattr(handler, "topics", ())
    )


@dataclass(slots=True)
class Plan:
    """The topics of some rules; made once, since each connection of each trace needs them.

    `places` are those of the rules by their ids, `finishing` those of them that judge what never
    came.
    """

    rules: tuple[type[Monitor], ...]
    places: dict[str, int]
    topics: dict[Topic, list[Bound]]
    finishing: list[int]
    remembered: dict[Topics, list[Bound]] = field(default_factory=dict[Topics, list[Bound]])

    def bound(self, topics: Topics) -> list[Bound]:
        """Whoever wants any of these; looked up once for the same topics."""
        found = self.remembered.get(topics)
        if found is None:
            found = [bound for topic in topics for bound in self.topics.get(topic, ())]
            if len(self.remembered) < MAX_TOPICS:
                self.remembered[topics] = found
        return found


@lru_cache(maxsize=32)
def plan_of(rules: tuple[type[Monitor], ...], surface: str) -> Plan:
    """The plan of those rules that judge a surface; that of the same rules is made once."""
    rules = tuple(rule for rule in rules if judges(rule, surface))
    topics: dict[Topic, list[Bound]] = defaultdict(list)
    for place, rule in enumerate(rules):
        for topic, handler in _handlers_of(rule):
            topics[topic].append((place, handler))
    finishing = [place for place, rule in enumerate(rules) if rule.finish is not Monitor.finish]
    places = {rule.id: place for place, rule in enumerate(rules)}
    return Plan(rules, places, dict(topics), finishing)


class ConnectionJudge:
    """Judges one connection.

    `owed` is its ledger, which others feed; `rows` takes what is found. `closed` is set once the
    harness has ended the connection: what never came is not judged then.
    """

    def __init__(
        self,
        plan: Plan,
        surface: Surface[Any, Any],
        owed: Ledger,
        rows: TraceRows,
        book: Book,
        trace: Trace,
    ) -> None:
        self.owed: Any = owed
        self.closed = False
        self._plan = plan
        self._topics_of = surface.topics_of
        self._rows = rows
        self._book = book
        self._trace = trace
        self._setup = False
        self._view = surface.view()
        # Made when first needed: most rules hear nothing of a short trace.
        self._monitors: list[Monitor | None] = [None] * len(plan.rules)

    def _made(self, place: int) -> Monitor:
        """Make the monitor of a rule, which has heard nothing so far."""
        monitor = self._plan.rules[place](self._book, self._view, self.owed, self._trace)
        monitor.setup = self._setup
        self._monitors[place] = monitor
        return monitor

    def mark_setup(self, *, active: bool) -> None:
        """Say whether a set-up step is being played."""
        self._setup = active
        for monitor in self._monitors:
            if monitor is not None:
                monitor.setup = active

    def feed(self, frame: Frame, *, setup: bool) -> None:
        """Judge one frame, which the ledger has taken in; in a set-up step it gives no witness."""
        self._view.feed(frame)
        broken, monitors = self._rows.broken, self._monitors
        for place, handler in self._plan.bound(self._topics_of(frame, self._view, self._book)):
            monitor = monitors[place] or self._made(place)
            if broken and monitor.id in broken:
                continue
            try:
                outcomes = handler(monitor, frame)
                if outcomes is not None:
                    self._rows.keep(monitor, outcomes, setup=setup)
            except Exception:
                self._rows.broke(monitor, frame)

    def feed_mark(self, mark: Mark[MarkBody], *, setup: bool) -> None:
        """Judge one mark, as a frame."""
        for place, handler in self._plan.topics.get(("mark", mark.kind), ()):
            monitor = self._monitors[place] or self._made(place)
            if monitor.id in self._rows.broken:
                continue
            try:
                self._rows.keep(monitor, handler(monitor, mark) or (), setup=setup)
            except Exception:
                self._rows.broke(monitor, None)

    def miss(self, mark: Mark[MarkBody]) -> None:
        """Tell the monitors that listen to such marks that one could be of another connection."""
        for place, _ in self._plan.topics.get(("mark", mark.kind), ()):
            monitor = self._monitors[place] or self._made(place)
            if monitor.id in self._rows.broken:
                continue
            try:
                monitor.misses(mark)
            except Exception:
                self._rows.broke(monitor, None)

    def finish(self) -> None:
        """Judge what never came."""
        for place in self._plan.finishing:
            monitor = self._monitors[place] or self._made(place)
            if monitor.id in self._rows.broken:
                continue
            try:
                self._rows.keep(monitor, monitor.finish() or (), setup=False)
            except Exception:
                self._rows.broke(monitor, None)
