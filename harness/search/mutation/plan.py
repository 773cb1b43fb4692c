"""Places where each fault can act: each fault, put into the traces of a run without faults."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.faults.base import Fault, StoredOnly
from harness.faults.mutation import Outcome, mutate
from harness.faults.stored import apply
from harness.judge.rules.discovery import all_rules
from harness.protocol.spec.book import Book
from harness.trace.frame import Direction
from harness.trace.surfaces import SESSION, surface_of
from harness.trace.trace import Trace

# In so many scenarios a fault is played live until one kills it.
MAX_PLAYS = 4
# Of the scenarios in which a rule misses a fault on the stored trace so many are looked at.
MAX_MISSED_SCENARIOS = 6


@dataclass(frozen=True, slots=True)
class Place:
    """A scenario in which a fault can act, and what came of it on the trace without it.

    `by_client`: the fault changes what the client says, so that no server can be its cause.
    """

    scenario: str
    outcome: Outcome
    seconds: float
    by_client: bool = False

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> "Place":
        """A place that another process told as JSON."""
        return cls(
            scenario=str(told["scenario"]),
            outcome=Outcome(told["outcome"]),
            seconds=float(told["seconds"]),
            by_client=bool(told["by_client"]),
        )


@dataclass(slots=True)
class Plan:
    """Known places of each fault; `add` takes the traces in."""

    faults: Mapping[str, Fault]
    places: dict[str, list[Place]] = field(default_factory=lambda: defaultdict(list))

    def open_on(self, surface: str) -> list[Fault]:
        """The faults of a surface for which scenarios are still looked for."""
        rules = all_rules()
        return [
            fault
            for fault in self.faults.values()
            if rules[fault.rule].surface == surface and not self._enough(fault)
        ]

    def _enough(self, fault: Fault) -> bool:
        counts = Counter(place.outcome for place in self.places[fault.id])
        enough = 1 if put_into_traces(fault) else MAX_PLAYS
        return counts[Outcome.KILLED] >= enough

    def add(self, found: Iterable[tuple[str, Place]]) -> None:
        """Take in what one trace showed."""
        for fault, place in found:
            self.places[fault].append(place)

    def killed_in(self, fault: Fault) -> list[str]:
        """The scenarios in whose traces the rule sees it, the quickest first."""
        places = [place for place in self.places[fault.id] if place.outcome is Outcome.KILLED]
        return [place.scenario for place in sorted(places, key=lambda place: place.seconds)]

    def best(self, fault: Fault) -> list[Place]:
        """Return the places to try the fault, the most promising and quickest first."""
        order = (Outcome.KILLED, Outcome.SURVIVED, Outcome.MASKED)
        places = sorted(
            self.places[fault.id], key=lambda place: (order.index(place.outcome), place.seconds)
        )
        killed = [place for place in places if place.outcome is Outcome.KILLED][:MAX_PLAYS]
        return killed or places[:MAX_MISSED_SCENARIOS]


def put_into_traces(fault: Fault) -> bool:
    """Return whether a fault is put into the trace of a clean play, and not played live.

    Some need the whole trace, marks or files. Beside the session nobody answers to what a program
    says while it runs: its trace with a fault in it is what a faulty program would have left.
    """
    of_session = all_rules()[fault.rule].surface == SESSION
    return isinstance(fault.change, StoredOnly) or not of_session


def places_on(
    book: Book,
    trace: Trace,
    faults: Sequence[Fault],
    known: Collection[str],
    seconds: float,
) -> list[tuple[str, Place]]:
    """Return the faults that can act in this trace's scenario, and the rule's verdict on each."""
    name = trace.header.scenario
    by_id = {fault.id: fault for fault in faults}
    found_places: list[tuple[str, Place]] = []
    for mutation in mutate(book, trace, faults, known, only_own=True):
        if mutation.outcome is not Outcome.NOT_APPLIED:
            by_client = changes_client(by_id[mutation.fault_id], trace)
            found_places.append(
                (mutation.fault_id, Place(name, mutation.outcome, seconds, by_client))
            )
    return found_places


def changes_client(fault: Fault, trace: Trace) -> bool:
    """Return whether the fault changes what the client says in a session.

    A server could not do that.
    """
    if put_into_traces(fault) or surface_of(trace.header.scenario) != SESSION:
        return False
    return _said(apply(fault, trace)) != _said(trace)


def _said(trace: Trace) -> list[bytes]:
    """Return the client's messages, whatever became of their order."""
    return sorted(frame.raw for frame in trace.frames if frame.direction is Direction.TO_TARGET)
