"""The outcome of one scenario, as plain data that can be sent to another process."""

from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from harness.judge.ledger.record import Record
from harness.judge.verdict import Level, Place, Row, Verdict
from harness.protocol.escapes import visible_lines
from harness.scenario.race_id import RaceId
from harness.trace.time_limits import TimeLimit, Times

# Findings that come from repeating a scenario.
LEAKS, UNSTEADY = "leaks-state", "unsteady"
SLOW_STEP, SLOW_RUN = "scenario.slow", "times.slow"
"""Findings about limits of time: of a scenario's step, and of a profile over a whole run."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding outside the rules: `scenario.*`, `setup.*`, `liveness.*`, `hygiene.*`.

    `line` is a line of the scenario's file. `places` are the members of messages that it is about,
    `about` the ids of the scenarios to play, in this order, to repeat it, `detail` further lines of
    text. A report keeps findings with the same id but another `kind` apart.
    """

    id: str
    message: str
    line: int = 0
    level: Level = Level.MUST
    known: str = ""
    places: tuple[Place, ...] = ()
    about: tuple[str, ...] = ()
    detail: tuple[str, ...] = ()
    kind: str = ""

    def __post_init__(self) -> None:
        """Escape the texts: they may quote a server."""
        object.__setattr__(self, "message", visible_lines(self.message))
        object.__setattr__(self, "detail", tuple(map(visible_lines, self.detail)))

    @property
    def counts(self) -> bool:
        """Return whether the finding makes the run fail."""
        return self.level is Level.MUST and not self.known


@dataclass(frozen=True, slots=True)
class SnapshotResult:
    """The state of one scenario's transcript, in a run that keeps snapshots.

    `state` is one of `same`, `new`, `changed`, `unsteady` (another play was as accepted) and `not
    kept`; `told` has sentences about the changes, or why nothing was kept.
    """

    state: str
    told: tuple[str, ...] = ()


@dataclass(slots=True)
class ScenarioOutcome:
    """One scenario on one target.

    It was played `runs` times (`--repeat`, `--retries`), `failed_runs` of which failed; one that is
    `over_time` was not begun before the deadline of the run.

    In a race, `race` names the placement (`interrupt@item:1:started`). A placement that is `racy`
    was played several times (`runs`), and this is the most severe outcome.

    One that is NOT_APPLICABLE names capabilities: `missing` are those that the target does not
    offer, or `withheld` is the one that this machine cannot provide.

    `trace` is the file of the conversation, which the next run overwrites, `kept` the one that this
    run keeps.

    It was played on `lane`, where it `began` at so many seconds since the epoch ("" and 0: never);
    it was `replayed` alone if it had failed beside others.

    `before` are probes that were played first and showed that nothing can be played. They are not
    scenarios of the run, but rules that their traces break count. `record` has the choices and
    messages in the trace, None without a trace, or in a race. `snapshot` is None in a run that
    keeps no snapshots. `server` is the server's own name. `awaited` is the notification for which
    it timed out, "" if there was none. `passed` has the number of subjects that passed, by rule, in
    the report of a shard, whose `rows` leave them out. `times` are those that have a limit.
    """

    id: str
    path: str
    title: str
    verdict: Verdict
    reason: str = ""
    findings: list[Finding] = field(default_factory=list[Finding])
    rows: list[Row] = field(default_factory=list[Row])
    trace: str = ""
    kept: str = ""
    end: str = ""
    stderr: str = ""
    seconds: float = 0.0
    played: bool = False
    race: str = ""
    racy: bool = False
    runs: int = 1
    missing: tuple[str, ...] = ()
    withheld: str = ""
    before: list["ScenarioOutcome"] = field(default_factory=list["ScenarioOutcome"])
    record: Record | None = None
    snapshot: SnapshotResult | None = None
    server: str = ""
    failed_runs: int = 0
    over_time: bool = False
    awaited: str = ""
    lane: str = ""
    began: float = 0.0
    replayed: bool = False
    passed: dict[str, int] = field(default_factory=dict[str, int])
    times: list[Times] = field(default_factory=list[Times])

    @property
    def slow_limits(self) -> frozenset[TimeLimit]:
        """The limits of time that this play exceeds, once at least."""
        return frozenset(times.limit for times in self.times if times.is_slow)

    @property
    def race_id(self) -> RaceId:
        """The placement's action and position; both "" outside a race."""
        return RaceId.parse_name(self.race)

    def to_plain(self) -> dict[str, Any]:
        """Return the outcome as builtins."""
        return _SCENARIO.dump_python(self, mode="json")

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> "ScenarioOutcome":
        """Return the outcome of builtins from `to_plain`."""
        return _SCENARIO.validate_python(plain)


@dataclass(slots=True)
class RaceOutcome:
    """One action placed at every position of one scenario, on one target.

    `findings` and `before` come from playing the scenario without the action first, if that showed
    that no placement can be tried. `missing`, `withheld`, `lane`, `began`, `replayed` are as in a
    `ScenarioOutcome`.
    """

    id: str
    scenario: str
    path: str
    title: str
    action: str
    verdict: Verdict
    reason: str = ""
    findings: list[Finding] = field(default_factory=list[Finding])
    placements: list[ScenarioOutcome] = field(default_factory=list[ScenarioOutcome])
    before: list[ScenarioOutcome] = field(default_factory=list[ScenarioOutcome])
    missing: tuple[str, ...] = ()
    withheld: str = ""
    over_time: bool = False
    lane: str = ""
    began: float = 0.0
    replayed: bool = False

    def to_plain(self) -> dict[str, Any]:
        """Return the outcome as builtins."""
        return _RACE.dump_python(self, mode="json")

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> "RaceOutcome":
        """Return the outcome of builtins from `to_plain`."""
        return _RACE.validate_python(plain)


def seconds_of(outcome: ScenarioOutcome | RaceOutcome) -> float:
    """Return the seconds of a play; of a race, those of all its placements."""
    if isinstance(outcome, RaceOutcome):
        return sum(placement.seconds for placement in outcome.placements)
    return outcome.seconds


def broken_must_rules(outcome: ScenarioOutcome) -> tuple[str, ...]:
    """Return the ids of the MUST rules that an outcome's trace breaks."""
    return tuple(sorted({row.rule for row in outcome.rows if _is_breach(row)}))


def _is_breach(row: Row) -> bool:
    return row.verdict is Verdict.FAIL and row.level is Level.MUST


_SCENARIO = TypeAdapter(ScenarioOutcome)
_RACE = TypeAdapter(RaceOutcome)
_FINDING = TypeAdapter(Finding)


def finding_to_plain(finding: Finding) -> dict[str, Any]:
    """Return a finding as builtins."""
    return _FINDING.dump_python(finding, mode="json")


def finding_from_plain(plain: dict[str, Any]) -> Finding:
    """Return a finding from builtins."""
    return _FINDING.validate_python(plain)
