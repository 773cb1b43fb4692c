"""The merge of the outcomes of all scenarios into one report, on the controller.

The order of the outcomes makes no difference, so any number of workers gives the same report.
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
from harness.report.results.baseline import entry_of, mark_known_finding, staleness
from harness.report.results.known_entries import UserScenarioIds, known_entries
from harness.report.results.outcome import (
    LEAKS,
    SLOW_STEP,
    UNSTEADY,
    Finding,
    RaceOutcome,
    ScenarioOutcome,
    broken_must_rules,
)
from harness.report.results.report import (
    Issue,
    PlacementResult,
    Proof,
    RaceResult,
    Report,
    RuleResult,
    ScenarioResult,
)
from harness.report.results.rerun import ReplayCommands, findings_naming_scenario
from harness.report.results.sightings import collect_choices, collect_schema
from harness.report.results.time_results import slow_run_findings, time_results
from harness.report.results.unavailable_capabilities import mark_inapplicable, withheld_results
from harness.report.shards.values import KnownEntry, Shard
from harness.scenario.bundled import bundled_ids_on
from harness.scenario.race_id import RaceId
from harness.scenario.surfaces import COMMANDS
from harness.trace.surfaces import SESSION, surface_of


def _no_user_scenarios(glob: str) -> Collection[str]:
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
    required: str = "",
    option: str = "",
    bundled: Collection[str] = (),
    bundled_entries: Sequence[Deviation] = (),
    lacks: Sequence[Lack] = (),
    interrupted: str = "",
    user_scenarios: UserScenarioIds = _no_user_scenarios,
    places: Mapping[Deviation, str] = _NO_PLACES,
    expiry_issues: Sequence[Issue] = (),
    shard: Shard | None = None,
) -> Report:
    """Return the report of a run. `loose` are the workers' findings outside any scenario.

    `bundled` are the ids of all bundled scenarios, `user_scenarios` gives the ids of the user's: an
    entry about a scenario that was not played is not stale. `bundled_entries` are only about
    bundled scenarios. `lacks` is what the machine cannot do. A run that a signal `interrupted` (its
    name) makes no entry stale, nor does one that is a `shard`, which gets what its merge needs.
    `places` maps the entries of a baseline to their places, `expiry_issues` are about their last
    days.
    """
    report = Report(profile.name, shlex.join(profile.command), profile=option, strict=strict)
    report.agent = shlex.join(profile.exec.command)
    report.sdk = shlex.join(profile.sdk.command)
    report.confined, report.required = profile.is_confined, required
    report.interrupted = interrupted
    if (edition := profile.edition) is not None:
        report.release, report.judged_as = edition.release, edition.judged_as
        report.release_note, report.news = edition.note(profile.name), edition.news
    report.revision = book.revision
    known = known_entries(profile, entries, places, bundled_entries, user_scenarios)
    if shard is not None:
        shard.keep(outcomes, races, loose, known, profile.capabilities)
        report.shard = shard
    return with_results(
        report,
        outcomes,
        races,
        loose,
        entries=known,
        capabilities=profile.capabilities,
        rules=rules,
        book=book,
        bundled=bundled,
        lacks=lacks,
        expiry_issues=expiry_issues,
    )


def with_results(
    report: Report,
    outcomes: Sequence[ScenarioOutcome],
    races: Sequence[RaceOutcome],
    loose: Sequence[Finding],
    *,
    entries: Sequence[KnownEntry],
    capabilities: Collection[str],
    rules: Mapping[str, type[Monitor]],
    book: Book,
    bundled: Collection[str],
    lacks: Sequence[Lack],
    expiry_issues: Sequence[Issue],
) -> Report:
    """Return `report`, which says what was judged, with the results of these outcomes."""
    outcomes = sorted(outcomes, key=lambda outcome: outcome.id)
    races = sorted(races, key=lambda race: race.id)
    placed = [placement for race in races for placement in race.placements]
    deviations = [entry.deviation for entry in entries]
    report.times = time_results(outcomes)
    loose = [*loose, *slow_run_findings(report.times)]
    # Findings outside any scenario can be known too, by entries for all scenarios.
    loose = [mark_known_finding(finding, "", deviations) for finding in loose]
    report.server = "; ".join(
        dict.fromkeys(outcome.server for outcome in outcomes if outcome.server)
    )
    report.scenarios = [_scenario_result(outcome) for outcome in outcomes]
    records = [
        (place, outcome.record)
        for place, outcome in enumerate(outcomes)
        if outcome.record is not None
    ]
    report.choices, report.spoken = collect_choices(records), collect_schema(records)
    report.races = [_race_result(race) for race in races]
    report.unplayed = [outcome.id for outcome in (*outcomes, *races) if outcome.over_time]
    # Each worker plays the same probes; the first outcome of each counts.
    first = {probe.id: probe for owner in (*outcomes, *races) for probe in reversed(owner.before)}
    every = [*outcomes, *placed, *first.values()]
    rows = _rows_by_rule(every)
    report.rules = [_rule_result(rule, rows[rule.id], deviations) for rule in rules.values()]
    unknown = {*COMMANDS} & {path for outcome in outcomes for path in outcome.missing}
    for rule in report.rules:
        if rule.verdict is Verdict.NOT_EXERCISED:
            mark_inapplicable(rule, rules[rule.id], capabilities, lacks, unknown)
    report.withheld = withheld_results(report, lacks)
    commands = ReplayCommands(report, every)
    raced = [finding for race in races for finding in race.findings]
    report.issues = [*_issues(every, [*loose, *raced], commands), *expiry_issues]
    report.requirements = requirements(book, report.rules)
    if report.interrupted or report.shard is not None:
        report.unchecked = [_describe_entry(entry) for entry in deviations]
    elif outcomes or not races:
        # A race plays no scenario to its end, so a finding missing in it may still exist.
        played = {outcome.id for outcome in outcomes}

        known = {entry.deviation: entry for entry in entries}

        def scenarios_for(entry: Deviation) -> set[str]:
            surface = surface_of(entry.scenario)
            bundled_ids = bundled if surface == SESSION else bundled_ids_on(surface)
            return {*played, *bundled_ids, *known[entry].scenarios}

        _judge_baseline(report, outcomes, loose, entries, scenarios_for, commands)
    return report


def _scenario_result(outcome: ScenarioOutcome) -> ScenarioResult:
    return ScenarioResult(
        id=outcome.id,
        path=outcome.path,
        title=outcome.title,
        verdict=outcome.verdict,
        reason=outcome.reason,
        seconds=outcome.seconds,
        end=outcome.end,
        messages=tuple((finding.id, finding.message, finding.line) for finding in outcome.findings),
        missing=outcome.missing,
        withheld=outcome.withheld,
        trace=outcome.kept,
        snapshot=outcome.snapshot,
        runs=outcome.runs,
        failed_runs=outcome.failed_runs,
        stderr=outcome.stderr if outcome.verdict in (Verdict.FAIL, Verdict.ERROR) else "",
        lane=outcome.lane,
        began=outcome.began,
        replayed=outcome.replayed,
    )


def _rows_by_rule(
    outcomes: Iterable[ScenarioOutcome],
) -> dict[str, list[tuple[ScenarioOutcome, Row]]]:
    rows: dict[str, list[tuple[ScenarioOutcome, Row]]] = defaultdict(list)
    for outcome in outcomes:
        for row in outcome.rows:
            rows[row.rule].append((outcome, row))
    return rows


def _race_result(race: RaceOutcome) -> RaceResult:
    return RaceResult(
        id=race.id,
        scenario=race.scenario,
        path=race.path,
        action=race.action,
        verdict=race.verdict,
        reason=race.reason,
        placements=tuple(_placement_result(placement) for placement in race.placements),
        missing=race.missing,
        withheld=race.withheld,
        lane=race.lane,
        began=race.began,
        replayed=race.replayed,
    )


def _placement_result(outcome: ScenarioOutcome) -> PlacementResult:
    return PlacementResult(
        position=outcome.race_id.position,
        verdict=outcome.verdict,
        racy=outcome.racy,
        runs=outcome.runs,
        reason=outcome.reason,
        seconds=outcome.seconds,
        trace=outcome.trace,
        broken=broken_must_rules(outcome),
        messages=tuple((finding.id, finding.message, finding.line) for finding in outcome.findings),
    )


def _rule_result(
    rule: type[Monitor],
    rows: Iterable[tuple[ScenarioOutcome, Row]],
    entries: Sequence[Deviation],
) -> RuleResult:
    result = RuleResult(rule.id, rule.title, rule.level, Verdict.NOT_EXERCISED)
    verdicts: list[Verdict] = []
    places: dict[tuple[str, Verdict], int] = {}
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
            continue
        # The same subject in several scenarios (a kind of id, a method name) is one finding, with
        # the gravest of its levels.
        place = places.setdefault((row.subject, row.verdict), len(result.proofs))
        if place == len(result.proofs):
            result.proofs.append(_proof(outcome, row, entries))
        elif _LEVELS.index(row.level) > _LEVELS.index(result.proofs[place].row.level):
            result.proofs[place] = _proof(outcome, row, entries)
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
    is_known = row.verdict is Verdict.KNOWN
    entry = entry_of(row, outcome.id, entries) if is_known else None
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
    outcomes: Sequence[ScenarioOutcome], loose: Sequence[Finding], commands: ReplayCommands
) -> list[Issue]:
    """Return one issue per cause: several workers and scenarios meet the same set-up failure.

    Of several findings with the same cause, one that counts is shown: a known one must not hide it.
    """
    findings = [
        *loose,
        *(
            finding
            for outcome in outcomes
            for finding in findings_naming_scenario(outcome)
            if _is_listed_alone(finding)
        ),
    ]
    findings.sort(
        key=lambda finding: (not finding.counts, finding.message, finding.level, finding.known)
    )
    groups: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in findings:
        groups[finding.id, finding.kind].append(finding)
    return [_issue(group, commands) for _, group in sorted(groups.items())]


def _is_listed_alone(finding: Finding) -> bool:
    """Return whether a scenario's finding is listed beside the scenario's verdict."""
    if finding.id == SLOW_STEP:
        return finding.level is not Level.MUST  # Else its scenario fails.
    return finding.id.startswith(("setup.", "hygiene.")) or finding.id in (LEAKS, UNSTEADY)


def _issue(group: list[Finding], commands: ReplayCommands) -> Issue:
    """Return an issue with the first of some findings, and the number of other messages.

    Set-up failures have one cause, even if each worker words it differently; so have findings with
    a `kind`.
    """
    first = group[0]
    other_messages = (
        len({finding.message for finding in group if finding.counts is first.counts}) - 1
    )
    one_cause = first.id.startswith("setup.") or bool(first.kind)
    more = f" (+{other_messages} more)" if other_messages and not one_cause else ""
    repeat = next((command for finding in group if (command := commands.for_finding(finding))), "")
    return Issue(first.id, first.message + more, first.level, first.known, repeat)


def _judge_baseline(
    report: Report,
    outcomes: Sequence[ScenarioOutcome],
    loose: Sequence[Finding],
    entries: Sequence[KnownEntry],
    scenarios_for: Callable[[Deviation], Collection[str]],
    commands: ReplayCommands,
) -> None:
    findings: dict[str, list[Finding]] = defaultdict(list)
    for outcome in outcomes:
        findings[outcome.id] += outcome.findings
    if outcomes:
        findings[outcomes[0].id] += loose
    state = staleness(
        [entry.deviation for entry in entries],
        {outcome.id: outcome.rows for outcome in outcomes},
        findings,
        {outcome.id for outcome in outcomes if outcome.played},
        scenarios_for,
    )
    known = {entry.deviation: entry for entry in entries}
    for stale in state.stale_entries:
        entry = known[stale.entry]
        # What a profile says of the releases that it knows can be over in one that it does not.
        release = f" in {report.release}" if entry.is_outside else ""
        report.issues.append(
            Issue(
                "baseline.stale",
                f"the deviation {_describe_entry(stale.entry)} does not occur any more{release}: "
                f"{stale.reason} ({stale.entry.reason})"
                + (f"; {entry.advice}" if entry.advice else ""),
                Level.INFO if entry.is_outside else Level.MUST,
                repeat=commands.for_entry(stale.entry),
                where=entry.place,
                paste=entry.paste,
            )
        )
    report.unchecked += [_describe_entry(entry) for entry in state.unchecked_entries]


def _describe_entry(entry: Deviation) -> str:
    return f"{entry.rule} (scenario {entry.scenario})"


def requirements(book: Book, rules: Iterable[RuleResult]) -> dict[str, str]:
    """Return requirement id -> PASS, FAIL, KNOWN, PARTLY, INFO, NOT_EXERCISED or ERROR.

    PASS if all its rules passed, FAIL if one failed, PARTLY if some were not exercised. A
    requirement that is our own choice (CHOSEN) never fails: it is INFO if the target chose
    otherwise.
    """
    by_id = {rule.id: rule for rule in rules}
    verdicts: dict[str, str] = {}
    for requirement in book.requirements:
        rule_results = [by_id[rule] for rule in requirement.rules if rule in by_id]
        judged = [_verdict_on(requirement, rule) for rule in rule_results]
        if not judged:
            continue
        gravest = max(judged, key=GRAVITY.__getitem__)
        idle = (Verdict.NOT_EXERCISED, Verdict.NOT_APPLICABLE)
        if gravest is Verdict.PASS and any(verdict in idle for verdict in judged):
            verdicts[requirement.id] = "PARTLY"
        elif gravest is Verdict.FAIL and requirement.clause.level == Level.INFO:
            verdicts[requirement.id] = str(Level.INFO)
        else:
            verdicts[requirement.id] = str(gravest)
    return verdicts


def _verdict_on(requirement: Requirement, rule: RuleResult) -> Verdict:
    """Return the verdict of a rule on one of its requirements.

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
