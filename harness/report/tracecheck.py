"""Judging and showing stored traces.

Here: `harness check` and `harness show` as functions. Rules are the same as in a live run.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.report.wirelines import frame_line, proof_lines
from harness.rules.base import all_rules
from harness.rules.judge import judge
from harness.rules.verdict import Level, Row, Verdict
from harness.spec.book import load_book
from harness.trace.foreign import TARGET as RECORDING
from harness.trace.foreign import load_any
from harness.trace.frame import Origin
from harness.trace.trace import Trace

# So many messages of a finding are shown.
MOST_LINES = 6


class UsageProblem(ValueError):
    """Something the user asked for cannot be done; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The judgement of one stored trace."""

    path: Path
    trace: Trace
    rows: list[Row]

    @property
    def red(self) -> bool:
        """Whether a MUST rule is broken, or a rule broke."""
        return any(
            row.verdict is Verdict.ERROR
            or (row.verdict is Verdict.FAIL and row.level is Level.MUST)
            for row in self.rows
        )

    def lines(self) -> Iterator[str]:
        """A line per violation with its frames, then the count."""
        broken = [row for row in self.rows if row.verdict in (Verdict.FAIL, Verdict.ERROR)]
        for row in broken:
            word = "ERROR" if row.verdict is Verdict.ERROR else str(row.level)
            yield f"{word:6} {row.rule}: {row.subject}"
            yield f"       expected {row.expected}"
            yield f"       actual   {row.actual}"
            yield from proof_lines(
                self.trace, row.frames, row.places, limit=160, around=0, most=MOST_LINES
            )
        passed = {row.rule for row in self.rows if row.verdict is Verdict.PASS}
        failed = {row.rule for row in broken}
        yield (
            f"{self.path}: {len(self.trace.frames)} messages, end {self.trace.end}; "
            f"{len(passed - failed)} rules passed, {len(failed)} broken"
        )


def check_trace(
    path: Path,
    names: Mapping[str, str] | None = None,
    *,
    known: Sequence[Mapping[str, str]] = (),
) -> Checked:
    """Judge a stored trace with the renames of a profile, or else with those of its header.

    A recording by others has no header: its renames are guessed among `known`. Its client is not
    the harness, so no rule on the harness's own messages applies.
    """
    book = load_book()
    trace = load_any(path, book.paths_of, names=names, known=known)
    rules = all_rules()
    if trace.header.target == RECORDING:
        rules = {name: rule for name, rule in rules.items() if not name.startswith("harness.")}
    return Checked(path, trace, judge(book, trace, rules=rules.values()))


def shown_lines(path: Path) -> Iterator[str]:
    """Every frame and mark of a trace in one line each."""
    trace = load_any(path, load_book().paths_of)
    header = trace.header
    yield f"target {header.target or '?'}, profile {header.profile or '?'}, {header.scenario}"
    marks = sorted(trace.marks, key=lambda mark: mark.after)
    position = 0
    for frame in trace.frames:
        while position < len(marks) and marks[position].after < frame.seq:
            mark = marks[position]
            yield f"    {mark.at * 1000:9.1f} · {mark.kind} {mark.data}"
            position += 1
        yield frame_line(frame)
    for mark in marks[position:]:
        yield f"    {mark.at * 1000:9.1f} · {mark.kind} {mark.data}"
    yield f"end: {trace.end}"


def sent_bytes(path: Path) -> bytes:
    """What we sent, line by line, as it was on the wire."""
    trace = load_any(path, load_book().paths_of)
    sent = [frame.raw for frame in trace.frames if frame.origin is Origin.HARNESS]
    return b"".join(raw + b"\n" for raw in sent)
