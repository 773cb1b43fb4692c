"""Merges the outcomes of all scenarios into one report, on the controller.

The order in which outcomes arrive makes no difference, so any number of workers gives the same
report.
"""

import shlex
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from harness.client.target.host import Lack
from harness.client.target.profile import Deviation, Profile
from harness.judge.base import Monitor
from harness.judge.verdict import GRAVITY, Level, Row, Verdict
from harness.protocol.spec.book import Book
from harness.protocol.spec.rows import Requirement
from harness.report.results.baseline import entry_of, known_finding, staleness
from harness.report.results.outcome import (
    LEAKS,
    UNSTEADY,
    Finding,
    RaceOutcome,
    ScenarioOutcome,
    broken,
)
from harness.report.results.recorded import chosen, spoken
from harness.report.results.report import (
    Issue,
    PlacementResult,
    Proof,
    RaceResult,
    Report,
    RuleResult,
    ScenarioResult,
)
from harness.report.results.rerun import Again, owned
from harness.report.results.withheld import not_judged, say_if_inapplicable
from harness.scenario.bundled import bundled_on
from harness.scenario.race_id import RaceId
from harness.scenario.surfaces import COMMANDS
from harness.trace.surfaces import SESSION, surface_of

Own = Callable[[str], Collection[str]]
"""The ids of somebody's own scenarios, played or not, that a glob may speak of."""


def _no_own(glob: str) -> Collection[str]:
    return ()


_NO_PLACES: Final[Mapping[Deviation, str]] = {}
_LEVELS = (Level.INFO, Level.SHOULD, Level.MUST)


def merge(
    outcomes: Sequence[ScenarioOutcome],
    loose: Sequence[Finding],
    *,
    profile: Profile,
    entries: Sequence[Deviation],
    rules: dict[str, type[Monitor]],
    book: Book,
    races: Sequence[RaceOutcome] = (),
    strict: bool = False,
    option: str = "",
    bundled: Collection[str] = (),
    shipped: Sequence[Deviation] = (),
    lacks: Sequence[Lack] = (),
    interrupted: str = "",
    own: Own = _no_own,
    places: Mapping[Deviation, str] = _NO_PLACES,
    expiring: Sequence[Issue] = (),
) -> Report:
    """The report of a run. `loose` are the workers' findings outside any scenario.

    `bundled` are the ids of all bundled scenarios, `own` gives the ids of the user's: an entry
    about a scenario that was not played is not stale. Entries that are `shipped` are only about
    bundled scenarios. `lacks` is what the machine cannot do. A run that a signal `interrupted`
    (its name) makes no entry stale. `places` says where the entries of a baseline stand,
    `expiring` what is told of their last days.
    """
    outcomes = sorted(outcomes, key=lambda outcome: outcome.id)
    races = sorted(races, key=lambda race: race.id)
    placed = [placement for race in races for placement in race.placements]
    # Findings outside any scenario can be known too, by entries for all scenarios.
    loose = [known_finding(one, "", entries) for one in loose]
    report = Report(profile.name, shlex.join(profile.command), profile=option, strict=strict)
    report.agent = shlex.join(profile.exec.command)
    report.sdk = shlex.join(profile.sdk.command)
    report.interrupted = interrupted
    report.server = "; ".join(dict.fromkeys(one.server for one in outcomes if one.server))
    report.scenarios = [_scenario(outcome) for outcome in outcomes]
    records = [(place, one.record) for place, one in enumerate(outcomes) if one.record is not None]
    report.revision, report.choices = book.revision, chosen(records)
    report.spoken = spoken(records)
    report.races = [_race(race) for race in races]
    report.unplayed = [one.id for one in (*outcomes, *races) if one.over_time]
    # Each worker plays it; the first outcome counts.
    first = {one.id: one for owner in (*outcomes, *races) for one in reversed(owner.before)}
    every = [*outcomes, *placed, *first.values()]
    rows = _rows_by_rule(every)
    report.rules = [_rule(rule, rows[rule.id], entries) for rule in rules.values()]
    unknown = {*COMMANDS} & {one for outcome in outcomes for one in outcome.missing}
    for rule in report.rules:
        if rule.verdict is Verdict.NOT_EXERCISED:
            say_if_inapplicable(rule, rules[rule.id], profile, lacks, unknown)
    report.withheld = not_judged(report, lacks)
    again = Again(report, every)
    raced = [one for race in races for one in race.findings]
    report.issues = [*_issues(every, [*loose, *raced], again), *expiring]
    report.requirements = requirements(book, report.rules)
    if interrupted:
        report.unchecked = [_entry(entry) for entry in entries]
    elif outcomes or not races:
        # A race plays no scenario to its end: a finding that it does not show may still be there.
        played = {outcome.id for outcome in outcomes}

        def existing(entry: Deviation) -> set[str]:
            theirs = () if entry in shipped else own(entry.scenario)
            surface = surface_of(entry.scenario)
            ours = bundled if surface == SESSION else bundled_on(surface)
            return {*played, *ours, *theirs}

        _judge_baseline(report, outcomes, loose, entries, existing, again, places)
    return report


