"""Findings of a report by cause, as the cards of a page.

Cards of rules have one cause each, as in `report.causes`: a rule, level and clause, and one member
of messages. Scenarios and races that fail with the same reason are one card.
"""

import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from harness.judge.verdict import Level, Place, Verdict
from harness.protocol.escapes import visible
from harness.protocol.spec.book import Book
from harness.protocol.spec.findings import finding_kinds
from harness.report.causes import group_by_cause
from harness.report.results.report import (
    Issue,
    PlacementResult,
    Proof,
    Report,
    RuleResult,
    ScenarioResult,
    is_red,
)
from harness.report.results.rerun_command import replay_command, scenario_argument
from harness.report.story import proof_line
from harness.report.wire_lines import load_stored, proof_lines
from harness.scenario.scenario_text import scenario_text
from harness.trace.surfaces import surface_of

COUNTS: Final = "Findings"
UNCOUNTED: Final = "Reported, but not counted"
KNOWN: Final = "Known deviations"
GROUPS: Final = (COUNTS, UNCOUNTED, KNOWN)
MAX_SUBJECTS_SHOWN: Final = 50
MAX_CLAUSES_SHOWN: Final = 3
MAX_LAST_WORDS: Final = 200
_CASE_SUFFIX: Final = ".scenario.yaml"
_CRASH: Final = "scenario.crash"
# The order of cards within a group.
_MARKS: Final = ("ERROR", "FAIL", "MUST", "SHOULD", "INFO", "KNOWN")
_FAILING: Final = (Verdict.FAIL, Verdict.ERROR)


@dataclass(frozen=True, slots=True)
class Clause:
    """A requirement that a finding breaks, and its place in the specification."""

    id: str
    statement: str
    place: str


@dataclass(frozen=True, slots=True)
class Card:
    """One finding. `trace` is the file of its conversation, "" for none; `line` that of its step.

    `mark` is FAIL, ERROR, KNOWN, or a level for what does not count. `frames` and `places` are its
    proof in the conversation; `subjects` are others with the same cause: scenario, subject, actual;
    `messages` are further findings of the same play.
    """

    group: str
    mark: str
    id: str
    title: str
    actual: str
    expected: str = ""
    kind: str = "rule"
    number: int = 0
    means: str = ""
    subject: str = ""
    clauses: tuple[Clause, ...] = ()
    scenario: str = ""
    path: str = ""
    line: int = 0
    race: str = ""
    trace: str = ""
    frames: tuple[int, ...] = ()
    places: tuple[Place, ...] = ()
    wire: tuple[str, ...] = ()
    subjects: tuple[tuple[str, str, str], ...] = ()
    subjects_left: int = 0
    messages: tuple[str, ...] = ()
    broken_in: tuple[str, ...] = ()
    repeat: str = ""
    stderr: str = ""
    known: str = ""
    paste: str = ""
    scenarios: tuple[str, ...] = field(default=())


def finding_cards(report: Report, book: Book) -> list[Card]:
    """Return the findings that count, the others, the known ones; the worst of each first."""
    kept = {scenario.id: scenario.trace for scenario in report.scenarios}
    cards = [
        *map(_issue_card, report.issues),
        *(card for rule in report.rules for card in _rule_cards(rule, report, book, kept)),
        *_scenario_cards(report),
        *_race_cards(report),
        *_generated_cards(report),
    ]
    cards.sort(key=_severity)
    return [replace(card, number=number) for number, card in enumerate(cards, 1)]


def _severity(card: Card) -> tuple[int, int, bool, int]:
    """Return the sort key of a card: a server that cannot be played first, then by scenarios."""
    spread = len(card.broken_in or card.scenarios)
    can_play = not card.id.startswith("setup.")
    return GROUPS.index(card.group), _MARKS.index(card.mark), can_play, -spread


