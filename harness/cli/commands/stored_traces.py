"""Judging and showing stored traces.

The rules are those of a live run.
"""

import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from harness.errors import UsageError
from harness.judge.base import Monitor
from harness.judge.ending_known import Decision, Owing, decide
from harness.judge.judge import judged
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Level, Row, Verdict
from harness.protocol.spec.loading import load_book
from harness.report.causes import Cause, Words, causes
from harness.report.wirelines import frame_line, proof_lines
from harness.trace.foreign import TARGET as RECORDING
from harness.trace.foreign import load_any
from harness.trace.frame import Kind, Origin
from harness.trace.mark_rows import to_row
from harness.trace.names import on_the_wire
from harness.trace.store import TraceFormatError
from harness.trace.surface.known import classify_of
from harness.trace.trace import End, Trace

# The numbers of messages that are shown, and of similar findings that are named, for a finding.
MAX_LINES: Final = 6
MAX_LIKE_FINDINGS: Final = 5
# Of a message that is asked for so many characters are shown.
_WHOLE: Final = 100_000
# Seconds of silence after which nothing more is expected, where no profile says otherwise.
SETTLE: Final = 1.0
SUSPECTED: Final = "suspected"
# How findings are counted, the heaviest first.
WORDS: Final = ("ERROR", *map(str, Level), "KNOWN", SUSPECTED)


@dataclass(frozen=True, slots=True)
class Checked:
    """The judgement of one stored trace.

    `suspected` are messages that seem to be missing where that cannot be judged, `names` the
    renames with which the file was read. `known` gives the reason why a row is KNOWN.
    """

    path: Path
    trace: Trace
    rows: list[Row]
    decision: Decision
    names: Mapping[str, str]
    suspected: list[Row] = field(default_factory=list[Row])
    known: Callable[[Row], str] = lambda _: ""

    @property
    def red(self) -> bool:
        """Return whether a MUST rule is broken, or a rule crashed."""
        return any(row.level is Level.MUST or row.verdict is Verdict.ERROR for row in self.broken)

    @property
    def broken(self) -> list[Row]:
        """The violations that are not known."""
        return [row for row in self.rows if row.verdict in (Verdict.FAIL, Verdict.ERROR)]

    def counts(self) -> Counter[str]:
        """Return the number of findings at each level, KNOWN and suspected ones apart."""
        counts = Counter(_word(row) for row in self.rows if row.verdict is not Verdict.PASS)
        counts[SUSPECTED] = len(self.suspected)
        return +counts

    def lines(self) -> Iterator[str]:
        """The file with its counts, what was not judged, then each cause with its messages."""
        findings = [row for row in self.rows if row.verdict is not Verdict.PASS]
        passed = {row.rule for row in self.rows} - {row.rule for row in findings}
        counts = counted(self.counts())
        yield (
            f"{self.path}: {len(self.trace.frames)} messages, {len(passed)} rules passed"
            f"{'; ' + counts if counts else ''}"
        )
        if self.decision.owing is Owing.NOT_JUDGED:
            yield f"  what never came is not judged: {self.decision.why} (--settled judges it)"
        elif self.suspected:
            yield f"  what never came is only suspected: {self.decision.why} (--settled judges it)"
        elif self.decision.owing is Owing.JUDGED and self.decision.why:
            yield f"  what never came is judged: {self.decision.why}"
        words = Words(self.trace)
        for cause in causes(findings):
            yield from self._cause(cause, words, _word(cause.first))
        for cause in causes(self.suspected):
            yield from self._cause(cause, words, SUSPECTED)

    def _cause(self, cause: Cause, words: Words, word: str) -> Iterator[str]:
        first = cause.first
        yield self._wired(f"  {word:6} {first.rule}: {self._subject(first)}")
        yield from (f"         {line}" for line in _clauses(first))
        yield self._wired(f"         expected {first.expected}")
        yield self._wired(f"         actual   {first.actual}")
        for output in words.about(first):
            yield f"         server   {textwrap.shorten(output, 240, placeholder=' …')!r}"
        if first.verdict is Verdict.KNOWN:
            yield f"         known    {self.known(first)}"
        places = [replace(place, path=self._wired(place.path)) for place in first.places]
        for line in proof_lines(
            self.trace, first.frames, places, limit=160, around=0, most=MAX_LINES
        ):
            yield f"    {line}"
        if len(cause.rows) > 1:
            similar = [self._subject(row) for row in cause.rows[1 : MAX_LIKE_FINDINGS + 1]]
            left_count = len(cause.rows) - 1 - len(similar)
            more = f", and {left_count} more" if left_count else ""
            yield self._wired(
                f"         and {len(cause.rows) - 1} like it: {', '.join(similar)}{more}"
            )

    def _subject(self, row: Row) -> str:
        line = self.trace.line_of(max(row.frames, default=-1))
        return f"{row.subject} (line {line})" if line else row.subject

    def _wired(self, shown: str) -> str:
        return on_the_wire(shown, self.names)


def counted(counts: Mapping[str, int]) -> str:
    """Counts in words, the most severe first: `MUST 2, SHOULD 1`."""
    return ", ".join(f"{word} {counts[word]}" for word in WORDS if counts.get(word))


