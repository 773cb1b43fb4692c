"""The story of one finding: everything that a reader needs, in the order in which it is needed.

Here: the story of a rule, and the pieces that the story of a scenario (suite) is made of too. The
requirement and where it stands; what was expected, with accepted alternatives; what came; the
wire lines with relative milliseconds; the end of the server's stderr; the scenario's file and
line; the one command that repeats it; the reproduction without us.
"""

import shlex
from collections.abc import Iterator
from pathlib import Path

from harness.report.model import Proof, Report, RuleResult
from harness.rules.verdict import Verdict
from harness.spec.book import Book
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
    lines += _requirements(rule.id, first.row.clauses, book)
    lines += [
        f"  subject   {first.row.subject}",
        f"  expected  {first.row.expected}",
        f"  actual    {first.row.actual}",
        "",
    ]
    lines += _wire(first)
    lines += stderr_lines(first.stderr)
    lines += _where(first, rule.id, report)
    if len(proofs) > 1:
        lines += ["", f"{len(proofs) - 1} more violation(s) of this rule:"]
        lines += [f"  {p.scenario}: {p.row.subject}: {p.row.actual}" for p in proofs[1:6]]
    return "\n".join(lines)


def _requirements(rule_id: str, clauses: tuple[str, ...], book: Book) -> Iterator[str]:
    of_rule = book.requirements_of(rule_id)
    concerned = [one for one in of_rule if one.id in clauses] or of_rule
    for requirement in concerned[:3]:
        clause = requirement.clause
        yield f"  requirement  {requirement.id}: {clause.statement}"
        where = f"{clause.document}, {clause.heading!r}, line {clause.line}"
        yield f"               {where} ({clause.basis}); docs/protocol.md#{requirement.id}"
    yield ""


def _wire(proof: Proof) -> list[str]:
    trace = stored(proof.trace)
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


def stderr_lines(tail: str) -> list[str]:
    """The end of what the server wrote beside the protocol; nothing where it was silent."""
    lines = tail.strip().splitlines()[-8:]
    if not lines:
        return []
    return ["", "the end of the server's stderr:", *(f"  | {line[:200]}" for line in lines)]


def _where(proof: Proof, rule_id: str, report: Report) -> list[str]:
    path = near_path(proof.path)
    command = ["harness", "run", "--target", report.profile or report.target]
    command += ["--server-cmd", report.command] if report.command else []
    command += ["--race", proof.race] if proof.race else []
    action, _, position = proof.race.partition("@")
    return [
        "",
        f"scenario  {path}:{_line(proof)}",
        *([f"race      {action} at {position}"] if proof.race else []),
        f"repeat    {shlex.join([*command, '--rule', rule_id, path])}",
        *reproduction(proof.trace),
    ]


def repeat_race(target: str, command: str, path: str, race: str) -> str:
    """The one command that plays a placement again."""
    words = ["harness", "run", "--target", target, "--server-cmd", command]
    return shlex.join([*words, "--race", race, near_path(path)])


def _line(proof: Proof) -> int:
    """The line of the step that was being played when the proof was seen."""
    trace, line = stored(proof.trace), 1
    if trace is None or not proof.row.frames:
        return line
    for mark in trace.marks_of("step"):
        if mark.after < proof.row.frames[-1]:
            line = int(mark.data.get("line", line))
    return line


def reproduction(trace: str) -> list[str]:
    """How to judge a trace again, and how to repeat it without the harness."""
    trace = near_path(trace)
    return [
        f"judge     harness check {trace}",
        f"without us  harness show --stdin {trace} > in.jsonl; {{ cat in.jsonl; cat; }} | SERVER",
        "            (keep stdin open; ids that the server makes anew and the model's side "
        "are not in it)",
    ]


def stored(path: str) -> Trace | None:
    """The trace in a file; None where there is none that can be read."""
    if not path:
        return None
    try:
        return load(Path(path))
    except (OSError, TraceFormatError):
        return None


def near_path(path: str) -> str:
    """A path as the user would type it: relative where it lies below the current folder."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path
