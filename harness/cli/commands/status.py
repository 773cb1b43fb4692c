"""The table of requirements, rules, scenarios, faults and targets, made from recorded runs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.client.target.run_folders import recorded_folder
from harness.errors import UsageError
from harness.faults.base import Fault, all_faults
from harness.faults.client_duties import client_faults
from harness.faults.mutation import Mutation, Outcome, mutate
from harness.judge.base import judges_surface
from harness.judge.rules.discovery import all_rules, client_rules
from harness.protocol.spec.book import Book
from harness.protocol.spec.loading import load_book
from harness.protocol.spec.rows import Requirement
from harness.report.json_form import read_report
from harness.report.requirements import binds_clients_only, judged_requirements
from harness.report.results.report import Report, RuleResult
from harness.trace.names import Renamer
from harness.trace.store import load
from harness.trace.surface.registry import classify_of

_BEST = (Outcome.KILLED, Outcome.MASKED, Outcome.NOT_APPLIED)


_LEGEND = (
    "faults: ways to break a rule, tried on the traces of a target to see that the rule finds them",
    "killed: found by the rule; not applied: no trace of the target has what the fault changes",
    "",
)


@dataclass(frozen=True, slots=True)
class Target:
    """A target's last run, the outcome of each fault on its traces, and its runs of races."""

    report: Report
    rules: dict[str, RuleResult]
    faults: dict[str, Outcome]
    race_reports: tuple[Report, ...] = ()
    shares_profile: bool = False

    @property
    def name(self) -> str:
        """Return the profile's name, with the command if another target has that profile too."""
        command = self.report.command.replace("|", "\\|")
        return f"{self.report.target} ({command})" if self.shares_profile else self.report.target


def read_targets(base: Path | None = None) -> list[Target]:
    """Return the targets of the recorded runs. Raises `UsageError` if no run is recorded."""
    folder = base or recorded_folder()
    book, faults = load_book(), all_faults()
    targets = [
        _target(*reports, folder, book, faults)
        for reports in _group_by_target(_read_reports(folder))
    ]
    if not targets:
        raise UsageError(
            f"no run is recorded in {folder}; "
            f"harness run … --json {folder / 'reports' / 'NAME.json'} records one"
        )
    times = Counter(target.report.target for target in targets)
    return [replace(one, shares_profile=times[one.report.target] > 1) for one in targets]


def to_plain(targets: Sequence[Target]) -> list[dict[str, Any]]:
    """Return the verdict of each rule and the outcome of each fault, by target, as JSON."""
    return [
        {
            "target": target.report.target,
            "command": target.report.command,
            "rules": {name: rule.verdict.value for name, rule in target.rules.items()},
            "faults": {name: str(outcome) for name, outcome in target.faults.items()},
        }
        for target in targets
    ]


def status_lines(targets: Sequence[Target], *, full: bool = False) -> Iterator[str]:
    """Yield the table of rules and a summary as Markdown; with `full`, the requirements too."""
    book, faults = load_book(), all_faults()
    yield from _rule_table(book, faults, targets)
    yield ""
    yield from _LEGEND
    yield from _summary(book, faults, targets)
    if full:
        yield ""
        yield from _requirement_table(book, faults, targets)


def _read_reports(folder: Path) -> list[Report]:
    paths = sorted((folder / "reports").glob("*.json"))
    # The reference server first: others are compared with it.
    return [_read_report(path) for path in sorted(paths, key=lambda path: path.stem != "reference")]


def _read_report(path: Path) -> Report:
    try:
        return read_report(path)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: no report that can be read ({error}); run it again") from error


def _group_by_target(reports: Sequence[Report]) -> Iterator[tuple[Report, tuple[Report, ...]]]:
    """Yield each target's run of scenarios with its runs of races; races alone count as both."""
    played = {report.target for report in reports if report.scenarios or not report.races}
    for report in reports:
        if report.scenarios or not report.races or report.target not in played:
            same = (other for other in reports if other.target == report.target)
            yield report, tuple(other for other in same if other.races)


def _target(
    report: Report,
    race_reports: tuple[Report, ...],
    folder: Path,
    book: Book,
    faults: dict[str, Fault],
) -> Target:
    known_rules = {
        rule.id for rule in report.rules if any(str(p.row.verdict) == "KNOWN" for p in rule.proofs)
    }
    outcomes = dict.fromkeys(faults, Outcome.NOT_APPLIED)
    for trace_path in sorted((folder / "traces" / report.target).rglob("*.jsonl")):
        header = load(trace_path, classify_of=classify_of).header
        if header.faults:
            continue
        renamer = Renamer(header.names, book.paths_of)
        trace = load(trace_path, renamer=renamer, classify_of=classify_of)
        open_faults = [
            fault
            for fault in faults.values()
            if outcomes[fault.id] is not Outcome.KILLED
            and judges_surface(all_rules()[fault.rule], header.surface)
        ]
        for mutation in mutate(book, trace, open_faults, known_rules, only_own=True):
            outcomes[mutation.fault_id] = _merge_outcome(outcomes[mutation.fault_id], mutation)
    return Target(report, {rule.id: rule for rule in report.rules}, outcomes, race_reports)


def _merge_outcome(before: Outcome, mutation: Mutation) -> Outcome:
    """Return KILLED if any trace killed the fault, else SURVIVED, MASKED or NOT_APPLIED."""
    pair = (before, mutation.outcome)
    if Outcome.KILLED in pair:
        return Outcome.KILLED
    if Outcome.SURVIVED in pair:
        return Outcome.SURVIVED
    return min(pair, key=_BEST.index)


