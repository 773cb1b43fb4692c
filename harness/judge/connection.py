"""The judge of one connection of a trace, with its view, its open obligations and its monitors.

Frames are dispatched by topic, so that only the rules that listen to a frame spend time on it.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, cast

from harness.judge.base import Handler, Monitor, judges_surface
from harness.judge.rows import TraceRows
from harness.protocol.spec.book import Book
from harness.trace.frame import Frame
from harness.trace.marks import MarkBody
from harness.trace.surface.base import Ledger, Surface, Topic, Topics
from harness.trace.trace import Mark, Trace

# A target may invent any number of names; handlers are cached for this many sets of topics.
MAX_TOPIC_SETS = 500

# The index of a rule in the plan, and one of its handlers.
BoundHandler = tuple[int, Handler]


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
    """The handlers of some rules by topic, computed once for all connections and traces.

    `indexes` are the positions of the rules by their ids, `finishers` those of the rules that judge
    missing messages.
    """

    rules: tuple[type[Monitor], ...]
    indexes: dict[str, int]
    topics: dict[Topic, list[BoundHandler]]
    finishers: list[int]
    handlers_by_topics: dict[Topics, list[BoundHandler]] = field(
        default_factory=dict[Topics, list[BoundHandler]]
    )

    def handlers_of(self, topics: Topics) -> list[BoundHandler]:
        """Return the handlers of any of these topics; cached for each set of topics."""
        handlers = self.handlers_by_topics.get(topics)
        if handlers is None:
            handlers = [bound for topic in topics for bound in self.topics.get(topic, ())]
            if len(self.handlers_by_topics) < MAX_TOPIC_SETS:
                self.handlers_by_topics[topics] = handlers
        return handlers


@lru_cache(maxsize=32)
def plan_of(rules: tuple[type[Monitor], ...], surface: str) -> Plan:
    """Return the plan of the rules that judge a surface; cached."""
    rules = tuple(rule for rule in rules if judges_surface(rule, surface))
    topics: dict[Topic, list[BoundHandler]] = defaultdict(list)
    for index, rule in enumerate(rules):
        for topic, handler in _handlers_of(rule):
            topics[topic].append((index, handler))
    finishers = [index for index, rule in enumerate(rules) if rule.finish is not Monitor.finish]
    indexes = {rule.id: index for index, rule in enumerate(rules)}
    return Plan(rules, indexes, dict(topics), finishers)


class ConnectionJudge:
    """Judge of one connection.

    `ledger` has its open obligations and is fed by the caller; `rows` collects the outcomes.
    `closed` is set once the harness has ended the connection: missing messages are not judged then.
    """

    def __init__(
        self,
        plan: Plan,
        surface: Surface[Any, Any],
        ledger: Ledger,
        rows: TraceRows,
        book: Book,
        trace: Trace,
    ) -> None:
        self.ledger: Any = ledger
        self.closed = False
        self._plan = plan
        self._topics_of = surface.topics_of
        self._rows = rows
        self._book = book
        self._trace = trace
        self._setup = False
        self._view = surface.view()
        # Made when first needed: most rules get no frame of a short trace.
        self._monitors: list[Monitor | None] = [None] * len(plan.rules)

    def _make_monitor(self, index: int) -> Monitor:
        """Return a new monitor of a rule, which has seen no frame of the trace so far."""
        monitor = self._plan.rules[index](self._book, self._view, self.ledger, self._trace)
        monitor.setup = self._setup
        self._monitors[index] = monitor
        return monitor

    def mark_setup(self, *, active: bool) -> None:
        """Tell all monitors whether a set-up step is being played."""
        self._setup = active
        for monitor in self._monitors:
            if monitor is not None:
                monitor.setup = active

    def feed(self, frame: Frame, *, setup: bool) -> None:
        """Judge one frame, after the ledger has got it; with `setup` no witness counts."""
        self._view.feed(frame)
        crashed, monitors = self._rows.crashed_rules, self._monitors
        for index, handler in self._plan.handlers_of(
            self._topics_of(frame, self._view, self._book)
        ):
            monitor = monitors[index] or self._make_monitor(index)
            if crashed and monitor.id in crashed:
                continue
            try:
                outcomes = handler(monitor, frame)
                if outcomes is not None:
                    self._rows.add_outcomes(monitor, outcomes, setup=setup)
            except Exception:
                self._rows.record_crash(monitor, frame)

    def feed_mark(self, mark: Mark[MarkBody], *, setup: bool) -> None:
        """Judge one mark that is certain to concern this connection; with `setup` as `feed`."""
        for index, handler in self._plan.topics.get(("mark", mark.kind), ()):
            monitor = self._monitors[index] or self._make_monitor(index)
            if monitor.id in self._rows.crashed_rules:
                continue
            try:
                self._rows.add_outcomes(monitor, handler(monitor, mark) or (), setup=setup)
            except Exception:
                self._rows.record_crash(monitor, None)

    def feed_missed_mark(self, mark: Mark[MarkBody]) -> None:
        """Pass a mark that may be of another connection to the monitors that listen to it."""
        for index, _ in self._plan.topics.get(("mark", mark.kind), ()):
            monitor = self._monitors[index] or self._make_monitor(index)
            if monitor.id in self._rows.crashed_rules:
                continue
            try:
                monitor.on_missed_mark(mark)
            except Exception:
                self._rows.record_crash(monitor, None)

    def finish(self) -> None:
        """Let the rules judge missing messages; call it only at the end of a QUIESCENT trace."""
        for index in self._plan.finishers:
            monitor = self._monitors[index] or self._make_monitor(index)
            if monitor.id in self._rows.crashed_rules:
                continue
            try:
                self._rows.add_outcomes(monitor, monitor.finish() or (), setup=False)
            except Exception:
                self._rows.record_crash(monitor, None)
