"""Choices of a server, and the schema it spoke, over all scenarios of a run.

A report names scenarios by their places in its list, as ranges: "0-12,15". What shows a thing is
such ranges with the first scenario and its frame: "0-12,15:0#33". So a report of hundreds of
scenarios stays small.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from harness.judge.ledger.record import Record


@dataclass(slots=True)
class ChoiceResult:
    """A value that was seen at a point, in the situation `about`, `count` times, `shown` where."""

    about: str
    value: str
    count: int
    shown: str


@dataclass(slots=True)
class MemberResult:
    """Sightings of a member: `shown` where, by its types and by its words.

    `sometimes` are the scenarios in which the object around it had it in some messages only.
    """

    types: dict[str, str] = field(default_factory=dict[str, str])
    words: dict[str, str] = field(default_factory=dict[str, str])
    sometimes: str = ""


Chosen = dict[str, list[ChoiceResult]]
Spoken = dict[str, dict[str, MemberResult]]


@dataclass(frozen=True, slots=True)
class Shown:
    """The scenarios that show something, by their places, and the first with its frame."""

    scenarios: tuple[int, ...]
    first: int
    frame: int


def pack(shown: Shown) -> str:
    """As text: "0-12,15:0#33"."""
    return f"{pack_places(shown.scenarios)}:{shown.first}#{shown.frame}"


def unpack(packed: str) -> Shown:
    """The reverse. Raises `ValueError` for another text."""
    places, _, rest = packed.partition(":")
    first, _, frame = rest.partition("#")
    return Shown(tuple(unpack_places(places)), int(first), int(frame))


def pack_places(places: Iterable[int]) -> str:
    """Whole numbers as ranges."""
    runs: list[list[int]] = []
    for place in sorted(set(places)):
        if runs and place == runs[-1][1] + 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def unpack_places(packed: str) -> Iterator[int]:
    """The reverse."""
    for run in packed.split(",") if packed else ():
        low, _, high = run.partition("-")
        yield from range(int(low), int(high or low) + 1)


class _Gathered:
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
    def packed(self) -> str:
        return pack(Shown(tuple(self._places), self._places[0], self._frame))


def chosen(records: Iterable[tuple[int, Record]]) -> Chosen:
    """The choices of a run, by point; each record with the place of its scenario, in order."""
    found: dict[tuple[str, str, str], _Gathered] = defaultdict(_Gathered)
    for place, record in records:
        for one in record.choices:
            found[one.point, one.about, one.value].add(place, one.frame, one.count)
    by_point: Chosen = defaultdict(list)
    for (point, about, value), gathered in sorted(found.items()):
        by_point[point].append(ChoiceResult(about, value, gathered.count, gathered.packed))
    return dict(by_point)


def spoken(records: Iterable[tuple[int, Record]]) -> Spoken:
    """The schema of a run, by message and member; each record with the place of its scenario."""
    types: dict[tuple[str, str, str], _Gathered] = defaultdict(_Gathered)
    words: dict[tuple[str, str, str], _Gathered] = defaultdict(_Gathered)
    sometimes: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, record in records:
        for message, members in record.spoken.items():
            for path, member in members.items():
                for name, frame in member.types.items():
                    types[message, path, name].add(place, frame)
                for name, frame in member.words.items():
                    words[message, path, name].add(place, frame)
                if member.sometimes:
                    sometimes[message, path].append(place)
    found: Spoken = defaultdict(lambda: defaultdict(MemberResult))
    for (message, path, name), gathered in sorted(types.items()):
        found[message][path].types[name] = gathered.packed
    for (message, path, name), gathered in sorted(words.items()):
        found[message][path].words[name] = gathered.packed
    for (message, path), places in sometimes.items():
        found[message][path].sometimes = pack_places(places)
    return {message: dict(members) for message, members in found.items()}
