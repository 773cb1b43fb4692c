"""The union of what the shards of a run saw: the server's choices, the schema of its messages."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from harness.report.results.report import Report
from harness.report.results.sightings import (
    ChoiceResult,
    ChoicesByPoint,
    MemberResult,
    Sightings,
    SpokenSchema,
    pack,
    pack_places,
    unpack,
    unpack_places,
)


class _Seen:
    """The scenarios that saw one thing, and the first of them with its frame."""

    def __init__(self) -> None:
        self.count = 0
        self._scenarios: list[str] = []
        self._firsts: list[tuple[str, int]] = []

    def add(self, packed: str, ids: Sequence[str], count: int = 0) -> None:
        seen = unpack(packed)
        self._scenarios += [ids[place] for place in seen.scenarios]
        self._firsts.append((ids[seen.first], seen.frame))
        self.count += count

    def text(self, places: Mapping[str, int]) -> str:
        first, frame = min(self._firsts)
        scenarios = tuple(places[scenario] for scenario in self._scenarios)
        return pack(Sightings(scenarios, places[first], frame))


class SightingsUnion:
    """Sightings of several reports, by the ids of their scenarios."""

    def __init__(self) -> None:
        self._choices: dict[tuple[str, str, str], _Seen] = defaultdict(_Seen)
        self._types: dict[tuple[str, str, str], _Seen] = defaultdict(_Seen)
        self._words: dict[tuple[str, str, str], _Seen] = defaultdict(_Seen)
        self._sometimes: dict[tuple[str, str], list[str]] = defaultdict(list)

    def add(self, report: Report) -> None:
        """Add the sightings of a report. Raises `ValueError` if they cannot be read."""
        ids = [scenario.id for scenario in report.scenarios]
        for point, choices in report.choices.items():
            for one in choices:
                self._choices[point, one.about, one.value].add(one.shown, ids, one.count)
        for message, members in report.spoken.items():
            for path, member in members.items():
                for name, packed in member.types.items():
                    self._types[message, path, name].add(packed, ids)
                for name, packed in member.words.items():
                    self._words[message, path, name].add(packed, ids)
                if member.sometimes:
                    found = (ids[place] for place in unpack_places(member.sometimes))
                    self._sometimes[message, path] += found

    def choices(self, places: Mapping[str, int]) -> ChoicesByPoint:
        """Return the choices; `places` are the indexes of all scenarios in the merged report."""
        by_point: ChoicesByPoint = defaultdict(list)
        for (point, about, value), seen in sorted(self._choices.items()):
            by_point[point].append(ChoiceResult(about, value, seen.count, seen.text(places)))
        return dict(by_point)

    def spoken_schema(self, places: Mapping[str, int]) -> SpokenSchema:
        """Return the schema; `places` as in `choices`."""
        schema: SpokenSchema = defaultdict(lambda: defaultdict(MemberResult))
        for (message, path, name), seen in sorted(self._types.items()):
            schema[message][path].types[name] = seen.text(places)
        for (message, path, name), seen in sorted(self._words.items()):
            schema[message][path].words[name] = seen.text(places)
        for (message, path), scenarios in self._sometimes.items():
            found = (places[scenario] for scenario in scenarios)
            schema[message][path].sometimes = pack_places(found)
        return {message: dict(members) for message, members in schema.items()}
