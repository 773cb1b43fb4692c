"""The story of one finding: everything that a reader needs, in the order in which it is needed.

The requirement and where it stands; what was expected, with accepted alternatives; what came; the
wire lines with relative milliseconds; the end of the server's stderr; the scenario's file and
line; the one command that repeats it; the reproduction without us.
"""

from collections.abc import Iterator
from pathlib import Path

from harness.report.model import Proof, Report, RuleResult
from harness.rules.verdict import Verdict
from harness.spec.book import Book
from harness.suite.outcome import ScenarioOutcome
from harness.trace.frame import Direction, Frame
from harness.trace.store import TraceFormatError, load
from harness.trace.trace import Trace

AROUND = 2
MAX_LINES = 14


def rule_story(rule: RuleResult, book: Book, report: Report) -> str:
    """The story of a rule's first violation, with the number of the others."""
    proofs = [p for p in rule.proofs if p.row.verdict in (Verdict.FAIL, Verdict.ERROR)]
    if not proofs:
        return ""
    first = proofs[0]
    lines = [f"{rule.id} ({first.row.level}): {rule.title}", ""]
    lines += _requirements(rule.id, book)
    lines += [
        f"  subject   {first.row.subject}",
        f"  expected  {first.row.expected}",
        f"  actual    {first.row.actual}",
        "",
    ]
    lines += _wire(first)
    lines += _stderr(first.stderr)
    lines += _where(first, rule.id, report)
    if len(proofs) > 1:
        lines += ["", f"{len(proofs) - 1} more violation(s) of this rule:"]
        lines += [f"  {p.scenario}: {p.row.subject}: {p.row.actual}" for p in proofs[1:6]]
    return "\n".join(lines)


def scenario_story(outcome: ScenarioOutcome) -> str:
    """The story of a scenario whose own verdict is not a pass."""
    lines = [f"{outcome.id}: {outcome.title}", ""]
    if outcome.verdict is Verdict.ERROR:
        lines += [outcome.reason]
    for finding in outcome.findings:
        known = f"  (known: {finding.known})" if finding.known else ""
        lines.append(
            f"  {_near(outcome.path)}:{finding.line}: {finding.id}: {finding.message}{known}"
        )
    violations = [row for row in outcome.rows if row.verdict in (Verdict.FAIL, Verdict.ERROR)]
    if violations:
        lines += ["", "rules that this run breaks (each counted at its rule):"]
        lines += [f"  {row.rule} ({row.level}): {row.actual}" for row in violations[:6]]
    if outcome.trace:
        lines += ["", "the last messages (ms since the trace began):"]
        lines += _last_lines(Path(outcome.trace))
    lines += _stderr(outcome.stderr)
    if outcome.trace:
        lines += ["", *_reproduction(outcome.trace)]
    return "\n".join(lines)


def _requirements(rule_id: str, book: Book) -> Iterator[str]:
    for requirement in book.requirements_of(rule_id)[:3]:
        clause = requirement.clause
        yield f"  requirement  {requirement.id}: {clause.statement}"
        where = f"{clause.document}, {clause.heading!r}, line {clause.line}"
        yield f"               {where} ({clause.basis})"
    yield ""


def _wire(proof: Proof) -> list[str]:
    trace = _load(proof.trace)
    if trace is None or not trace.frames:
        return []
    wanted = {seq for seq in proof.row.frames if seq < len(trace.frames)}
    shown = {
        near
        for seq in wanted
        for near in range(seq - AROUND, seq + AROUND + 1)
        if 0 <= near < len(trace.frames)
    }
    if not wanted:
        shown = set(range(max(0, len(trace.frames) - 6), len(trace.frames)))
    lines = ["wire (ms since the trace began; * marks the proof):"]
    last = -1
    for seq in sorted(shown)[:MAX_LINES]:
        if seq != last + 1 and last >= 0:
            lines.append("      …")
        lines.append(frame_line(trace.frames[seq], marked=seq in wanted))
        last = seq
    return lines


def frame_line(frame: Frame, *, marked: bool = False, limit: int = 240) -> str:
    """One frame in one line: mark, milliseconds, direction, text."""
    arrow = "→" if frame.direction is Direction.TO_TARGET else "←"
    note = f"  [{frame.note}]" if frame.note else ""
    return f"  {'*' if marked else ' '} {frame.at * 1000:9.1f} {arrow} {frame.text(limit)}{note}"


def _last_lines(path: Path) -> list[str]:
    trace = _load(str(path))
    if trace is None:
        return []
    lines = [frame_line(frame) for frame in trace.frames[-8:]]
    lines += [
        f"    a line was begun and not ended: {mark.data.get('head')!r}"
        for mark in trace.marks_of("partial-line")
    ]
    return lines or ["  (none)"]


def _stderr(tail: str) -> list[str]:
    lines = tail.strip().splitlines()[-8:]
    if not lines:
        return []
    return ["", "the end of the server's stderr:", *(f"  | {line[:200]}" for line in lines)]


def _where(proof: Proof, rule_id: str, report: Report) -> list[str]:
    option = f"--target {report.target}"
    command = f" --server-cmd {_quoted(report.command)}" if report.command else ""
    return [
        "",
        f"scenario  {_near(proof.path)}:1",
        f"repeat    harness run {option}{command} --rule {rule_id} {_near(proof.path)}",
        *_reproduction(proof.trace),
    ]


def _reproduction(trace: str) -> list[str]:
    trace = _near(trace)
    return [
        f"judge     harness check {trace}",
        f"without us  harness show --stdin {trace} > in.jsonl; {{ cat in.jsonl; cat; }} | SERVER",
        "            (keep stdin open; ids that the server makes anew and the model's side "
        "are not in it)",
    ]


def _quoted(command: str) -> str:
    return "'" + command.replace("'", "'\\''") + "'"


def _load(path: str) -> Trace | None:
    if not path:
        return None
    try:
        return load(Path(path))
    except (OSError, TraceFormatError):
        return None


def _near(path: str) -> str:
    """A path as the user would type it: relative where it lies below the current folder."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path
