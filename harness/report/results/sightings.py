"""Choices of a server, and the schema of its messages, over all scenarios of a run.

A report names scenarios by their indexes in its list, as ranges: "0-12,15". A sighting is such
ranges with the first scenario and its frame: "0-12,15:0#33". So a report of hundreds of scenarios
stays small.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from harness.judge.ledger.record import Record


@dataclass(slots=True)
class ChoiceResult:
    """A value seen at a point `count` times, in the situation `about`, and where (`shown`)."""

    about: str
    value: str
    count: int
    shown: str


@dataclass(slots=True)
class MemberResult:
    """Sightings of a member, by its types and by its words.

    `sometimes` are the scenarios in which its parent object had it in some messages only.
    """

    types: dict[str, str] = field(default_factory=dict[str, str])
    words: dict[str, str] = field(default_factory=dict[str, str])
    sometimes: str = ""


ChoicesByPoint = dict[str, list[ChoiceResult]]
SpokenSchema = dict[str, dict[str, MemberResult]]


@dataclass(frozen=True, slots=True)
class Sightings:
    """The scenarios that show something, by their indexes, and the first with its frame."""

    scenarios: tuple[int, ...]
    first: int
    frame: int


def pack(sightings: Sightings) -> str:
    """Return sightings as text: "0-12,15:0#33"."""
    return f"{pack_places(sightings.scenarios)}:{sightings.first}#{sightings.frame}"


def unpack(packed: str) -> Sightings:
    """Return the sightings of a text from `pack`. Raises `ValueError` for another text."""
    places, _, first_frame = packed.partition(":")
    first, _, frame = first_frame.partition("#")
    return Sightings(tuple(unpack_places(places)), int(first), int(frame))


def pack_places(places: Iterable[int]) -> str:
    """Return whole numbers as ranges: "0-12,15"."""
    runs: list[list[int]] = []
    for place in sorted(set(places)):
        if runs and place == runs[-1][1] + 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def unpack_places(packed: str) -> Iterator[int]:
    """Yield the numbers of ranges from `pack_places`."""
    for run in packed.split(",") if packed else ():
        low, _, high = run.partition("-")
        yield from range(int(low), int(high or low) + 1)


class _SightingsBuilder:
    """The places where one thing was seen."""

    def __init__(self) -> None:
        self.count = 0
        self._places: list[int] = []
        self._frame = -1

    def add(self, place: int, frame: int, count: int = 1) -> None:
        if not self._places:
            self._frame = frame
        self._places.append(place)
        self.count += count

    @property
    def as_text(self) -> str:
        return pack(Sightings(tuple(self._places), self._places[0], self._frame))


def collect_choices(records: Iterable[tuple[int, Record]]) -> ChoicesByPoint:
    """Return the choices of a run, by point, from records with the indexes of their scenarios."""
    builders: dict[tuple[str, str, str], _SightingsBuilder] = defaultdict(_SightingsBuilder)
    for place, record in records:
        for choice in record.choices:
            builders[choice.point, choice.situation, choice.value].add(
                place, choice.frame, choice.count
            )
    by_point: ChoicesByPoint = defaultdict(list)
    for (point, situation, value), gathered in sorted(builders.items()):
        by_point[point].append(ChoiceResult(situation, value, gathered.count, gathered.as_text))
    return dict(by_point)


def collect_schema(records: Iterable[tuple[int, Record]]) -> SpokenSchema:
    """Return the schema of a run, by message and member, from records with scenario indexes."""
    types: dict[tuple[str, str, str], _SightingsBuilder] = defaultdict(_SightingsBuilder)
    words: dict[tuple[str, str, str], _SightingsBuilder] = defaultdict(_SightingsBuilder)
    sometimes: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, record in records:
        for message, members in record.messages.items():
            for path, member in members.items():
                for name, frame in member.types.items():
                    types[message, path, name].add(place, frame)
                for name, frame in member.words.items():
                    words[message, path, name].add(place, frame)
                if member.sometimes:
                    sometimes[message, path].append(place)
    schema: SpokenSchema = defaultdict(lambda: defaultdict(MemberResult))
    for (message, path, name), gathered in sorted(types.items()):
        schema[message][path].types[name] = gathered.as_text
    for (message, path, name), gathered in sorted(words.items()):
        schema[message][path].words[name] = gathered.as_text
    for (message, path), places in sometimes.items():
        schema[message][path].sometimes = pack_places(places)
    return {message: dict(members) for message, members in schema.items()}
