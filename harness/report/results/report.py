"""The report of one run as a value; every form of output is a function of it."""

from dataclasses import dataclass, field
from typing import Any

from harness.judge.verdict import Level, Row, Verdict
from harness.report.results.outcome import SnapshotResult
from harness.report.results.rerun_command import Programs
from harness.report.results.server_starts import ServerStart
from harness.report.results.sightings import ChoicesByPoint, SpokenSchema
from harness.report.results.time_results import TimeResult
from harness.report.shards.values import Shard
from harness.scenario.race_id import RaceId

NOT_OFFERED = "the server does not offer "
"""The beginning of the reason for a scenario with missing capabilities; their names follow.

It is for people; `missing` has the names for programs."""
HARNESS_TROUBLES = ("harness.trouble", "shard.missing", "shard.incomplete")
"""Ids of findings that are no verdict on the server."""
NOT_KNOWN = "the target does not know "
"""The beginning of the reason for a rule that needs a command unknown to the agent."""


@dataclass(frozen=True, slots=True)
class Proof:
    """One violation and the scenario that showed it; `race` is the placement, "" for none.

    A known violation may be `flaky`: not seen in every run.
    """

    scenario: str
    row: Row
    trace: str
    path: str
    stderr: str
    reason: str = ""
    race: str = ""
    flaky: bool = False

    @property
    def race_id(self) -> RaceId:
        """The placement's action and position."""
        return RaceId.parse_name(self.race)


