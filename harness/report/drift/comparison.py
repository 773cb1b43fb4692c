"""Comparison of a release with a double of it: shapes of messages, and transcripts."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from harness.errors import UsageError
from harness.report.drift.messages import Message, messages_of
from harness.report.drift.shapes import Shape, Shapes, missing_and_extra, shapes_of
from harness.report.drift.transcripts import (
    Pair,
    Transcript,
    differences,
    normal_form,
    transcript_of,
    unordered_pairs,
)
from harness.trace.store import load
from harness.trace.surface.registry import classify_of
from harness.trace.surfaces import SESSION

IGNORED: Final = ("codex/event/*",)
"""Notifications of an older protocol that 0.107 sends beside those of this one."""
MAX_TRANSCRIPT_DIFFERENCES: Final = 400


@dataclass(slots=True)
class Play:
    """The messages of one play of all scenarios, by scenario."""

    name: str
    scenarios: dict[str, list[Message]] = field(default_factory=dict[str, list[Message]])

    def server_messages(self, scenarios: Collection[str]) -> list[Message]:
        """Return what the server sent in these scenarios, without ignored notifications."""
        return [
            message
            for scenario in scenarios
            for message in self.scenarios.get(scenario, ())
            if message.from_server and not is_ignored(message.method)
        ]


def is_ignored(method: str) -> bool:
    """Return whether messages of a method are left out of every comparison."""
    return any(fnmatchcase(method, pattern) for pattern in IGNORED)


def read_play(folder: Path) -> Play:
    """Return the session traces of a folder. Raises `UsageError` if there are none."""
    play = Play(folder.name)
    for path in sorted(folder.rglob("*.jsonl")):
        trace = load(path, classify_of=classify_of)
        if trace.header.surface == SESSION:
            scenario = path.relative_to(folder).as_posix().removesuffix(".jsonl")
            play.scenarios[scenario] = list(messages_of(trace, scenario))
    if not play.scenarios:
        raise UsageError(f"{folder}: no trace of a session")
    return play


@dataclass(slots=True)
class ShapeDifference:
    """A shape of the release that the double never writes, beside its nearest shape there."""

    shape: Shape
    count: int
    scenario: str
    missing: list[str]
    extra: list[str]
    unknown_place: bool

    @property
    def line(self) -> str:
        """The difference in one line."""
        if self.unknown_place:
            return f"{self.shape.place}: never written ({self.count}, {self.scenario})"
        parts = [f"lacks {', '.join(self.missing)}"] if self.missing else []
        parts += [f"adds {', '.join(self.extra)}"] if self.extra else []
        return f"{self.shape.place}: {'; '.join(parts)} ({self.count}, {self.scenario})"


@dataclass(slots=True)
class DriftComparison:
    """Differences between two plays.

    `varied` are the scenarios that the release itself plays in several ways, beside steps without
    an order: their transcripts are not compared.
    """

    scenarios: list[str]
    varied: list[str]
    only_release: list[str]
    only_double: list[str]
    release_shapes: int
    shared_shapes: int
    shape_differences: list[ShapeDifference]
    same_transcripts: int
    transcript_differences: dict[str, list[str]]
    unordered: set[Pair]

    @property
    def shape_share(self) -> float:
        """The share of the release's shapes that the double has."""
        return self.shared_shapes / max(self.release_shapes, 1)

    @property
    def compared_transcripts(self) -> int:
        """The number of scenarios whose transcripts were compared."""
        return len(self.scenarios) - len(self.varied)

    @property
    def transcript_share(self) -> float:
        """The share of the compared scenarios in which both write the same transcript."""
        return self.same_transcripts / max(self.compared_transcripts, 1)


def compare_plays(releases: Sequence[Play], double: Play) -> DriftComparison:
    """Compare plays of a release with one of its double.

    Several plays of the release say which order it does not keep itself, and which scenarios it
    plays in several ways; shapes count from all.
    """
    names = set[str]().union(*(play.scenarios for play in releases))
    common = sorted(names & double.scenarios.keys())
    release_shapes = shapes_of(
        message for play in releases for message in play.server_messages(common)
    )
    double_shapes = shapes_of(double.server_messages(common))
    shared = release_shapes.counts.keys() & double_shapes.counts.keys()
    transcripts = {name: _transcripts(releases, name) for name in common}
    unordered = set[Pair]().union(*map(unordered_pairs, transcripts.values()))
    own = {
        name: [normal_form(play, unordered) for play in plays]
        for name, plays in transcripts.items()
    }
    varied = [name for name, plays in own.items() if any(play != plays[0] for play in plays)]
    steady = {name: plays[0] for name, plays in own.items() if name not in varied}
    unequal = _unequal(steady, double, unordered)
    return DriftComparison(
        scenarios=common,
        varied=varied,
        only_release=sorted(names - double.scenarios.keys()),
        only_double=sorted(double.scenarios.keys() - names),
        release_shapes=len(release_shapes.counts),
        shared_shapes=len(shared),
        shape_differences=_shape_differences(release_shapes, double_shapes),
        same_transcripts=len(steady) - len(unequal),
        transcript_differences=unequal,
        unordered=unordered,
    )


def _transcripts(plays: Sequence[Play], scenario: str) -> list[Transcript]:
    return [
        transcript_of(play.scenarios[scenario], IGNORED)
        for play in plays
        if scenario in play.scenarios
    ]


def _unequal(
    transcripts: Mapping[str, Transcript], double: Play, unordered: Collection[Pair]
) -> dict[str, list[str]]:
    """Return the differences of the scenarios that the double plays otherwise."""
    unequal: dict[str, list[str]] = {}
    for name, release in transcripts.items():
        own = normal_form(transcript_of(double.scenarios[name], IGNORED), unordered)
        words = differences(release, own)
        if words:
            unequal[name] = words[:MAX_TRANSCRIPT_DIFFERENCES]
    return unequal


def _shape_differences(release: Shapes, double: Shapes) -> list[ShapeDifference]:
    places = double.by_place
    found: list[ShapeDifference] = []
    for shape, count in release.counts.items():
        if shape in double.counts:
            continue
        others = places.get(shape.place, [])
        missing, extra = missing_and_extra(shape, others) if others else ([], [])
        found.append(
            ShapeDifference(
                shape, count, release.scenarios[shape], missing, extra, unknown_place=not others
            )
        )
    return sorted(found, key=lambda one: (-one.count, one.shape.place))
