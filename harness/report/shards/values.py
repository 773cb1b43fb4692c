"""A shard's part of a report: what its merge with the other shards needs, as plain data."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from typing import Final, Literal

from harness.client.target.profile import Deviation
from harness.judge.verdict import Level, Row, Verdict
from harness.report.results.outcome import Finding, RaceOutcome, ScenarioOutcome

SNAPSHOT_FINDINGS: Final = "snapshots."
"""The prefix of findings that are made again of the snapshots of all shards."""

VERSION, IDS = "version of the harness", "ids of scenarios"
"""Conditions of a shard that its merge looks at."""


@dataclass(frozen=True, slots=True)
class KnownEntry:
    """A known deviation, and what a report says of it if it is stale.

    `scenarios` are those of the user that it may be about, played or not. `place` is that of the
    entry in a baseline file, `advice` how to remove it, with lines to `paste`; it `is_outside` if
    the profile does not know the judged release.
    """

    deviation: Deviation
    scenarios: tuple[str, ...] = ()
    place: str = ""
    advice: str = ""
    paste: str = ""
    is_outside: bool = False


@dataclass(frozen=True, slots=True)
class SnapshotSettings:
    """The snapshots of a run: their folder and the `accepted` scenarios of the target.

    `is_selected` if only chosen scenarios are played, which leaves snapshots of others unused.
    """

    folder: str
    strict: bool
    surfaces: tuple[str, ...]
    accepted: tuple[str, ...] = ()
    is_selected: bool = False


@dataclass(slots=True)
class Shard:
    """One of `of` shards, counted from 1.

    `conditions` must be equal in all shards of a run; `items` are the ids of the scenarios and
    races that fell to this one, `unplayed` those of them that were not begun. `capabilities` are
    those that the profile declares. Outcomes are without records, and with the subjects that passed
    as numbers. `status` is the exit status of its run.
    """

    number: int
    of: int
    conditions: dict[str, str] = field(default_factory=dict[str, str])
    items: list[str] = field(default_factory=list[str])
    capabilities: Literal["probe"] | list[str] = "probe"
    entries: list[KnownEntry] = field(default_factory=list[KnownEntry])
    outcomes: list[ScenarioOutcome] = field(default_factory=list[ScenarioOutcome])
    races: list[RaceOutcome] = field(default_factory=list[RaceOutcome])
    findings: list[Finding] = field(default_factory=list[Finding])
    unplayed: list[str] = field(default_factory=list[str])
    snapshots: SnapshotSettings | None = None
    status: int = 0

    @property
    def name(self) -> str:
        """The shard as `--shard` names it: `2/8`."""
        return f"{self.number}/{self.of}"

    def keep(
        self,
        outcomes: Iterable[ScenarioOutcome],
        races: Iterable[RaceOutcome],
        findings: Iterable[Finding],
        entries: Sequence[KnownEntry],
        capabilities: Literal["probe"] | list[str],
    ) -> None:
        """Take what the shard played, and by what it is judged."""
        self.outcomes = list(map(_pack, outcomes))
        self.races = [_with_plays(race, _pack) for race in races]
        self.findings = [one for one in findings if not one.id.startswith(SNAPSHOT_FINDINGS)]
        self.entries, self.capabilities = list(entries), capabilities

    def unpack(self) -> tuple[list[ScenarioOutcome], list[RaceOutcome]]:
        """Return the outcomes with a row for each subject that passed, which all look alike."""
        return list(map(_unpack, self.outcomes)), [
            _with_plays(race, _unpack) for race in self.races
        ]


def _pack(outcome: ScenarioOutcome) -> ScenarioOutcome:
    passed = Counter(row.rule for row in outcome.rows if row.verdict is Verdict.PASS)
    return replace(
        outcome,
        rows=[row for row in outcome.rows if row.verdict is not Verdict.PASS],
        passed=dict(passed),
        before=list(map(_pack, outcome.before)),
        record=None,
    )


def _unpack(outcome: ScenarioOutcome) -> ScenarioOutcome:
    for rule, count in outcome.passed.items():
        outcome.rows += [_passed_row(rule)] * count
    return replace(outcome, passed={}, before=list(map(_unpack, outcome.before)))


def digest(texts: Iterable[str]) -> str:
    """Return a short digest of texts in their order."""
    return sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


@cache
def _passed_row(rule: str) -> Row:
    return Row(rule, "", Verdict.PASS, Level.MUST)


def _with_plays(
    race: RaceOutcome, change: Callable[[ScenarioOutcome], ScenarioOutcome]
) -> RaceOutcome:
    plays = list(map(change, race.placements))
    return replace(race, placements=plays, before=list(map(change, race.before)))
