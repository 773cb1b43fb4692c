"""Judging and showing stored traces.

Here: `harness check` and `harness show` as functions. Rules are the same as in a live run.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.report.story import frame_line
from harness.rules.judge import judge
from harness.rules.verdict import Level, Row, Verdict
from harness.spec.book import load_book
from harness.trace.frame import Origin
from harness.trace.names import Renamer
from harness.trace.store import load
from harness.trace.trace import Trace


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
            yield f"       expected {row.expected}; actual {row.actual}"
            for seq in row.frames[:3]:
                if seq < len(self.trace.frames):
                    yield frame_line(self.trace.frames[seq], marked=True, limit=160)
        passed = {row.rule for row in self.rows if row.verdict is Verdict.PASS}
        failed = {row.rule for row in broken}
        yield (
            f"{self.path}: {len(self.trace.frames)} messages, end {self.trace.end}; "
            f"{len(passed - failed)} rules passed, {len(failed)} broken"
        )


def check_trace(path: Path, names: Mapping[str, str] | None = None) -> Checked:
    """Judge a stored trace with the renames of a profile, or else with those of its header."""
    book = load_book()
    own = load(path).header.names
    trace = load(path, renamer=Renamer(own if names is None else names, book.paths_of))
    return Checked(path, trace, judge(book, trace))


def shown_lines(path: Path) -> Iterator[str]:
    """Every frame and mark of a trace in one line each."""
    trace = load(path)
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
    trace = load(path)
    sent = [frame.raw for frame in trace.frames if frame.origin is Origin.HARNESS]
    return b"".join(raw + b"\n" for raw in sent)
