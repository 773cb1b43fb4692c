"""Places where each fault can act, found by inserting it into the traces of clean plays."""

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

# Maximum scenarios in which a fault is played live, until one kills it.
MAX_PLAYS = 4
# Maximum scenarios to try if the rule misses the fault in all stored traces.
MAX_MISSED_SCENARIOS = 6


@dataclass(frozen=True, slots=True)
class Place:
    """A scenario in which a fault can act, and the outcome on its clean trace.

    `seconds` is the duration of the clean play. `by_client`: the fault changes the client's
    messages, so no server can cause it.
    """

    scenario: str
    outcome: Outcome
    seconds: float
    by_client: bool = False

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "Place":
        """Return a place from another process's JSON."""
        return cls(
            scenario=str(data["scenario"]),
            outcome=Outcome(data["outcome"]),
            seconds=float(data["seconds"]),
            by_client=bool(data["by_client"]),
        )


@dataclass(slots=True)
class Plan:
    """Known places of each fault, keyed by fault id."""

    faults: Mapping[str, Fault]
    places: dict[str, list[Place]] = field(default_factory=lambda: defaultdict(list))

    def open_on(self, surface: str) -> list[Fault]:
        """Return the faults of a surface that need more scenarios."""
        rules = all_rules()
        return [
            fault
            for fault in self.faults.values()
            if rules[fault.rule].surface == surface and not self._has_enough(fault)
        ]

    def _has_enough(self, fault: Fault) -> bool:
        counts = Counter(place.outcome for place in self.places[fault.id])
        enough = 1 if put_into_traces(fault) else MAX_PLAYS
        return counts[Outcome.KILLED] >= enough

    def add(self, places: Iterable[tuple[str, Place]]) -> None:
        """Add the places of one trace."""
        for fault, place in places:
            self.places[fault].append(place)

    def killed_in(self, fault: Fault) -> list[str]:
        """Return the scenarios in whose traces the rule finds the fault, the quickest first."""
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
    """Return whether a fault is inserted into the trace of a clean play, not played live.

    Some need the whole trace, marks or files. On surfaces other than the session no client reacts
    to the program's output: its trace with a fault is what a faulty program would have left.
    """
    of_session = all_rules()[fault.rule].surface == SESSION
    return isinstance(fault.change, StoredOnly) or not of_session


def places_on(
    book: Book,
    trace: Trace,
    faults: Sequence[Fault],
    known_rules: Collection[str],
    seconds: float,
) -> list[tuple[str, Place]]:
    """Return the ids of the faults that can act in this trace, each with its place and outcome."""
    name = trace.header.scenario
    by_id = {fault.id: fault for fault in faults}
    found_places: list[tuple[str, Place]] = []
    for mutation in mutate(book, trace, faults, known_rules, only_own=True):
        if mutation.outcome is not Outcome.NOT_APPLIED:
            by_client = changes_client(by_id[mutation.fault_id], trace)
            found_places.append(
                (mutation.fault_id, Place(name, mutation.outcome, seconds, by_client))
            )
    return found_places


def changes_client(fault: Fault, trace: Trace) -> bool:
    """Return whether the fault changes the client's messages in a session."""
    if put_into_traces(fault) or surface_of(trace.header.scenario) != SESSION:
        return False
    return _client_messages(apply(fault, trace)) != _client_messages(trace)


def _client_messages(trace: Trace) -> list[bytes]:
    """Return the client's messages, sorted."""
    return sorted(frame.raw for frame in trace.frames if frame.direction is Direction.TO_TARGET)