def _issue_card(issue: Issue) -> Card:
    kind = finding_kinds().get(issue.id)
    counts = issue.level is Level.MUST and not issue.known
    return Card(
        KNOWN if issue.known else COUNTS if counts else UNCOUNTED,
        "KNOWN" if issue.known else "FAIL" if counts else str(issue.level),
        issue.id,
        kind.means if kind else "",
        issue.message,
        kind="run",
        known=issue.known,
        repeat=issue.repeat,
        paste=issue.paste,
    )


def _rule_cards(
    rule: RuleResult, report: Report, book: Book, kept: dict[str, str]
) -> Iterator[Card]:
    """Yield a card for each cause of a rule's violations."""
    proofs = {id(proof.row): proof for proof in rule.proofs}
    for cause in group_by_cause(proof.row for proof in rule.proofs):
        first, *others = [proofs[id(row)] for row in cause.rows]
        yield _rule_card(rule, first, others, report, book, kept)


def _rule_card(
    rule: RuleResult,
    first: Proof,
    others: list[Proof],
    report: Report,
    book: Book,
    kept: dict[str, str],
) -> Card:
    row, is_known = first.row, first.row.verdict is Verdict.KNOWN
    counts = not is_known and is_red(_with_proofs(rule, [first]), strict=report.strict)
    trace = trace_of(first, kept)
    again = replay_command(
        report.programs,
        [surface_of(first.scenario)],
        [scenario_argument(first.path, first.scenario)],
        rule=rule.id,
        race=first.race,
    )
    stored = load_stored(trace)
    wire = proof_lines(stored, row.frames, row.places) if stored and row.frames else ()
    return Card(
        KNOWN if is_known else COUNTS if counts else UNCOUNTED,
        str(row.verdict) if is_known or counts else str(row.level),
        rule.id,
        rule.title,
        row.actual,
        row.expected,
        subject=row.subject,
        clauses=tuple(_clauses(rule.id, row.clauses, book)),
        scenario=first.scenario,
        path=first.path,
        line=proof_line(replace(first, trace=trace)),
        race=first.race,
        trace=trace if stored else "",
        frames=row.frames,
        places=row.places,
        wire=tuple(wire),
        subjects=tuple(
            (proof.scenario, proof.row.subject, proof.row.actual)
            for proof in others[:MAX_SUBJECTS_SHOWN]
        ),
        subjects_left=max(0, len(others) - MAX_SUBJECTS_SHOWN),
        broken_in=() if is_known else tuple(dict.fromkeys(rule.broken_in)),
        repeat=again,
        stderr=first.stderr.strip(),
        known=first.reason if is_known else "",
    )


def trace_of(proof: Proof, kept: Mapping[str, str]) -> str:
    """Return the file of a proof's conversation; `kept` are those of scenarios by id.

    The last conversation of a scenario may be of a later run, the kept one is of this run.
    """
    return proof.trace if proof.race else kept.get(proof.scenario) or proof.trace


def _with_proofs(rule: RuleResult, proofs: list[Proof]) -> RuleResult:
    """Return a rule's result with the violations of one cause alone."""
    return replace(rule, proofs=proofs, verdict=proofs[0].row.verdict)


def _clauses(rule_id: str, clauses: tuple[str, ...], book: Book) -> Iterator[Clause]:
    of_rule = book.requirements_of(rule_id)
    named = [one for one in of_rule if one.id in clauses]
    by_rule = sorted(of_rule, key=lambda one: one.rules[0] != rule_id)
    for requirement in (named or by_rule)[:MAX_CLAUSES_SHOWN]:
        clause = requirement.clause
        place = f"{clause.document}, {clause.heading!r}, line {clause.line} ({clause.basis})"
        yield Clause(requirement.id, clause.statement, place)