def _scenario(outcome: ScenarioOutcome) -> ScenarioResult:
    return ScenarioResult(
        id=outcome.id,
        path=outcome.path,
        title=outcome.title,
        verdict=outcome.verdict,
        reason=outcome.reason,
        seconds=outcome.seconds,
        end=outcome.end,
        messages=tuple((one.id, one.message, one.line) for one in outcome.findings),
        missing=outcome.missing,
        withheld=outcome.withheld,
        trace=outcome.kept,
        snapshot=outcome.snapshot,
        runs=outcome.runs,
        failed_runs=outcome.failed_runs,
    )


def _rows_by_rule(
    outcomes: Iterable[ScenarioOutcome],
) -> dict[str, list[tuple[ScenarioOutcome, Row]]]:
    found: dict[str, list[tuple[ScenarioOutcome, Row]]] = defaultdict(list)
    for outcome in outcomes:
        for row in outcome.rows:
            found[row.rule].append((outcome, row))
    return found


def _race(race: RaceOutcome) -> RaceResult:
    return RaceResult(
        id=race.id,
        scenario=race.scenario,
        path=race.path,
        action=race.action,
        verdict=race.verdict,
        reason=race.reason,
        placements=tuple(_placement(one) for one in race.placements),
        missing=race.missing,
        withheld=race.withheld,
    )


def _placement(outcome: ScenarioOutcome) -> PlacementResult:
    return PlacementResult(
        position=outcome.race_id.position,
        verdict=outcome.verdict,
        racy=outcome.racy,
        runs=outcome.runs,
        reason=outcome.reason,
        seconds=outcome.seconds,
        trace=outcome.trace,
        broken=broken(outcome),
        messages=tuple((one.id, one.message, one.line) for one in outcome.findings),
    )


def _rule(
    rule: type[Monitor],
    rows: Iterable[tuple[ScenarioOutcome, Row]],
    entries: Sequence[Deviation],
) -> RuleResult:
    result = RuleResult(rule.id, rule.title, rule.level, Verdict.NOT_EXERCISED)
    verdicts: list[Verdict] = []
    seen: set[tuple[str, Verdict]] = set()
    for outcome, row in rows:
        # For the placements of a race the scenario is named once.
        name = RaceId.parse(outcome.id).scenario if outcome.race else outcome.id
        if name not in result.scenarios[-1:]:
            result.scenarios.append(name)
        verdicts.append(row.verdict)
        result.subjects += 1
        if row.verdict in (Verdict.FAIL, Verdict.ERROR) and name not in result.broken_in[-1:]:
            result.broken_in.append(name)
        if row.verdict is Verdict.PASS:
            result.witnesses += 1
        elif (row.subject, row.verdict) not in seen:
            # The same subject in several scenarios (a kind of id, a method name) is one finding.
            seen.add((row.subject, row.verdict))
            result.proofs.append(_proof(outcome, row, entries))
    result.proofs.sort(key=_weight)
    if verdicts:
        result.verdict = max(verdicts, key=GRAVITY.__getitem__)
        failed = [p.row.level for p in result.proofs if p.row.verdict is Verdict.FAIL]
        result.level = max(failed, key=_LEVELS.index) if failed else result.level
    else:
        result.reason = "no scenario of this run gave it anything to judge"
    return result


def _weight(proof: Proof) -> tuple[int, int]:
    return -GRAVITY[proof.row.verdict], -_LEVELS.index(proof.row.level)


def _proof(outcome: ScenarioOutcome, row: Row, entries: Sequence[Deviation]) -> Proof:
    known = row.verdict is Verdict.KNOWN
    entry = entry_of(row, outcome.id, entries) if known else None
    return Proof(
        outcome.id,
        row,
        outcome.trace,
        outcome.path,
        outcome.stderr,
        "" if entry is None else entry.reason,
        outcome.race,
        entry is not None and entry.flaky,
    )


