"""The story of one finding: everything that a reader needs, in the order of need."""

from collections.abc import Iterator

from harness.judge.rules.discovery import class_place, every_rule
from harness.judge.verdict import Verdict
from harness.protocol.escapes import visible_lines
from harness.protocol.spec.book import Book
from harness.protocol.spec.findings import finding_kinds
from harness.report.results.report import Issue, Proof, Report, RuleResult
from harness.report.results.rerun_command import (
    near_path,
    replay_command,
    reproduction,
    scenario_argument,
)
from harness.report.wire_lines import frame_line, load_stored, proof_lines
from harness.trace.marks import StepBegins
from harness.trace.surfaces import surface_of

MAX_REQUIREMENTS_SHOWN = 3
# Subjects of one rule that are listed besides the first, and scenarios that are named.
MAX_SUBJECTS_SHOWN = 5
MAX_SCENARIOS_SHOWN = 12


def rule_story(rule: RuleResult, book: Book, report: Report, *, verbose: bool = False) -> str:
    """Return the story of a rule's first violation, with some others; "" if there is none.

    With `verbose` it names the rule's class with its file and line.
    """
    proofs = [p for p in rule.proofs if p.row.verdict in (Verdict.FAIL, Verdict.ERROR)]
    if not proofs:
        return ""
    first = proofs[0]
    lines = [f"{rule.id} ({first.row.level}): {rule.title}", ""]
    lines += _requirement_lines(rule.id, first.row.clauses, book)
    lines += [
        f"  subject   {first.row.subject}",
        f"  expected  {first.row.expected}",
        f"  actual    {first.row.actual}",
        *([f"  judged by {class_place(every_rule()[rule.id])}"] if verbose else []),
        "",
    ]
    lines += _wire_lines(first)
    lines += stderr_lines(first.stderr)
    lines += _place_lines(first, rule.id, report)
    if len(proofs) > 1:
        lines += ["", f"{len(proofs) - 1} more subject(s) break this rule:"]
        shown = proofs[1 : MAX_SUBJECTS_SHOWN + 1]
        lines += [f"  {p.scenario}: {p.row.subject}: {p.row.actual}" for p in shown]
        left = len(proofs) - 1 - len(shown)
        lines += [f"  and {left} more"] if left else []
    if len(rule.broken_in) > 1:
        names = rule.broken_in[:MAX_SCENARIOS_SHOWN]
        left = len(rule.broken_in) - len(names)
        more = f" and {left} more" if left else ""
        lines += ["", f"broken in {len(rule.broken_in)} scenarios: {', '.join(names)}{more}"]
    return visible_lines("\n".join(lines))


def issue_story(issue: Issue) -> str:
    """Return the story of a finding outside rules and scenarios: its meaning, how to repeat it."""
    kind = finding_kinds().get(issue.id)
    lines = [f"{issue.id}: {issue.message}", *issue.paste.splitlines(), ""]
    lines += [f"means     {kind.means}; harness explain {issue.id}"] if kind else []
    lines += [f"repeat    {issue.repeat}"] if issue.repeat else []
    return visible_lines("\n".join(lines).rstrip())


def _requirement_lines(rule_id: str, clauses: tuple[str, ...], book: Book) -> Iterator[str]:
    of_rule = book.requirements_of(rule_id)
    # Without clauses those come first that name this rule before others.
    by_rule = sorted(of_rule, key=lambda requirement: requirement.rules[0] != rule_id)
    named = {requirement.id: requirement for requirement in of_rule}
    concerned = [named[clause] for clause in clauses if clause in named] or by_rule
    for requirement in concerned[:MAX_REQUIREMENTS_SHOWN]:
        clause = requirement.clause
        yield f"  requirement  {requirement.id}: {clause.statement}"
        place = f"{clause.document}, {clause.heading!r}, line {clause.line}"
        yield f"               {place} ({clause.basis}); harness explain {requirement.id}"
    more = ", ".join(requirement.id for requirement in concerned[MAX_REQUIREMENTS_SHOWN:])
    if more:
        yield f"               and {more}"
    yield ""


def _wire_lines(proof: Proof) -> list[str]:
    trace = load_stored(proof.trace)
    if trace is None or not trace.frames:
        return []
    lines = ["wire (ms since the trace began; * marks the proof):"]
    proven = {seq for seq in proof.row.frames if seq < len(trace.frames)}
    if not proven:
        return [*lines, *map(frame_line, trace.frames[-6:])]
    return [*lines, *proof_lines(trace, proven, proof.row.places)]


def stderr_lines(tail: str) -> list[str]:
    """Return the end of the server's stderr; no lines if it wrote nothing."""
    lines = tail.strip().splitlines()[-8:]
    if not lines:
        return []
    return ["", "the end of the server's stderr:", *(f"  | {line[:200]}" for line in lines)]


def _place_lines(proof: Proof, rule_id: str, report: Report) -> list[str]:
    programs, path = report.programs, near_path(proof.path)
    played = scenario_argument(proof.path, proof.scenario)
    surface = surface_of(proof.scenario)
    again = replay_command(programs, [surface], [played], rule=rule_id, race=proof.race)
    race = proof.race_id
    return [
        "",
        f"scenario  {path}:{proof_line(proof)}",
        *([f"race      {race.action} at {race.position}"] if proof.race else []),
        f"repeat    {again}",
        *reproduction(proof.trace, programs.target, surface),
    ]


def proof_line(proof: Proof) -> int:
    """Return the line of the step in which a violation was recorded, 1 if it is unknown."""
    trace, line = load_stored(proof.trace), 1
    if trace is None or not proof.row.frames:
        return line
    for mark in trace.marks_of(StepBegins):
        if mark.after < proof.row.frames[-1]:
            line = mark.body.line
    return line