def _scenario_cards(report: Report) -> Iterator[Card]:
    """Yield a card for each reason for which scenarios fail, or are known to."""
    alike: dict[tuple[Verdict, str], list[ScenarioResult]] = defaultdict(list)
    for scenario in report.scenarios:
        if scenario.verdict in (*_FAILING, Verdict.KNOWN):
            alike[scenario.verdict, _cause_of_failure(scenario)].append(scenario)
    for (verdict, _), scenarios in alike.items():
        first, is_known = scenarios[0], verdict is Verdict.KNOWN
        reason, last_words = first.reason, _last_words(first)
        finding, _, line = first.messages[0] if first.messages else ("", "", 0)
        more = f" and {len(scenarios) - 1} more" if len(scenarios) > 1 else ""
        yield Card(
            KNOWN if is_known else COUNTS,
            str(verdict),
            finding or "scenario",
            f"in {first.id}{more}: {first.title}",
            f"{reason}; its last words: {last_words}" if last_words else reason,
            kind="scenario",
            means=finding_kinds()[finding].means if finding in finding_kinds() else "",
            scenario=first.id,
            path=first.path,
            line=line,
            trace=first.trace,
            stderr=first.stderr.strip(),
            messages=tuple(words for _, words, _ in first.messages if words != reason),
            repeat=replay_command(
                report.programs,
                [surface_of(first.id)],
                [scenario_argument(first.path, first.id)],
            ),
            known=reason if is_known else "",
            scenarios=tuple(scenario.id for scenario in scenarios),
        )


def _cause_of_failure(scenario: ScenarioResult) -> str:
    """Return what failures with one cause share: a crash in any step is known by its last words."""
    return _last_words(scenario) or scenario.reason


def _last_words(scenario: ScenarioResult) -> str:
    """Return the last line that a server wrote to stderr before it crashed, "" if it did not."""
    has_crashed = any(finding == _CRASH for finding, _, _ in scenario.messages[:1])
    lines = scenario.stderr.strip().splitlines() if has_crashed else []
    return visible(lines[-1])[:MAX_LAST_WORDS] if lines else ""


def _race_cards(report: Report) -> Iterator[Card]:
    for race in report.races:
        if race.verdict not in _FAILING:
            continue
        failed = next((one for one in race.placements if one.verdict in _FAILING), None)
        name = _race_name(race.action, failed)
        yield Card(
            COUNTS,
            str(race.verdict),
            race.id,
            f"the action {race.action} at every position of {race.scenario}",
            race.reason,
            kind="race",
            scenario=race.id,
            path=race.path,
            race=name,
            trace=failed.trace if failed else "",
            repeat=replay_command(
                report.programs,
                [surface_of(race.scenario)],
                [scenario_argument(race.path, race.scenario)],
                race=name,
            ),
        )


def _race_name(action: str, placement: PlacementResult | None) -> str:
    return f"{action}@{placement.position}" if placement else action


def _generated_cards(report: Report) -> Iterator[Card]:
    """Yield a card for each failure of generated cases, and for each note of a search."""
    for fuzz in report.fuzz:
        red = "RED" in fuzz["verdict"]
        for failure in fuzz["failures"]:
            is_known = bool(failure.get("known"))
            yield Card(
                KNOWN if is_known else COUNTS,
                "KNOWN" if is_known else "FAIL",
                str(failure["id"]),
                str(failure["cause"]),
                str(failure["text"]),
                kind="generated case",
                subject=str(failure.get("occasion") or ""),
                repeat=failure["replay"] or "",
                trace=failure_trace(failure),
                paste=case_text(failure.get("document")),
            )
        for note in fuzz["notes"]:
            yield Card(
                COUNTS if red else UNCOUNTED,
                "FAIL" if red else "INFO",
                "generated cases",
                "a note of the search",
                str(note),
                kind="note",
            )


def failure_trace(failure: Mapping[str, Any]) -> str:
    """Return the trace that is kept beside the case of a failure, "" if none is kept."""
    words = shlex.split(failure["replay"] or "")
    case = next((word for word in words if word.endswith(_CASE_SUFFIX)), "")
    return f"{case.removesuffix(_CASE_SUFFIX)}.jsonl" if case else ""


def case_text(document: str | dict[str, Any] | None) -> str:
    """Return a generated case as text: a scenario as YAML, unless it is a text; "" for none."""
    if isinstance(document, dict):
        return scenario_text(document, "").partition("\n")[2]
    return document or ""