def _issues(
    outcomes: Sequence[ScenarioOutcome], loose: Sequence[Finding], again: Again
) -> list[Issue]:
    """One issue per cause: several workers and scenarios meet the same set-up failure.

    Of several findings with the same cause, one that counts is shown: a known one must not hide
    it.
    """
    every = [*loose, *(one for outcome in outcomes for one in owned(outcome) if _stands_out(one))]
    every.sort(key=lambda one: (not one.counts, one.message, one.level, one.known))
    found: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in every:
        found[finding.id, finding.kind].append(finding)
    return [_issue(group, again) for _, group in sorted(found.items())]


def _stands_out(finding: Finding) -> bool:
    """Return whether a scenario's finding is listed by itself, in addition to the scenario's
    verdict.
    """
    return finding.id.startswith(("setup.", "hygiene.")) or finding.id in (LEAKS, UNSTEADY)


def _issue(group: list[Finding], again: Again) -> Issue:
    """An issue for all findings with the same cause, with the number of the others.

    Set-up failures have one cause, even where each worker words it differently; so have findings
    that name what they are about.
    """
    first = group[0]
    others = len({one.message for one in group if one.counts is first.counts}) - 1
    one_cause = first.id.startswith("setup.") or bool(first.kind)
    more = f" (+{others} more)" if others and not one_cause else ""
    repeat = next((command for one in group if (command := again.of(one))), "")
    return Issue(first.id, first.message + more, first.level, first.known, repeat)


def _judge_baseline(
    report: Report,
    outcomes: Sequence[ScenarioOutcome],
    loose: Sequence[Finding],
    entries: Sequence[Deviation],
    existing: Callable[[Deviation], Collection[str]],
    again: Again,
    places: Mapping[Deviation, str],
) -> None:
    findings: dict[str, list[Finding]] = defaultdict(list)
    for outcome in outcomes:
        findings[outcome.id] += outcome.findings
    if outcomes:
        findings[outcomes[0].id] += loose
    state = staleness(
        entries,
        {outcome.id: outcome.rows for outcome in outcomes},
        findings,
        {outcome.id for outcome in outcomes if outcome.played},
        existing,
    )
    for one in state.stale:
        entry = one.entry
        report.issues.append(
            Issue(
                "baseline.stale",
                f"the deviation {_entry(entry)} is not seen any more: {one.why} ({entry.reason})",
                Level.MUST,
                repeat=again.of_entry(entry),
                where=places.get(entry, ""),
            )
        )
    report.unchecked += [_entry(entry) for entry in state.unchecked]


def _entry(entry: Deviation) -> str:
    return f"{entry.rule} (scenario {entry.scenario})"


def requirements(book: Book, rules: Iterable[RuleResult]) -> dict[str, str]:
    """Requirement id -> PASS, FAIL, KNOWN, PARTLY, INFO, NOT_EXERCISED, ERROR.

    PASS if all its rules passed, FAIL if one failed, PARTLY if some were not exercised. A
    requirement that is our own choice (CHOSEN) never fails: it is INFO where the target chose
    otherwise.
    """
    by_id = {rule.id: rule for rule in rules}
    found: dict[str, str] = {}
    for requirement in book.requirements:
        mine = [by_id[rule] for rule in requirement.rules if rule in by_id]
        judged = [_verdict_on(requirement, rule) for rule in mine]
        if not judged:
            continue
        gravest = max(judged, key=GRAVITY.__getitem__)
        idle = (Verdict.NOT_EXERCISED, Verdict.NOT_APPLICABLE)
        if gravest is Verdict.PASS and any(verdict in idle for verdict in judged):
            found[requirement.id] = "PARTLY"
        elif gravest is Verdict.FAIL and requirement.clause.level == Level.INFO:
            found[requirement.id] = str(Level.INFO)
        else:
            found[requirement.id] = str(gravest)
    return found


def _verdict_on(requirement: Requirement, rule: RuleResult) -> Verdict:
    """The verdict of a rule on one of its requirements.

    A violation that names requirements counts for those only. An INFO finding counts only for
    requirements that are our own choice, never for one that the text states.
    """
    against = [
        proof.row
        for proof in rule.proofs
        if not proof.row.clauses or requirement.id in proof.row.clauses
    ]
    chosen = requirement.clause.level == Level.INFO
    verdicts = [row.verdict for row in against if chosen or row.level is not Level.INFO]
    if verdicts:
        return max(verdicts, key=GRAVITY.__getitem__)
    if rule.witnesses:
        return Verdict.PASS
    return Verdict.NOT_EXERCISED if rule.proofs else rule.verdict