def _rule_table(book: Book, faults: dict[str, Fault], targets: Sequence[Target]) -> Iterator[str]:
    names = [target.name for target in targets]
    yield f"| rule | level | requirements | scenarios | faults | {' | '.join(names)} |"
    yield "|---|---|---|---|---|" + "---|" * len(names)
    for rule_id in targets[0].rules:
        rule_faults = [fault.id for fault in faults.values() if fault.rule == rule_id]
        scenarios = {name for target in targets for name in _scenarios(target, rule_id)}
        cells = [_cell(target, rule_id, rule_faults) for target in targets]
        level = targets[0].rules[rule_id].level
        yield (
            f"| {rule_id} | {level} | {len(book.requirements_of(rule_id))} | {len(scenarios)} "
            f"| {len(rule_faults)} | {' | '.join(cells)} |"
        )


def _scenarios(target: Target, rule_id: str) -> list[str]:
    return target.rules[rule_id].scenarios if rule_id in target.rules else []


def _cell(target: Target, rule_id: str, faults: Sequence[str]) -> str:
    """Return for example "PASS 12; 2/2 killed": verdict, witnesses, faults on its traces."""
    rule = target.rules.get(rule_id)
    if rule is None:
        return "not run"
    counts = Counter(target.faults[fault] for fault in faults)
    parts = [f"{counts[Outcome.KILLED]}/{len(faults)} killed"]
    parts += [
        f"{counts[outcome]} {outcome.lower().replace('_', ' ')}"
        for outcome in (Outcome.SURVIVED, Outcome.MASKED, Outcome.NOT_APPLIED)
        if counts[outcome]
    ]
    verdict = str(rule.verdict)
    if verdict == "FAIL" and str(rule.level) != "MUST":
        verdict = f"{rule.level} finding"
    return f"{verdict} {rule.witnesses}; {', '.join(parts)}"


def _summary(book: Book, faults: dict[str, Fault], targets: Sequence[Target]) -> Iterator[str]:
    rules = set(targets[0].rules)
    killed_by = {fault.rule for fault in faults.values()}
    yield (
        "PASS 3; 1/2 killed: passed with three witnesses; of two faults of this rule, tried on the "
        "target's traces, one was found"
    )
    yield f"rules with a killer: {len(rules & killed_by)} of {len(rules)}; faults: {len(faults)}"
    duties, of_clients = client_rules(), client_faults().values()
    caught = {fault.rule for fault in of_clients} & set(duties)
    yield (
        f"duties of clients with a killer: {len(caught)} of {len(duties)}; "
        f"faults of clients: {len(of_clients)}; no target is judged by them"
    )
    judged = [requirement for requirement in book.requirements if requirement.rules]
    excluded = sum(1 for requirement in book.requirements if requirement.excluded)
    clients = sum(map(binds_clients_only, book.requirements))
    yield (
        f"requirements in the book: {len(book.requirements)}, of which {clients} bind clients "
        f"alone; judged by a rule {len(judged)}, "
        f"no rule can judge {excluded}"
    )
    for target in targets:
        verdicts = Counter(str(scenario.verdict) for scenario in target.report.scenarios)
        judged_counts = judged_requirements(target.report, book)
        outcomes = Counter(str(outcome) for outcome in target.faults.values())
        yield (
            f"{target.name}: requirements: {judged_counts.words()}; "
            f"scenarios {_counts(verdicts)}; "
            f"faults on its traces {_counts(outcomes)}; "
            f"verdict {'RED' if target.report.red else 'GREEN'}"
        )
        for report in target.race_reports:
            yield f"{target.name}, {_races(report)}"


def _races(report: Report) -> str:
    """Return "races: 57 PASS; placements 404 PASS; verdict GREEN", with the broken rules."""
    races = Counter(str(race.verdict) for race in report.races)
    placed = Counter(
        str(placement.verdict) for race in report.races for placement in race.placements
    )
    broken = [rule.id for rule in report.red_rules()]
    broken_words = f"; broken {', '.join(broken)}" if broken else ""
    verdict = "RED" if report.red else "GREEN"
    return f"races: {_counts(races)}; placements {_counts(placed)}{broken_words}; verdict {verdict}"


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counter.items())) or "none"


def _requirement_table(
    book: Book, faults: dict[str, Fault], targets: Sequence[Target]
) -> Iterator[str]:
    names = " | ".join(target.name for target in targets)
    yield f"| requirement | basis | rules | scenarios | faults | {names} |"
    yield "|---|---|---|---|---|" + "---|" * len(targets)
    for requirement in book.requirements:
        scenarios = {
            name
            for target in targets
            for rule in requirement.rules
            for name in _scenarios(target, rule)
        }
        every = (*faults.values(), *client_faults().values())
        killers = [fault.id for fault in every if fault.rule in requirement.rules]
        cells = [target.report.requirements.get(requirement.id, "-") for target in targets]
        yield (
            f"| {requirement.id} | {requirement.clause.basis} | {_rules_cell(requirement)} "
            f"| {len(scenarios)} | {len(killers)} | {' | '.join(cells)} |"
        )


def _rules_cell(requirement: Requirement) -> str:
    if requirement.rules:
        return ", ".join(requirement.rules)
    return f"none: {requirement.excluded}"