@dataclass(slots=True)
class RuleResult:
    """The result of one rule in a run.

    `scenarios` are those in which it judged something, `broken_in` those that broke it without the
    violation being known; `proofs` has each subject once. One that is NOT_APPLICABLE names
    capabilities: `missing` are those that the target does not declare, or `withheld` is the one
    that this machine cannot provide.
    """

    id: str
    title: str
    level: Level
    verdict: Verdict
    witnesses: int = 0
    subjects: int = 0
    scenarios: list[str] = field(default_factory=list[str])
    proofs: list[Proof] = field(default_factory=list[Proof])
    reason: str = ""
    broken_in: list[str] = field(default_factory=list[str])
    missing: tuple[str, ...] = ()
    withheld: str = ""


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """The result of one scenario in a run.

    One that is NOT_APPLICABLE names capabilities: `missing` are those that the target does not
    offer, or `withheld` is the one that this machine cannot provide. `trace` is the file of the
    conversation, "" if it was not played. `snapshot` is the state of its transcript, None if none
    is kept. It was played `runs` times, `failed_runs` of which failed. `messages` are its findings:
    id, message, line of its file. `stderr` is the end of what the server wrote there, if it failed.
    It was played on `lane`, where it `began` at so many seconds since the epoch ("" and 0: never);
    it was `replayed` alone if it had failed beside others.
    """

    id: str
    path: str
    title: str
    verdict: Verdict
    reason: str
    seconds: float
    end: str
    messages: tuple[tuple[str, str, int], ...] = ()
    missing: tuple[str, ...] = ()
    withheld: str = ""
    trace: str = ""
    snapshot: SnapshotResult | None = None
    runs: int = 1
    failed_runs: int = 0
    stderr: str = ""
    lane: str = ""
    began: float = 0.0
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class PlacementResult:
    """The result of one action at one position.

    It is `racy` if no gate can hold the server there; it was played `runs` times, and this is the
    most severe result. `broken` are the MUST rules that its trace breaks.
    """

    position: str
    verdict: Verdict
    racy: bool
    runs: int
    reason: str
    seconds: float
    trace: str
    broken: tuple[str, ...] = ()
    messages: tuple[tuple[str, str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class RaceResult:
    """The result of one action in one scenario.

    `missing`, `withheld`, `lane`, `began` and `replayed` are as in a `ScenarioResult`.
    """

    id: str
    scenario: str
    path: str
    action: str
    verdict: Verdict
    reason: str
    placements: tuple[PlacementResult, ...] = ()
    missing: tuple[str, ...] = ()
    withheld: str = ""
    lane: str = ""
    began: float = 0.0
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Issue:
    """A finding outside the rules and scenarios: set-up, hygiene, a stale baseline entry.

    `repeat` is the command that reproduces it, "" for none; `where` the place of its baseline
    entry, such as `known.toml:4:1`, "" for none; `paste` are lines for a file, "" for none.
    """

    id: str
    message: str
    level: Level
    known: str = ""
    repeat: str = ""
    where: str = ""
    paste: str = ""


@dataclass(frozen=True, slots=True)
class Withheld:
    """A capability that the target promises and this machine cannot provide.

    `program` is what the machine lacks, `why` the finding, `advice` what to do; then the ids of the
    scenarios, races and rules that were not judged because of it.
    """

    capability: str
    program: str
    why: str
    advice: str
    scenarios: tuple[str, ...] = ()
    races: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()


@dataclass(slots=True)
class Report:
    """The whole run. `profile` is the option that names the target.

    `command` is the server's, quoted; `agent` that of the agent whose `exec` and `mcp` were played,
    `sdk` that of the driver of an SDK; "" for none.

    `interrupted` is the name of the signal that ended it before all was played, "" for none.
    `choices` and `spoken` are what its scenarios show about points that the text leaves open, and
    about the messages themselves; `revision` is that of the documents by which it was judged.

    `server` is the server's own name in its answer to `initialize`, "" for none. The run began at
    `started` (ISO 8601, UTC) and took `took` seconds by the clock. `unplayed` are the scenarios and
    races that were not begun, since `--max-time` was over.

    `fuzz` has the results of `pytest -m fuzz`, each kind of case as `harness fuzz --json` prints
    it. `starts` are those of the server for its session scenarios.

    `release` is what the server says, judged by the rows of `judged_as`; both are "" for a profile
    of one release. `release_note` is a line on a release that the profile does not know, and `news`
    is `new since 0.169` for one that is newer; "" for others. `confined` and `required` are the
    options of the run that its commands repeat. `shard` is set if the run was one shard of another.
    `suite` says which suite counted and what came after it, "" if everything counted.
    `times` are the results of limits of time.
    """

    target: str
    command: str
    profile: str = ""
    agent: str = ""
    sdk: str = ""
    rules: list[RuleResult] = field(default_factory=list[RuleResult])
    scenarios: list[ScenarioResult] = field(default_factory=list[ScenarioResult])
    races: list[RaceResult] = field(default_factory=list[RaceResult])
    issues: list[Issue] = field(default_factory=list[Issue])
    unchecked: list[str] = field(default_factory=list[str])
    requirements: dict[str, str] = field(default_factory=dict[str, str])
    withheld: list[Withheld] = field(default_factory=list[Withheld])
    strict: bool = False
    interrupted: str = ""
    revision: str = ""
    choices: ChoicesByPoint = field(default_factory=ChoicesByPoint)
    spoken: SpokenSchema = field(default_factory=SpokenSchema)
    server: str = ""
    started: str = ""
    took: float = 0.0
    unplayed: list[str] = field(default_factory=list[str])
    fuzz: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    starts: list[ServerStart] = field(default_factory=list[ServerStart])
    release: str = ""
    judged_as: str = ""
    release_note: str = ""
    news: str = ""
    confined: bool = False
    required: str = ""
    shard: Shard | None = None
    times: list[TimeResult] = field(default_factory=list[TimeResult])
    suite: str = ""

    @property
    def programs(self) -> Programs:
        """The judged programs as a command line names them."""
        return Programs(
            self.profile or self.target,
            self.command,
            self.agent,
            self.sdk,
            confined=self.confined,
            required=self.required,
        )

    def counts(self, level: Level | None = None) -> dict[Verdict, int]:
        """Return the number of rules with each verdict, of all levels or of `level` alone."""
        counts = dict.fromkeys(Verdict, 0)
        for rule in self.rules:
            if level is None or rule.level is level:
                counts[rule.verdict] += 1
        return counts

    def red_rules(self) -> list[RuleResult]:
        """Return the rules that make the run fail."""
        return [rule for rule in self.rules if is_red(rule, strict=self.strict)]

    @property
    def red(self) -> bool:
        """Return whether the run fails: exit status 1."""
        return bool(self.red_reasons())

    @property
    def is_error(self) -> bool:
        """Return whether only the harness's own trouble makes the run fail."""
        plays = (*self.scenarios, *self.races)
        return self.red and not (
            any(rule.verdict is Verdict.FAIL for rule in self.red_rules())
            or any(one.verdict is Verdict.FAIL for one in plays)
            or any("RED" in fuzz["verdict"] for fuzz in self.fuzz)
            or any(one.id not in HARNESS_TROUBLES for one in self._counting_issues())
        )

    def _counting_issues(self) -> list[Issue]:
        return [one for one in self.issues if one.level is Level.MUST and not one.known]

    def red_reasons(self) -> list[str]:
        """Return the reasons why the run fails: `2 rules`, `1 scenario`, `baseline.stale`."""
        failing = (Verdict.FAIL, Verdict.ERROR)
        counts = {
            "rule": len(self.red_rules()),
            "scenario": sum(one.verdict in failing for one in self.scenarios),
            "race": sum(one.verdict in failing for one in self.races),
            "fuzz run": sum("RED" in fuzz["verdict"] for fuzz in self.fuzz),
        }
        issues = [one.id for one in self._counting_issues()]
        return [
            *(
                f"{count} {kind}{'' if count == 1 else 's'}"
                for kind, count in counts.items()
                if count
            ),
            *dict.fromkeys(issues),
        ]


def gravest_level(rule: RuleResult) -> Level:
    """Return the highest level among the violations; the rule's own level if there are none."""
    failed = {proof.row.level for proof in rule.proofs if proof.row.verdict is Verdict.FAIL}
    return next((level for level in Level if level in failed), rule.level)


def is_red(rule: RuleResult, *, strict: bool = False) -> bool:
    """Return whether this rule alone makes the run fail."""
    if rule.verdict is Verdict.ERROR:
        return True
    levels = (Level.MUST, Level.SHOULD) if strict else (Level.MUST,)
    return rule.verdict is Verdict.FAIL and any(
        proof.row.level in levels for proof in rule.proofs if proof.row.verdict is Verdict.FAIL
    )