def _word(row: Row) -> str:
    return row.verdict.value if row.verdict in (Verdict.ERROR, Verdict.KNOWN) else str(row.level)


def _clauses(row: Row) -> Iterator[str]:
    """The requirement that a violation is about; of several the first, with their number."""
    of_rule = load_book().requirements_of(row.rule)
    concerned = [requirement for requirement in of_rule if requirement.id in row.clauses] or list(
        of_rule
    )
    for requirement in concerned[:1]:
        clause = requirement.clause
        more = (
            f"; {len(concerned) - 1} more: harness explain {row.rule}" if len(concerned) > 1 else ""
        )
        yield f"clause   {requirement.id}: {clause.statement}"
        yield f"         {clause.document}, {clause.heading!r}, line {clause.line}{more}"


def check_trace(
    path: Path,
    names: Mapping[str, str] | None = None,
    *,
    known: Sequence[Mapping[str, str]] = (),
    marked: Callable[[Row, str], str] = lambda _row, _scenario: "",
    settle: float = SETTLE,
    settled: bool = False,
    rules: Iterable[type[Monitor]] | None = None,
) -> Checked:
    """Judge a stored trace with the renames of a profile, or else with those of its header.

    A recording by others has no header: its renames are guessed among `known`. Its client is not
    the harness, so rules about the harness's own messages do not apply. `marked` gives the reason
    why a violation in a scenario ("" in a recording) is known, "" where it is not. `settle` and
    `settled` are those of ending_known.decide. Without `rules` all of the trace's surface judge it.
    Raises `TraceFormatError` where there are none: nothing found would read as nothing wrong.
    """
    book = load_book()
    trace = load_any(path, book.paths_of, names=names, known=known, classify_of=classify_of)
    read_with = trace.header.names if names is None else names
    every = all_rules().values() if rules is None else rules
    rules = [rule for rule in every if rule.surface == trace.header.surface]
    if not rules:
        raise TraceFormatError(f"{path}: no rule judges the surface {trace.header.surface!r} yet")
    recording = trace.header.target == RECORDING
    if recording:
        rules = [rule for rule in rules if not rule.id.startswith("harness.")]
    scenario = "" if recording else trace.header.scenario

    def reason(row: Row) -> str:
        return marked(row, scenario)

    def known_or_not(row: Row) -> Row:
        concerned = row.verdict is Verdict.FAIL and reason(row)
        return replace(row, verdict=Verdict.KNOWN) if concerned else row

    judge = judged(book, trace, rules=rules)
    decision = decide(trace, judge.owed, settle=settle, settled=settled)
    rows = judge.finish(End.QUIESCENT if decision.owing is Owing.JUDGED else End.CLOSED)
    suspected: list[Row] = []
    if decision.owing is Owing.SUSPECTED:
        already = {_key(row) for row in rows}
        at_rest = judged(book, trace, rules=rules).finish(End.QUIESCENT)
        suspected = [
            replace(row, level=Level.INFO)
            for row in at_rest
            if row.verdict is Verdict.FAIL and _key(row) not in already and not reason(row)
        ]
    rows = [known_or_not(row) for row in rows]
    return Checked(path, trace, rows, decision, read_with, suspected, reason)


def _key(row: Row) -> tuple[str, str, str, str]:
    return row.rule, row.subject, row.verdict.value, row.actual


def shown_lines(path: Path, message: int | None = None) -> Iterator[str]:
    """Every frame and mark of a trace in one line each, or one frame with those around it.

    Raises `UsageError` for a message that the trace does not have.
    """
    trace = load_any(path, load_book().paths_of, classify_of=classify_of)
    if message is not None:
        if not 0 <= message < len(trace.frames):
            last = len(trace.frames) - 1
            raise UsageError(f"{path}: there is no message {message}; the last one is {last}")
        yield from proof_lines(trace, [message], limit=_WHOLE)
        return
    header = trace.header
    yield f"target {header.target or '?'}, profile {header.profile or '?'}, {header.scenario}"
    if header.faults:
        yield "the scenario's faults were at work: what is wrong here need not be the server's"
    marks = sorted(trace.marks, key=lambda mark: mark.after)
    position = 0
    for frame in trace.frames:
        while position < len(marks) and marks[position].after < frame.seq:
            mark = marks[position]
            yield f"    {mark.at * 1000:9.1f} · {mark.kind} {to_row(mark.body)}"
            position += 1
        yield frame_line(frame)
    for mark in marks[position:]:
        yield f"    {mark.at * 1000:9.1f} · {mark.kind} {to_row(mark.body)}"
    yield f"end: {trace.end}"


def sent_bytes(path: Path) -> bytes:
    """Return the bytes that the harness sent, by line; the input of a program has no lines."""
    trace = load_any(path, load_book().paths_of, classify_of=classify_of)
    sent_frames = [frame for frame in trace.frames if frame.origin is Origin.HARNESS]
    return b"".join(f.raw if f.kind is Kind.INPUT else f.raw + b"\n" for f in sent_frames)
