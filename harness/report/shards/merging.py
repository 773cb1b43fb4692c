"""The merge of the reports of all shards into the report that one run would have written."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from importlib.metadata import version
from typing import Final

from harness.client.target.host import Lack
from harness.errors import UsageError
from harness.judge.rules.discovery import all_rules
from harness.protocol.spec.loading import load_book
from harness.report.json_form import DISTRIBUTION
from harness.report.results.expiry import EXPIRED, EXPIRES_SOON
from harness.report.results.merge import with_results
from harness.report.results.outcome import Finding, RaceOutcome, ScenarioOutcome
from harness.report.results.report import Report
from harness.report.shards.durations import durations_of
from harness.report.shards.sightings import SightingsUnion
from harness.report.shards.snapshot_findings import snapshot_findings, unused_snapshots
from harness.report.shards.values import IDS, VERSION, Shard, digest
from harness.scenario.bundled import bundled_ids_on
from harness.trace.surfaces import SESSION

MISSING: Final = "shard.missing"
INCOMPLETE: Final = "shard.incomplete"
MAX_SHARDS_NAMED: Final = 10


class Merging:
    """The shards of one run, added one by one; `seconds` are the durations of what they played."""

    def __init__(self) -> None:
        self._head: Report | None = None
        self._first: tuple[str, Shard] | None = None
        self._names: dict[int, str] = {}
        self._items: list[str] = []
        self._outcomes: list[ScenarioOutcome] = []
        self._races: list[RaceOutcome] = []
        self._findings: list[Finding] = []
        self._troubles: dict[int, str] = {}
        self._sightings = SightingsUnion()

    @property
    def seconds(self) -> dict[str, float]:
        """The seconds of each scenario and race."""
        return durations_of([*self._outcomes, *self._races])

    def add(self, name: str, report: Report) -> None:
        """Add a report; `name` is that of its file.

        Raises `UsageError` if it is not one of a shard, or of another run than those before.
        """
        shard = report.shard
        if shard is None:
            raise UsageError(f"{name}: the report of a whole run, not one of harness run --shard")
        self._check(name, shard)
        self._names[shard.number] = name
        try:
            self._sightings.add(report)
        except (ValueError, IndexError) as error:
            raise UsageError(f"{name}: choices or spoken cannot be read: {error}") from error
        outcomes, races = shard.unpack()
        self._items += shard.items
        self._outcomes += outcomes
        self._races += races
        self._findings += shard.findings
        if trouble := _trouble(report, shard):
            self._troubles[shard.number] = trouble
        self._head = _head(report) if self._head is None else _with_times(self._head, report)

    def _check(self, name: str, shard: Shard) -> None:
        if self._first is None:
            written, ours = shard.conditions.get(VERSION, ""), version(DISTRIBUTION)
            if written != ours:
                raise UsageError(f"{name}: written by version {written} of the harness, not {ours}")
            self._first = name, shard
            return
        other, first = self._first
        if shard.of != first.of:
            raise UsageError(f"{name} is shard {shard.name}, and {other} is shard {first.name}")
        if shard.number in self._names:
            both = f"{self._names[shard.number]} and {name}"
            raise UsageError(f"shard {shard.name} was given twice: {both}")
        differences = [
            f"{key} ({shard.conditions.get(key, '')!r}, not {first.conditions.get(key, '')!r})"
            for key in {**first.conditions, **shard.conditions}
            if shard.conditions.get(key) != first.conditions.get(key)
        ]
        if differences:
            raise UsageError(f"{name} differs from {other} in: {', '.join(differences)}")

    def report(self) -> Report:
        """Return the merged report. Raises `UsageError` if the shards do not add up."""
        if self._first is None or self._head is None:
            raise UsageError("no report of a shard was given")
        head, shard = self._head, self._first[1]
        missing = [number for number in range(1, shard.of + 1) if number not in self._names]
        if not missing and digest(sorted(self._items)) not in shard.conditions.get(IDS, ""):
            raise UsageError("the shards do not add up to the scenarios of one run: run all again")
        outcomes = {outcome.id: outcome for outcome in self._outcomes}
        if shard.snapshots is not None:
            is_whole = not missing and not self._troubles
            unused = unused_snapshots(shard.snapshots, outcomes) if is_whole else {}
            self._findings += snapshot_findings(shard.snapshots, outcomes, list(unused))
        rules, known_rules = [rule.id for rule in head.rules], all_rules()
        if unknown := [rule for rule in rules if rule not in known_rules]:
            raise UsageError(f"{self._first[0]}: unknown rule {unknown[0]!r}")
        report = with_results(
            replace(head, rules=[], issues=[], withheld=[]),
            self._outcomes,
            self._races,
            [*self._findings, *_lost_findings(missing, self._troubles, shard.of)],
            entries=shard.entries,
            capabilities=shard.capabilities,
            rules={rule: known_rules[rule] for rule in rules},
            book=load_book(),
            bundled=bundled_ids_on(SESSION),
            lacks=[Lack(one.capability, one.program, one.why, one.advice) for one in head.withheld],
            expiry_issues=[one for one in head.issues if one.id in (EXPIRED, EXPIRES_SOON)],
        )
        places = {scenario.id: place for place, scenario in enumerate(report.scenarios)}
        report.choices = self._sightings.choices(places)
        report.spoken = self._sightings.spoken_schema(places)
        return report


def merge_reports(named: Iterable[tuple[str, Report]]) -> tuple[Report, dict[str, float]]:
    """Return the merged report, and durations for `--durations`; `UsageError` as in `Merging`."""
    merging = Merging()
    for name, report in named:
        merging.add(name, report)
    return merging.report(), merging.seconds


def _head(report: Report) -> Report:
    """Return what a report says of its run, without results."""
    return replace(
        report, scenarios=[], races=[], unchecked=[], requirements={}, unplayed=[], shard=None
    )


def _with_times(head: Report, report: Report) -> Report:
    """Return the head of a run that lasted from the first shard's beginning to the last's end."""
    begin = min(head.started, report.started)
    ends = [
        datetime.fromisoformat(one.started) + timedelta(seconds=one.took) for one in (head, report)
    ]
    took = (max(ends) - datetime.fromisoformat(begin)).total_seconds()
    return replace(
        head,
        started=begin,
        took=round(took, 3),
        interrupted=head.interrupted or report.interrupted,
        fuzz=[*head.fuzz, *report.fuzz],
        starts=[*head.starts, *report.starts],
    )


def _trouble(report: Report, shard: Shard) -> str:
    """Return why a shard did not judge all that fell to it, "" if it did."""
    if shard.unplayed:
        why = f" ({report.interrupted})" if report.interrupted else ""
        return f"ended before {len(shard.unplayed)} of its {len(shard.items)} were played{why}"
    if report.interrupted:
        return f"was interrupted ({report.interrupted})"
    if shard.status and not (report.red or report.unplayed):
        return f"ended with exit status {shard.status}, and its report does not say why"
    return ""


def _lost_findings(missing: Sequence[int], troubles: dict[int, str], of: int) -> list[Finding]:
    findings: list[Finding] = []
    if missing:
        names = ", ".join(f"{number}/{of}" for number in missing[:MAX_SHARDS_NAMED])
        more = f" and {len(missing) - MAX_SHARDS_NAMED} more" if missing[MAX_SHARDS_NAMED:] else ""
        words = "shard {} is missing" if len(missing) == 1 else "shards {} are missing"
        advice = "run what is missing with --shard, and give all reports to harness merge"
        findings.append(Finding(MISSING, f"{words.format(names + more)}: {advice}"))
    if troubles:
        told = [f"shard {number}/{of} {why}" for number, why in sorted(troubles.items())]
        more = f"; and {len(told) - MAX_SHARDS_NAMED} more" if told[MAX_SHARDS_NAMED:] else ""
        findings.append(Finding(INCOMPLETE, "; ".join(told[:MAX_SHARDS_NAMED]) + more))
    return findings
